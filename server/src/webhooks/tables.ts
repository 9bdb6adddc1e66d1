import type { InternalTable } from '../database/tables/internal-tables';
import { epoch, internalType, jsonText, now } from '../database/tables/internal-types';
import type { PlainTable } from '../database/tables/plain-tables';

export const WEBHOOK = 'plugin::switchboard.webhook';
export const WEBHOOKS_TABLE = 'switchboard_webhooks';
export const DELIVERIES_TABLE = 'switchboard_deliveries';
export const MESSAGE = 'plugin::switchboard.message';
export const MESSAGES_TABLE = 'switchboard_messages';
export const ATTEMPTS_TABLE = 'switchboard_attempts';
export const SUBSCRIPTIONS_TABLE = 'switchboard_subscriptions';

/**
 * `secret` is encrypted with the host's key. `origin_id` is the id that the row had where it was
 * made: an import gives rows ids of their own, and so it is known to be one.
 */
export const webhookType = internalType({
  singularName: 'webhook',
  pluralName: 'webhooks',
  displayName: 'Webhook',
  collectionName: WEBHOOKS_TABLE,
  attributes: {
    name: { type: 'string' },
    url: { type: 'text' },
    events: jsonText(),
    active: { type: 'boolean', default: true },
    secret: { type: 'text', private: true },
    disabled_reason: { type: 'string' },
    disabled_at: epoch(),
    consecutive_failures: { type: 'integer', default: 0 },
    failed_attempts: { type: 'integer', default: 0 },
    failing_since: epoch(),
    updated_at: now(),
    origin_id: { type: 'integer', private: true },
  },
});

/**
 * What several deliveries send, stored once: `frame` is the envelope's event, time and site, `data` its
 * data, both as the text that is sent. `deliveries` counts those that need it; it goes with the last.
 */
export const messageType = internalType({
  singularName: 'message',
  pluralName: 'messages',
  displayName: 'Message',
  collectionName: MESSAGES_TABLE,
  attributes: {
    event: { type: 'string' },
    deliveries: { type: 'integer' },
    frame: { type: 'text' },
    data: { type: 'text' },
  },
});

/**
 * The document id is the delivery's id; the host's index on it is the only one. `state` is the
 * column `status`, a name that the host keeps for itself. `next_attempt_at` is what the owner of the
 * site is shown. `attempts` has those of versions before 0.2, the newest last; since then each is a row
 * of `switchboard_attempts`. `body` is what is sent, or null where it shares a message with others.
 *
 * `webhook` is the same column as `webhook_id`, seen as a relation: so an import maps it to the id
 * that the webhook was given; `message` likewise. They are virtual, for a foreign key would lock the
 * webhook's row with each delivery that is queued.
 */
export const deliveryType = internalType({
  singularName: 'delivery',
  pluralName: 'deliveries',
  displayName: 'Delivery',
  collectionName: DELIVERIES_TABLE,
  attributes: {
    webhook_id: { type: 'integer' },
    webhook: {
      type: 'relation',
      relation: 'manyToOne',
      target: WEBHOOK,
      unstable_virtual: true,
      joinColumn: {
        name: 'webhook_id',
        referencedColumn: 'id',
        referencedTable: WEBHOOKS_TABLE,
      },
    },
    message_id: { type: 'integer' },
    message: {
      type: 'relation',
      relation: 'manyToOne',
      target: MESSAGE,
      unstable_virtual: true,
      joinColumn: {
        name: 'message_id',
        referencedColumn: 'id',
        referencedTable: MESSAGES_TABLE,
      },
    },
    event: { type: 'string' },
    state: { type: 'string', columnName: 'status' },
    tries: { type: 'integer' },
    is_test: { type: 'boolean' },
    next_attempt_at: epoch(),
    finished_at: epoch(),
    error: { type: 'string' },
    url: { type: 'text' },
    body: { type: 'text' },
    attempts: jsonText(),
  },
  indexes: [
    { name: 'sb_delivery_log', columns: ['webhook_id', 'status', 'id'] },
    { name: 'sb_delivery_new', columns: ['webhook_id', 'id'] },
    { name: 'sb_delivery_end', columns: ['finished_at'] },
  ],
});

/**
 * What the queue keeps with a delivery (`database/leases/leased-rows.ts`). No attributes of the content
 * type, so that no transfer carries them: a row that was imported is due for nobody, here or
 * anywhere, and so is never sent by itself.
 */
const deliveryQueueColumns: PlainTable = {
  tableName: DELIVERIES_TABLE,
  attributes: {
    due_at: { type: 'biginteger' },
    owner: { type: 'string' },
  },
  indexes: [{ name: 'sb_delivery_due', columns: ['webhook_id', 'due_at'] }],
};

/**
 * One row an attempt, appended and never changed. `delivery_id` is the id of the delivery's row, `at`
 * when the attempt started; `status` is null where nothing answered.
 */
export const attemptsTable: PlainTable = {
  tableName: ATTEMPTS_TABLE,
  attributes: {
    id: { type: 'increments' },
    delivery_id: { type: 'integer' },
    webhook_id: { type: 'integer' },
    at: { type: 'biginteger' },
    manual: { type: 'boolean' },
    error: { type: 'string' },
    duration_ms: { type: 'integer' },
    url: { type: 'text' },
    request_headers: { type: 'text' },
    status: { type: 'integer' },
    answer_headers: { type: 'text' },
    answer_body: { type: 'text' },
    truncated: { type: 'boolean' },
  },
  indexes: [{ name: 'sb_attempt_delivery', columns: ['delivery_id', 'id'] }],
};

/**
 * What of a webhook is in the index of subscriptions (`subscriptions/subscription-index.ts`): its own
 * id, once it is there, and the events it had then. No attributes: what an import brings is not there.
 */
const webhookIndexColumns: PlainTable = {
  tableName: WEBHOOKS_TABLE,
  attributes: {
    indexed_id: { type: 'integer' },
    indexed_events: { type: 'text' },
  },
};

export const webhookTable: InternalTable = {
  uid: WEBHOOK,
  tableName: WEBHOOKS_TABLE,
  renamed: {},
  added: { document_id: { type: 'string' }, origin_id: { type: 'integer' } },
  filled: { origin_id: null },
  besides: webhookIndexColumns,
};

export const deliveryTable: InternalTable = {
  uid: 'plugin::switchboard.delivery',
  tableName: DELIVERIES_TABLE,
  renamed: { delivery_id: 'document_id' },
  added: {},
  filled: {},
  besides: deliveryQueueColumns,
  large: true,
};

/** A row of `switchboard_webhooks`, as the database driver hands it out. */
export interface WebhookRow {
  id: number;
  document_id: string;
  name: string;
  url: string;
  events: string;
  active: boolean | number;
  secret: string;
  disabled_reason: string | null;
  disabled_at: number | string | null;
  consecutive_failures: number;
  /** Since the last attempt that succeeded; null in rows of version 0.1. */
  failed_attempts: number | null;
  failing_since: number | string | null;
  site_instance: string | null;
  origin_id: number | null;
  created_at: number | string;
  updated_at: number | string;
}

/** A row of `switchboard_deliveries`, as the database driver hands it out. */
export interface DeliveryRow {
  id: number;
  /** The id of the delivery, of its envelope and of its header. */
  document_id: string;
  webhook_id: number;
  event: string;
  status: 'pending' | 'sent' | 'failed';
  tries: number;
  is_test: boolean | number;
  due_at: number | string | null;
  owner: string | null;
  next_attempt_at: number | string | null;
  created_at: number | string;
  finished_at: number | string | null;
  error: string | null;
  url: string;
  /** null: it is made of the message. */
  body: string | null;
  message_id: number | string | null;
  attempts: string;
  site_instance: string | null;
}

/** A row of `switchboard_messages`, as the database driver hands it out. */
export interface MessageRow {
  id: number | string;
  document_id: string;
  event: string;
  deliveries: number;
  frame: string;
  data: string;
  created_at: number | string;
  site_instance: string | null;
}

/** A row of `switchboard_attempts`, as the database driver hands it out. */
export interface AttemptRow {
  id: number;
  delivery_id: number;
  webhook_id: number;
  at: number | string;
  manual: boolean | number;
  error: string | null;
  duration_ms: number;
  url: string;
  request_headers: string;
  status: number | null;
  answer_headers: string | null;
  answer_body: string | null;
  truncated: boolean | number | null;
}
