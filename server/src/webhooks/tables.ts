import type {
  RecoveryState,
  SubjectType,
  WebhookOrdering,
  WebhookPayload,
} from '../../../shared/contracts/webhooks';
import { epoch, internalType, jsonText, now } from '../database/tables/internal-types';
import type { PlainTable } from '../database/tables/plain-tables';
import { orderTable, slotsTable, groupLocksTable } from '../queue/limited-queue';
import { queueTable } from '../queue/queue';

export const WEBHOOK = 'plugin::switchboard.webhook';
export const WEBHOOKS_TABLE = 'switchboard_webhooks';
export const DELIVERIES_TABLE = 'switchboard_deliveries';
const MESSAGE = 'plugin::switchboard.message';
export const MESSAGES_TABLE = 'switchboard_messages';
export const ATTEMPTS_TABLE = 'switchboard_attempts';
export const DELIVERY_QUEUE_TABLE = 'switchboard_delivery_queue';
export const DELIVERY_ORDER_TABLE = 'switchboard_delivery_order';
export const DELIVERY_SLOTS_TABLE = 'switchboard_delivery_slots';
export const WEBHOOK_LOCKS_TABLE = 'switchboard_webhook_turns';
export const SUBSCRIPTIONS_TABLE = 'switchboard_subscriptions';

/**
 * `secret` is encrypted with the host's key, and so is `previous_secret`, with which posts are signed too
 * until a time, where somebody rotated with an overlap. `headers` are the webhook's own, by their names,
 * each value encrypted likewise, or null. `payload` is null if it is full, `ordering` and `filter` where
 * there is none, `rate_per_second` and `concurrency` where no own one is. Switching it on resets
 * `failing_since` and the counts. `origin_id` is the id that the row had where it was made: an import
 * gives rows ids of their own, and so it is known to be one.
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
    payload: { type: 'string' },
    filter: jsonText(),
    rate_per_second: { type: 'float' },
    concurrency: { type: 'integer' },
    ordering: { type: 'string' },
    previous_secret: { type: 'text', private: true },
    previous_secret_until: epoch(),
    headers: { ...jsonText(), private: true },
    origin_id: { type: 'integer', private: true },
  },
});

/**
 * A shared message: `frame` is the envelope's event, time and site, `data` its data, both as the text
 * that is sent. `deliveries` counts those that need it; it goes with the last.
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
 * The document id is the delivery's id; the host's index on it is the only one. `state` is the column
 * `status`, a name that the host keeps for itself. `next_attempt_at` is what the owner of the site is
 * shown. `attempts` is empty: each is a row of `switchboard_attempts`. `body` is what is sent, or null if
 * it shares a message with others. `error` is null as long as nothing was tried: so the log tells apart
 * what waits and what fails.
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
    extra_tries: { type: 'integer' },
    is_test: { type: 'boolean' },
    next_attempt_at: epoch(),
    finished_at: epoch(),
    error: { type: 'string' },
    subject_type: { type: 'string' },
    subject_id: { type: 'string' },
    subject_label: { type: 'string' },
    url: { type: 'text' },
    replayed: { type: 'boolean' },
    body: { type: 'text' },
    attempts: jsonText(),
  },
  // Columns that never change, docs/decisions/0035-what-is-not-done-is-in-a-queue-of-its-own.md.
  indexes: [
    { name: 'sb_delivery_new', columns: ['webhook_id', 'created_at', 'id'] },
    { name: 'sb_delivery_all', columns: ['created_at', 'id'] },
    { name: 'sb_delivery_event', columns: ['event', 'created_at', 'id'] },
    { name: 'sb_delivery_subject', columns: ['subject_type', 'subject_id', 'created_at', 'id'] },
  ],
});

/**
 * Columns of a delivery that are no attributes of the content type, so that no transfer carries them.
 * `paused_ms` is by how much its receiver has put it off; with `released_at` later ones of its record do
 * not wait for it.
 */
export const deliveryOwnColumns: PlainTable = {
  tableName: DELIVERIES_TABLE,
  attributes: { paused_ms: { type: 'biginteger' }, released_at: { type: 'biginteger' } },
  // Each row is written once more, when it ends. Measured on PostgreSQL 15 with five indexes: at 100
  // percent 4 % of those updates left the indexes alone, at 60 percent 77 %, at 50 percent all of them,
  // with nearly half of the write-ahead log saved.
  fillFactor: 50,
};

/**
 * The queue of deliveries, by the ids of their rows: what waits, and what failed, to be found. A delivery
 * that an import brought is not in it, and so is never sent by itself. `section` is one of `SECTIONS`;
 * it, `error` and `created_at` are those of the log.
 */
export const deliveryQueueTable = queueTable(
  DELIVERY_QUEUE_TABLE,
  'sb_delivery_queue',
  {
    section: { type: 'integer' },
    error: { type: 'string' },
    event: { type: 'string' },
    created_at: { type: 'biginteger' },
  },
  [
    {
      name: 'sb_delivery_found',
      columns: ['group_id', 'section', 'error', 'created_at', 'id'],
    },
    { name: 'sb_delivery_found_all', columns: ['section', 'error', 'created_at', 'id'] },
  ]
);

/** Records whose deliveries go one after the other, of webhooks with an order. */
export const deliveryOrderTable = orderTable(DELIVERY_ORDER_TABLE, 'sb_delivery_order');

/** Leases of webhooks with a cap. */
export const deliverySlotsTable = slotsTable(DELIVERY_SLOTS_TABLE, 'sb_delivery_slots');

/**
 * One row for each webhook that has a rate or an order: a claim locks this row, so claims follow one
 * another. `free_at` is when its rate allows the next attempt, in microseconds since 1970.
 */
export const webhookLocksTable = groupLocksTable(WEBHOOK_LOCKS_TABLE);

/**
 * One row an attempt, appended and never changed. `delivery_id` is the id of the delivery's row, `at`
 * when the attempt started; `status` is null if nothing answered.
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
 * A webhook's entry in the index of subscriptions (`webhooks/subscriptions.ts`): its own id, once it is
 * there, and the events it had then. No attributes: what an import brings is not there. Nor is its health
 * (`webhooks/rules/failing.ts`), which is about attempts from here: whether there was one, and when the
 * first one after the last success failed; `alarmed_at`: when somebody was told that it fails.
 * `answered_rotation` is the `previous_secret_until` of the rotation since which a post was answered 2xx:
 * of another rotation it says nothing, so none has to reset it. `activation` counts how often it was
 * switched on or given another address: an attempt of an earlier one says nothing of it.
 */
export const webhookOwnColumns: PlainTable = {
  tableName: WEBHOOKS_TABLE,
  attributes: {
    indexed_id: { type: 'integer' },
    indexed_events: { type: 'text' },
    attempted: { type: 'boolean' },
    unwell_since: { type: 'biginteger' },
    alarmed_at: { type: 'biginteger' },
    paused_until: { type: 'biginteger' },
    answered_rotation: { type: 'biginteger' },
    activation: { type: 'integer' },
  },
};

/** A row of `switchboard_webhooks`, as the database driver hands it out. */
export interface WebhookRow {
  id: number;
  document_id: string;
  name: string;
  url: string;
  /** null: somebody else made the row, and left them out. */
  events: string | null;
  active: boolean | number;
  secret: string;
  disabled_reason: string | null;
  disabled_at: number | string | null;
  consecutive_failures: number;
  /** Since the last attempt that succeeded; null in rows of version 0.1. */
  failed_attempts: number | null;
  failing_since: number | string | null;
  payload: WebhookPayload | null;
  /** JSON Schema as text. */
  filter: string | null;
  rate_per_second: number | string | null;
  concurrency: number | string | null;
  ordering: WebhookOrdering | null;
  previous_secret: string | null;
  previous_secret_until: number | string | null;
  /** JSON: name to sealed value. */
  headers: string | null;
  answered_rotation: number | string | null;
  /** null, too: no attempt was made. */
  attempted: boolean | number | null;
  unwell_since: number | string | null;
  alarmed_at: number | string | null;
  /** Nothing is sent before; its receiver asked for it. */
  paused_until: number | string | null;
  /** null: 0. */
  activation: number | null;
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
  /** Attempts by hand among `tries` that used up none of the schedule; null: none. */
  extra_tries: number | null;
  is_test: boolean | number;
  paused_ms: number | string | null;
  released_at: number | string | null;
  next_attempt_at: number | string | null;
  created_at: number | string;
  finished_at: number | string | null;
  error: string | null;
  subject_type: SubjectType | null;
  subject_id: string | null;
  subject_label: string | null;
  url: string;
  /** null: it is made of the message. */
  body: string | null;
  message_id: number | string | null;
  /** null, too: it is no event of the journal that was sent later. */
  replayed: boolean | number | null;
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

export const RECOVERIES_TABLE = 'switchboard_recoveries';
export const RECOVERY_ITEMS_TABLE = 'switchboard_recovery_items';

/**
 * Recoveries, and previews of them until they are started. `token` is the preview's id; `kind` says
 * which source finds its items, `filter` (JSON) what that is asked for, and `boundary` up to which row it
 * looks. Counts are as in the answers; `collected_at` is when all its items were there, `moved_at` when
 * one of them last changed. `due_at` is when it is to be looked at; null: never again. Times are epoch
 * milliseconds of the database's clock.
 */
export const recoveriesTable: PlainTable = {
  tableName: RECOVERIES_TABLE,
  attributes: {
    id: { type: 'increments' },
    token: { type: 'string', column: { args: [36] } },
    kind: { type: 'string', column: { args: [20] } },
    state: { type: 'string', column: { args: [20] } },
    filter: { type: 'text' },
    boundary: { type: 'biginteger' },
    matching: { type: 'integer' },
    queued: { type: 'integer' },
    sent: { type: 'integer' },
    failed: { type: 'integer' },
    created_at: { type: 'biginteger' },
    collected_at: { type: 'biginteger' },
    moved_at: { type: 'biginteger' },
    finished_at: { type: 'biginteger' },
    due_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_recovery_token', columns: ['token'], type: 'unique' },
    { name: 'sb_recovery_due', columns: ['due_at'] },
  ],
};

/**
 * The items that a recovery has to send. `ref` is what its source knows it by and `at` its time, by which
 * the oldest are queued first; `delivery_id` is the id of the delivery's row, null if its source makes
 * that when it queues it; `tries` are the attempts that this had then.
 */
export const recoveryItemsTable: PlainTable = {
  tableName: RECOVERY_ITEMS_TABLE,
  attributes: {
    id: { type: 'increments' },
    recovery_id: { type: 'integer' },
    ref: { type: 'integer' },
    webhook_id: { type: 'integer' },
    at: { type: 'biginteger' },
    delivery_id: { type: 'integer' },
    state: { type: 'string', column: { args: [20] } },
    tries: { type: 'integer' },
  },
  indexes: [
    { name: 'sb_recovery_item', columns: ['recovery_id', 'ref'], type: 'unique' },
    { name: 'sb_recovery_next', columns: ['recovery_id', 'state', 'webhook_id', 'at', 'ref'] },
  ],
};

/** `skipped`: when it was its turn there was nothing to send again any more. */
export type ItemState = 'waiting' | 'queued' | 'sent' | 'failed' | 'skipped';

/** The kinds of sources of a recovery. */
export type RecoveryKind = 'deliveries' | 'journal';

/** A row of `switchboard_recoveries`, as the database driver hands it out. */
export interface RecoveryRow {
  id: number;
  token: string;
  kind: RecoveryKind;
  state: RecoveryState | 'preview';
  filter: string;
  boundary: number | string;
  matching: number;
  queued: number;
  sent: number;
  failed: number;
  created_at: number | string;
  collected_at: number | string | null;
  moved_at: number | string;
  finished_at: number | string | null;
  due_at: number | string | null;
}

/** A row of `switchboard_recovery_items`, as the database driver hands it out. */
export interface RecoveryItemRow {
  id: number;
  recovery_id: number;
  ref: number;
  webhook_id: number;
  at: number | string;
  delivery_id: number | null;
  state: ItemState;
  tries: number | null;
}
