import type { ConnectionType } from '../../../shared/contracts/pos';
import type { InternalTable } from '../database/tables/internal-tables';
import { epoch, internalType, jsonText, now } from '../database/tables/internal-types';
import type { PlainTable } from '../database/tables/plain-tables';
import type { Big } from '../stock/tables';
import type { ConnectionMode, EventState, RecordKind } from './rules/states';

export const CONNECTION = 'plugin::switchboard.pos-connection';
export const CONNECTIONS_TABLE = 'switchboard_connections';
export const POS_EVENTS_TABLE = 'switchboard_pos_events';
export const POS_WAITS_TABLE = 'switchboard_pos_waits';
export const POS_REFUSALS_TABLE = 'switchboard_pos_refusals';

/**
 * `locations` is `[{ ref, location }]`; `secret` is encrypted with the host's key; `group` is the
 * column `group_name`, because the other is a word of SQL. A deleted connection keeps its row
 * (`deleted_at`): its events and their ids outlive it. `origin_id` is the id that the row had where
 * it was made, see `arrivals.ts`.
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

export const connectionTable: InternalTable = {
  uid: CONNECTION,
  tableName: CONNECTIONS_TABLE,
  renamed: {},
  added: {
    document_id: { type: 'string' },
    origin_id: { type: 'integer' },
    type: { type: 'string' },
    active: { type: 'boolean' },
  },
  filled: { origin_id: null, type: 'Generic webhook', active: true },
};

/**
 * `due_at` and `owner` belong to the queue. `external_digest` makes an id unique in its connection,
 * byte for byte. `family_digest` is the same of the sale that a sale is or a refund names:
 * its refund group is found by it, though the column is older than that term.
 * `items` is JSON: for each line the item it was found to be, or null. `location_id` is where the
 * record's goods are (for a refund: where it names); `only_location_id` the connection's only one.
 * `took` is how many pieces a refund was allocated of its sale, `refunded` what a sale has left of
 * what (stock/rules/sale-left): null until it was worked out.
 */
export const posEventTable: PlainTable = {
  tableName: POS_EVENTS_TABLE,
  attributes: {
    id: { type: 'increments' },
    connection_id: { type: 'integer' },
    kind: { type: 'string' },
    external_id: { type: 'text' },
    external_digest: { type: 'string' },
    family_digest: { type: 'string' },
    state: { type: 'string' },
    mode: { type: 'string' },
    flags: { type: 'text' },
    settled_flags: { type: 'text' },
    payload_mismatch: { type: 'boolean' },
    occurred_at: { type: 'string' },
    effective_at: { type: 'biginteger' },
    received_at: { type: 'biginteger' },
    processed_at: { type: 'biginteger' },
    location_ref: { type: 'text' },
    location_id: { type: 'integer' },
    only_location_id: { type: 'integer' },
    items: { type: 'text' },
    stale: { type: 'text' },
    simulated: { type: 'text' },
    took: { type: 'biginteger' },
    refunded: { type: 'text' },
    body: { type: 'text' },
    body_digest: { type: 'string' },
    tries: { type: 'integer' },
    error: { type: 'text' },
    due_at: { type: 'biginteger' },
    owner: { type: 'string' },
  },
  indexes: [
    { name: 'sb_event_external', columns: ['connection_id', 'external_digest'], type: 'unique' },
    { name: 'sb_event_due', columns: ['connection_id', 'due_at'] },
    { name: 'sb_event_family', columns: ['family_digest'] },
    { name: 'sb_event_id_find', columns: ['external_digest'] },
    { name: 'sb_event_state', columns: ['state', 'id'] },
    { name: 'sb_event_log', columns: ['connection_id', 'id'] },
  ],
};

/** What lines wait for: digests of SKUs, GTINs, and of a connection's location references. */
export const posWaitTable: PlainTable = {
  tableName: POS_WAITS_TABLE,
  attributes: {
    id: { type: 'increments' },
    event_id: { type: 'integer' },
    digest: { type: 'string' },
  },
  indexes: [
    { name: 'sb_wait_digest', columns: ['digest'] },
    { name: 'sb_wait_event', columns: ['event_id'] },
  ],
};

/** The latest requests of each connection's key that were refused; at most `REFUSALS_KEPT` each. */
export const posRefusalTable: PlainTable = {
  tableName: POS_REFUSALS_TABLE,
  attributes: {
    id: { type: 'increments' },
    connection_id: { type: 'integer' },
    at: { type: 'biginteger' },
    kind: { type: 'string' },
    code: { type: 'string' },
    message: { type: 'text' },
    external_id: { type: 'text' },
  },
  indexes: [{ name: 'sb_refusal_latest', columns: ['connection_id', 'at'] }],
};

export interface ConnectionRow {
  id: number;
  document_id: string;
  name: string;
  type: ConnectionType;
  key: string;
  key_digest: string;
  secret: string;
  scopes: string;
  mode: ConnectionMode;
  group_name: string | null;
  group_digest: string | null;
  locations: string;
  active: boolean | number;
  disabled_reason: string | null;
  site_instance: string | null;
  origin_id: number | null;
  revoked_at: Big | null;
  deleted_at: Big | null;
  last_seen_at: Big | null;
  clock_skew_seconds: Big | null;
  last_error: string | null;
  last_error_at: Big | null;
  created_at: Big;
  updated_at: Big;
}

export interface PosEventRow {
  id: number;
  connection_id: number;
  kind: RecordKind;
  external_id: string;
  external_digest: string;
  family_digest: string | null;
  state: EventState;
  mode: ConnectionMode;
  flags: string;
  settled_flags: string;
  payload_mismatch: boolean | number;
  occurred_at: string;
  effective_at: Big;
  received_at: Big;
  processed_at: Big | null;
  location_ref: string | null;
  location_id: number | null;
  only_location_id: number | null;
  items: string | null;
  stale: string;
  simulated: string | null;
  took: Big | null;
  refunded: string | null;
  body: string;
  body_digest: string;
  tries: number;
  error: string | null;
  due_at: Big | null;
  owner: string | null;
}

export interface PosRefusalRow {
  id: number;
  connection_id: number;
  at: Big;
  kind: RecordKind | 'ping';
  code: string;
  message: string;
  external_id: string | null;
}

/** One entry of a connection's `locations`. */
export interface MappedLocation {
  ref: string;
  /** The location's id. */
  location: number;
}

export const mappedLocations = (row: Pick<ConnectionRow, 'locations'>): MappedLocation[] =>
  JSON.parse(row.locations || '[]') as MappedLocation[];
