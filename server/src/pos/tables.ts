import type { ConnectionType, CustomerRule } from '../../../shared/contracts/pos';
import type { MappingKind } from '../../../shared/contracts/pos-mapping';
import {
  epoch,
  type InternalRow,
  internalType,
  jsonText,
  now,
} from '../database/tables/internal-types';
import type { PlainTable, RowOf } from '../database/tables/plain-tables';
import { queueTable } from '../queue/queue';
import type { ConnectionMode, EventKind, EventState } from './rules/records';

export const CONNECTION = 'plugin::switchboard.pos-connection';
export const CONNECTIONS_TABLE = 'switchboard_connections';
export const POS_EVENTS_TABLE = 'switchboard_pos_events';
export const RECORD_QUEUE_TABLE = 'switchboard_record_queue';
export const POS_WAITS_TABLE = 'switchboard_pos_waits';
export const POS_MAPPINGS_TABLE = 'switchboard_pos_mappings';
export const POS_MAPPED_LINES_TABLE = 'switchboard_pos_mapped_lines';
export const POS_CLOSINGS_TABLE = 'switchboard_pos_closings';

/**
 * `locations` is `[{ ref, location }]`; `secret` is encrypted with the host's key; `group` is the column `group_name`,
 * because the other is a word of SQL. A deleted connection keeps its row (`deleted_at`): its events and their ids
 * outlive it. `origin_id` is the id that the row had where it was made, see `connections.ts`. `watched_from` is when it
 * was last made live or switched on, and `silent_since` how old its silence was when it was told (silence.ts).
 */
export const connectionType = internalType({
  singularName: 'pos-connection',
  pluralName: 'pos-connections',
  displayName: 'POS connection',
  collectionName: CONNECTIONS_TABLE,
  attributes: {
    name: { type: 'text' },
    type: { type: 'string', default: 'Generic webhook' },
    key: { type: 'string' },
    key_digest: { type: 'string', private: true },
    secret: { type: 'text', private: true },
    scopes: jsonText(),
    mode: { type: 'string' },
    group: { type: 'text', columnName: 'group_name' },
    group_digest: { type: 'string', private: true },
    locations: jsonText(),
    customers: { type: 'string' },
    country: { type: 'string' },
    expected_every_minutes: { type: 'integer' },
    open_hours: jsonText(),
    watched_from: epoch(),
    silent_since: epoch(),
    active: { type: 'boolean', default: true },
    disabled_reason: { type: 'text' },
    revoked_at: epoch(),
    deleted_at: epoch(),
    last_seen_at: epoch(),
    clock_skew_seconds: epoch(),
    last_error: { type: 'text' },
    last_error_at: epoch(),
    updated_at: now(),
    origin_id: { type: 'integer', private: true },
  },
  indexes: [
    { name: 'sb_connection_key', columns: ['key_digest'], type: 'unique' },
    { name: 'sb_connection_group', columns: ['group_digest'] },
  ],
});

/**
 * The log of records; which of them are to be applied, and when, is in `recordQueueTable`. `external_digest` makes an id
 * unique in its connection, byte for byte. `family_digest` is the same of the sale that a sale is or a refund names: its
 * refund group is found by it, though the column is older than that term. `items` is JSON: for each line the item it was
 * found to be, or null. `location_id` is where the record's goods are (for a refund: where it names); `only_location_id` the
 * connection's only one. `took` is how many pieces a refund was allocated of its sale, `refunded` what a sale has left of
 * what (stock/rules/allocation): null until it was worked out. `counted_places` is JSON: for each line of a stocktake the
 * `[item, location]` whose older counts it makes stale, or null. `accepted_at` is when its owner said that a refund does not
 * wait for its sale; `by_hand` is JSON: who did that, or had it processed again, and when (admin/events-service.ts), null
 * until somebody did. `ignored` is JSON: the lines that a mapping says to ignore. `occurred_ms` is `occurred_at` in epoch
 * milliseconds; `counted` is what the sales figures have of a live sale or refund (sales-figures.ts), null while they have
 * nothing; `money_left` what a sale's refunds have left of its money (rules/refunds), null if that takes another look.
 */
export const posEventTable = {
  tableName: POS_EVENTS_TABLE,
  attributes: {
    connection_id: { type: 'integer' },
    kind: { type: 'string' },
    external_id: { type: 'text' },
    external_digest: { type: 'string' },
    family_digest: { type: 'string', null: true },
    state: { type: 'string' },
    mode: { type: 'string' },
    flags: { type: 'text' },
    settled_flags: { type: 'text' },
    payload_mismatch: { type: 'boolean' },
    occurred_at: { type: 'string' },
    occurred_ms: { type: 'biginteger' },
    effective_at: { type: 'biginteger' },
    received_at: { type: 'biginteger' },
    processed_at: { type: 'biginteger', null: true },
    location_ref: { type: 'text', null: true },
    location_id: { type: 'integer', null: true },
    only_location_id: { type: 'integer', null: true },
    items: { type: 'text', null: true },
    ignored: { type: 'text', null: true },
    stale: { type: 'text' },
    simulated: { type: 'text', null: true },
    took: { type: 'biginteger', null: true },
    refunded: { type: 'text', null: true },
    counted: { type: 'text', null: true },
    money_left: { type: 'text', null: true },
    body: { type: 'text' },
    body_digest: { type: 'string' },
    tries: { type: 'integer' },
    error: { type: 'text', null: true },
    accepted_at: { type: 'biginteger', null: true },
    by_hand: { type: 'text', null: true },
    counted_places: { type: 'text', null: true },
  },
  indexes: [
    { name: 'sb_event_external', columns: ['connection_id', 'external_digest'], type: 'unique' },
    { name: 'sb_event_family', columns: ['family_digest'] },
    { name: 'sb_event_id_find', columns: ['external_digest'] },
    { name: 'sb_event_state', columns: ['state', 'id'] },
    { name: 'sb_event_log', columns: ['connection_id', 'id'] },
    { name: 'sb_event_occurred', columns: ['connection_id', 'occurred_ms'] },
  ],
} satisfies PlainTable;

/**
 * The records that are not done. `woken_by` says what one was brought forward for and was not worked on
 * since, null if nothing did; `size` is the length of its body.
 */
export const recordQueueTable = queueTable(RECORD_QUEUE_TABLE, 'sb_record_queue', {
  woken_by: { type: 'string' },
  size: { type: 'integer' },
});

/**
 * Values that lines wait for: digests of SKUs, GTINs, and of a connection's location references. `inbox_digest` says
 * which row of the mapping inbox they are in, if in any, `at` when the record was received.
 */
export const posWaitTable: PlainTable = {
  tableName: POS_WAITS_TABLE,
  attributes: {
    event_id: { type: 'integer' },
    digest: { type: 'string' },
    kind: { type: 'string' },
    value: { type: 'text' },
    inbox_digest: { type: 'string' },
    connection_id: { type: 'integer' },
    pieces: { type: 'biginteger' },
    at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_wait_digest', columns: ['digest'] },
    { name: 'sb_wait_event', columns: ['event_id'] },
    { name: 'sb_wait_inbox', columns: ['inbox_digest'] },
  ],
};

/**
 * Closings in addition to their events: the range that each counts (epoch milliseconds, `to_at` not
 * included) and, as JSON, its latest comparison with the records. `due_at` says that records of its range
 * were processed since (epoch milliseconds, when it is to be compared again).
 */
export const posClosingTable = {
  tableName: POS_CLOSINGS_TABLE,
  attributes: {
    event_id: { type: 'integer' },
    connection_id: { type: 'integer' },
    mode: { type: 'string' },
    from_at: { type: 'biginteger' },
    to_at: { type: 'biginteger' },
    result: { type: 'text' },
    due_at: { type: 'biginteger', null: true },
  },
  indexes: [
    { name: 'sb_closing_due', columns: ['due_at'] },
    { name: 'sb_closing_range', columns: ['connection_id', 'to_at'] },
    { name: 'sb_closing_event', columns: ['event_id'], type: 'unique' },
  ],
} satisfies PlainTable;

/**
 * The owner's decisions about values that tills send and the site does not know. `active_digest` is that of the value
 * while the mapping holds: one value has one mapping. One without an item and a location ignores the lines. `made_item`
 * is set where the item was made by it, `revived_item` where it was archived and is back because of it.
 */
export const posMappingTable = {
  tableName: POS_MAPPINGS_TABLE,
  attributes: {
    kind: { type: 'string' },
    value: { type: 'text' },
    active_digest: { type: 'string', null: true },
    connection_id: { type: 'integer', null: true },
    item_id: { type: 'integer', null: true },
    location_id: { type: 'integer', null: true },
    made_item: { type: 'boolean', null: true },
    revived_item: { type: 'boolean', null: true },
    made_by: { type: 'text', null: true },
    created_at: { type: 'biginteger' },
    undone_at: { type: 'biginteger', null: true },
  },
  indexes: [
    { name: 'sb_mapping_value', columns: ['active_digest'], type: 'unique' },
    { name: 'sb_mapping_item', columns: ['item_id'] },
  ],
} satisfies PlainTable;

/**
 * Which lines a mapping decided, so that it can be undone; every line of an item that it made among them.
 * `line` is `WHOLE_RECORD` where it decided the record's location. Movements cannot replace them: a trial
 * or a record without a place has none, and one that is applied at the same time as the undoing is found,
 * after a crash too, by the rows that were written here with it.
 */
export const posMappedLineTable: PlainTable = {
  tableName: POS_MAPPED_LINES_TABLE,
  attributes: {
    mapping_id: { type: 'integer' },
    event_id: { type: 'integer' },
    line: { type: 'integer' },
  },
  indexes: [
    { name: 'sb_mapped_mapping', columns: ['mapping_id'] },
    { name: 'sb_mapped_event', columns: ['event_id'] },
  ],
};

export const WHOLE_RECORD = -1;

/**
 * Causes that bring an event forward: an item or a mapping that there is now, a connection's other map or
 * group, a mapping that was undone, its owner, a failed attempt that is to be repeated.
 */
export type WokenBy = 'item' | 'mapping' | 'connection' | 'mapping_undone' | 'owner' | 'retry';

export type PosMappingRow = RowOf<typeof posMappingTable> & { kind: MappingKind };

export type ConnectionRow = InternalRow<
  typeof connectionType,
  'name' | 'key' | 'key_digest' | 'secret' | 'scopes' | 'locations' | 'active' | 'updated_at',
  { type: ConnectionType; mode: ConnectionMode; customers: CustomerRule | null }
>;

export type PosEventRow = RowOf<typeof posEventTable> & {
  kind: EventKind;
  state: EventState;
  mode: ConnectionMode;
};

export type PosClosingRow = RowOf<typeof posClosingTable> & { mode: ConnectionMode };

/** The remarks on an event, at its acceptance and since. */
export const flagsOf = (
  row: Pick<PosEventRow, 'flags' | 'settled_flags' | 'payload_mismatch'>
): string[] => [
  ...(JSON.parse(row.flags || '[]') as string[]),
  ...(JSON.parse(row.settled_flags || '[]') as string[]),
  ...(row.payload_mismatch ? ['payload_mismatch'] : []),
];
