import type {
  DeliveryStatus,
  RecoveryState,
  SubjectType,
  WebhookOrdering,
  WebhookPayload,
} from '../../../shared/contracts/webhooks';
import {
  epoch,
  type InternalRow,
  internalType,
  jsonText,
  now,
} from '../database/tables/internal-types';
import type { PlainTable, RowOf } from '../database/tables/plain-tables';
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
 * `secret` is encrypted with the host's key, and so is `previous_secret`, which also signs posts until a time after a
 * rotation with an overlap. `headers` are the webhook's own, each value encrypted likewise, or null. `payload` is null
 * if full, `ordering` and `filter` if there is none, `rate_per_second` and `concurrency` if the webhook has none of its
 * own. Switching on resets `failing_since` and the counts. `origin_id` is the id that the row got when it was created:
 * an import assigns new ids, so a different id identifies an imported row.
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

/** A shared message: `frame` is event, time and site, `data` its data, as sent. Removed when `deliveries` gets 0. */
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

const relatedBy = (name: string, target: string, referencedTable: string) => ({
  type: 'relation' as const,
  relation: 'manyToOne',
  target,
  unstable_virtual: true,
  joinColumn: { name, referencedColumn: 'id', referencedTable },
});

/**
 * The document id is the id of the delivery, its envelope and its header; it has the only index. `state` is the column
 * `status`, a name that the host reserves. `next_attempt_at` is for display. `attempts` is empty: each is a row of
 * `switchboard_attempts`. `body` is as sent, or null if it shares a message with others. `extra_tries` counts manual
 * attempts among `tries` that did not use up the schedule. `error` is null until the first attempt, so the log can
 * separate waiting from failing.
 *
 * `webhook` is the column `webhook_id` as a relation, so that an import maps it to the webhook's new id; `message`
 * likewise. They are virtual: a foreign key would lock the webhook's row.
 */
export const deliveryType = internalType({
  singularName: 'delivery',
  pluralName: 'deliveries',
  displayName: 'Delivery',
  collectionName: DELIVERIES_TABLE,
  attributes: {
    webhook_id: { type: 'integer' },
    webhook: relatedBy('webhook_id', WEBHOOK, WEBHOOKS_TABLE),
    message_id: { type: 'integer' },
    message: relatedBy('message_id', MESSAGE, MESSAGES_TABLE),
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

/** Delivery columns that transfers omit. `paused_ms`: total requested delay; `released_at`: later ones do not wait. */
export const deliveryOwnColumns = {
  tableName: DELIVERIES_TABLE,
  attributes: {
    paused_ms: { type: 'biginteger', null: true },
    released_at: { type: 'biginteger', null: true },
  },
  // Each row is written once more, when it ends. Measured on PostgreSQL 15 with five indexes: at 100
  // percent 4 % of those updates left the indexes alone, at 60 percent 77 %, at 50 percent all of them,
  // with nearly half of the write-ahead log saved.
  fillFactor: 50,
} satisfies PlainTable;

/**
 * The delivery queue, by row id: waiting ones, and failed ones to be found. Imported deliveries are not in it, so they
 * are never sent automatically. `section` is one of `SECTIONS`; `section`, `error` and `created_at` are the log's.
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
    // The webhook, by which causes are counted, only so that no row has to be read for it.
    {
      name: 'sb_delivery_found_all',
      columns: ['section', 'error', 'created_at', 'id', 'group_id'],
    },
  ]
);

/** Records whose deliveries go one after the other, of webhooks with an order. */
export const deliveryOrderTable = orderTable(DELIVERY_ORDER_TABLE, 'sb_delivery_order');

/** Leases of webhooks with a cap. */
export const deliverySlotsTable = slotsTable(DELIVERY_SLOTS_TABLE, 'sb_delivery_slots');

/** A row per webhook with a rate or an order, locked by claims. `free_at`: when its rate allows more, microseconds. */
export const webhookLocksTable = groupLocksTable(WEBHOOK_LOCKS_TABLE);

/** An append-only row per attempt. `delivery_id`: row id; `at`: start of the attempt; `status`: null without answer. */
export const attemptsTable = {
  tableName: ATTEMPTS_TABLE,
  attributes: {
    delivery_id: { type: 'integer' },
    webhook_id: { type: 'integer' },
    at: { type: 'biginteger' },
    manual: { type: 'boolean' },
    error: { type: 'string', null: true },
    duration_ms: { type: 'integer' },
    url: { type: 'text' },
    request_headers: { type: 'text' },
    status: { type: 'integer', null: true },
    answer_headers: { type: 'text', null: true },
    answer_body: { type: 'text', null: true },
    truncated: { type: 'boolean', null: true },
  },
  indexes: [{ name: 'sb_attempt_delivery', columns: ['delivery_id', 'id'] }],
} satisfies PlainTable;

/**
 * Own columns, which imports do not bring. `indexed_id` and `indexed_events` are its entry in the index of
 * subscriptions (`webhooks/subscriptions.ts`): its id and its events at that time. Its health counts attempts from here
 * (`webhooks/rules/failing.ts`): whether there was one, the first failure after the last success, and when the alarm
 * was sent (`alarmed_at`). `paused_until`: nothing is sent before, because its receiver asked for that.
 * `answered_rotation` is the `previous_secret_until` of the rotation since which a post was answered 2xx, so later
 * rotations need no reset. `activation` counts activations and changes of address: attempts of an earlier one say
 * nothing about the current one. `changed_by` is the panel user who changed it last.
 */
export const webhookOwnColumns = {
  tableName: WEBHOOKS_TABLE,
  attributes: {
    indexed_id: { type: 'integer', null: true },
    indexed_events: { type: 'text', null: true },
    attempted: { type: 'boolean', null: true },
    unwell_since: { type: 'biginteger', null: true },
    alarmed_at: { type: 'biginteger', null: true },
    paused_until: { type: 'biginteger', null: true },
    answered_rotation: { type: 'biginteger', null: true },
    activation: { type: 'integer', null: true },
    changed_by: { type: 'text', null: true },
  },
} satisfies PlainTable;

export type WebhookRow = InternalRow<
  typeof webhookType,
  'name' | 'url' | 'active' | 'secret' | 'consecutive_failures' | 'updated_at',
  { payload: WebhookPayload | null; ordering: WebhookOrdering | null }
> &
  RowOf<typeof webhookOwnColumns>;

export type DeliveryRow = InternalRow<
  typeof deliveryType,
  'webhook_id' | 'event' | 'tries' | 'is_test' | 'url',
  { status: DeliveryStatus; subject_type: SubjectType | null }
> &
  RowOf<typeof deliveryOwnColumns>;

export type MessageRow = InternalRow<typeof messageType, 'event' | 'deliveries' | 'frame' | 'data'>;

export type AttemptRow = RowOf<typeof attemptsTable>;

export const RECOVERIES_TABLE = 'switchboard_recoveries';
export const RECOVERY_ITEMS_TABLE = 'switchboard_recovery_items';

/**
 * Recoveries, and previews until they are started. `token`: the preview's id; `kind`: the source of items, `filter`
 * (JSON) its selection, `boundary` the last row to look at. `collected_at`: when all items were there, `moved_at`: last
 * item change. `due_at`: next look, null: never again. Times are epoch milliseconds of the database's clock.
 */
export const recoveriesTable = {
  tableName: RECOVERIES_TABLE,
  attributes: {
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
    collected_at: { type: 'biginteger', null: true },
    moved_at: { type: 'biginteger' },
    finished_at: { type: 'biginteger', null: true },
    due_at: { type: 'biginteger', null: true },
  },
  indexes: [
    { name: 'sb_recovery_token', columns: ['token'], type: 'unique' },
    { name: 'sb_recovery_due', columns: ['due_at'] },
  ],
} satisfies PlainTable;

/**
 * Items of a recovery. `ref` is the source's id, `at` its time (oldest first); `delivery_id` is the delivery's row id,
 * null if the source creates it on queueing; `tries` are its attempts at that time.
 */
export const recoveryItemsTable = {
  tableName: RECOVERY_ITEMS_TABLE,
  attributes: {
    recovery_id: { type: 'integer' },
    ref: { type: 'integer' },
    webhook_id: { type: 'integer' },
    at: { type: 'biginteger' },
    delivery_id: { type: 'integer', null: true },
    state: { type: 'string', column: { args: [20] } },
    tries: { type: 'integer', null: true },
  },
  indexes: [
    { name: 'sb_recovery_item', columns: ['recovery_id', 'ref'], type: 'unique' },
    { name: 'sb_recovery_next', columns: ['recovery_id', 'state', 'webhook_id', 'at', 'ref'] },
  ],
} satisfies PlainTable;

/** `skipped`: there was nothing left to send when its turn came. */
export type ItemState = 'waiting' | 'queued' | 'sent' | 'failed' | 'skipped';

export type RecoveryKind = 'deliveries' | 'journal';

export type RecoveryRow = RowOf<typeof recoveriesTable> & {
  kind: RecoveryKind;
  state: RecoveryState | 'preview';
};

export type RecoveryItemRow = RowOf<typeof recoveryItemsTable> & { state: ItemState };
