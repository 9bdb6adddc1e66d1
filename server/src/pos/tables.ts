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
 * `locations` is `[{ ref, location }]`; `secret` is encrypted with the host's key; `group_name` because `group` is SQL.
 * A deleted connection keeps its row (`deleted_at`), as its events and ids outlive it. `origin_id` is its id where it
 * was created (connections.ts). `watched_from`: last made live or active; `silent_since`: start of the reported silence.
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
 * The log of records; `recordQueueTable` has which of them to apply, and when.
 *
 * - `external_digest` makes an id unique in its connection, byte for byte; `family_digest` is the same for the sale
 *   that a sale is or a refund names, by which its refund group is found.
 * - `items` is JSON: the item of each line, or null. `counted_places` is JSON: for each line of a stocktake the `[item,
 *   location]` whose older counts it makes stale, or null. `ignored` is JSON: lines that a mapping ignores.
 * - `location_id` is where the goods are (of a refund: what it names); `only_location_id` the connection's only
 *   location.
 * - `took` is how many pieces of its sale a refund was allocated, `refunded` the rest of a sale's goods
 *   (stock/rules/allocation); null until computed.
 * - `accepted_at` is when its owner accepted a refund without its sale; `by_hand` is JSON: who did that, or had it
 *   processed again, and when (admin/events-service.ts).
 * - `occurred_ms` is `occurred_at` in epoch milliseconds; `counted` is its part of the sales figures
 *   (sales-figures.ts), null if none; `money_left` the rest of a sale's money (rules/refunds), null if it must be
 *   computed again.
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

/** Unfinished records. `woken_by`: why one was brought forward and not processed since, or null; `size`: in bytes. */
export const recordQueueTable = queueTable(RECORD_QUEUE_TABLE, 'sb_record_queue', {
  woken_by: { type: 'string' },
  size: { type: 'integer' },
});

/** Digests of what lines wait for: SKU, GTIN, location. `inbox_digest`: of the mapping inbox; `at`: of the record. */
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
 * Closings in addition to their events: the range (epoch milliseconds, `to_at` excluded) and, as JSON, the latest
 * comparison. `due_at`: when to compare again (epoch milliseconds), as records of the range were processed since.
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
 * Owners' decisions about unknown values. `active_digest` is the value's while the mapping is active: one value has one
 * mapping. Without item and location it ignores the lines. `made_item` is set if the mapping created the item,
 * `revived_item` if it restored an archived one.
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
 * Lines that a mapping decided, to undo it; all lines of an item it created. `line` is `WHOLE_RECORD` for a location.
 * Movements cannot replace them: trials and records without a place have none, and a record applied during the undo is
 * found by these rows, also after a crash.
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

/** Causes that bring an event forward. `connection`: another map or group of it; `retry`: an attempt to repeat. */
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
