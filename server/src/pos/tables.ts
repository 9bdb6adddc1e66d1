import type { TableModel } from '../room';
import type { Big } from '../stock/tables';
import type { ConnectionMode, EventState, RecordKind } from './rules/states';

export const CONNECTIONS_TABLE = 'switchboard_connections';
export const POS_EVENTS_TABLE = 'switchboard_pos_events';
export const POS_WAITS_TABLE = 'switchboard_pos_waits';

/**
 * `scopes` and `locations` (`[{ ref, location }]`) are JSON; `secret` is encrypted with the host's
 * key. A deleted connection keeps its row: its events and their ids outlive it.
 */
export const connectionTable: TableModel = {
  uid: 'plugin::switchboard.connection',
  singularName: 'switchboard_connection',
  tableName: CONNECTIONS_TABLE,
  attributes: {
    id: { type: 'increments' },
    name: { type: 'text' },
    key: { type: 'string' },
    key_digest: { type: 'string' },
    secret: { type: 'text' },
    scopes: { type: 'text' },
    mode: { type: 'string' },
    group_name: { type: 'text' },
    group_digest: { type: 'string' },
    locations: { type: 'text' },
    revoked_at: { type: 'biginteger' },
    deleted_at: { type: 'biginteger' },
    last_seen_at: { type: 'biginteger' },
    clock_skew_seconds: { type: 'biginteger' },
    last_error: { type: 'text' },
    last_error_at: { type: 'biginteger' },
    created_at: { type: 'biginteger' },
    updated_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_connection_key', columns: ['key_digest'], type: 'unique' },
    { name: 'sb_connection_group', columns: ['group_digest'] },
  ],
};

/**
 * `due_at` and `owner` belong to the queue. `external_digest` makes an id unique in its connection,
 * byte for byte. `family_digest` is the same of the sale that a sale is or a refund names.
 * `items` is JSON: for each line the item it was found to be, or null. `location_id` is where the
 * record's goods are (for a refund: where it names); `only_location_id` the connection's only one.
 */
export const posEventTable: TableModel = {
  uid: 'plugin::switchboard.pos-event',
  singularName: 'switchboard_pos_event',
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
export const posWaitTable: TableModel = {
  uid: 'plugin::switchboard.pos-wait',
  singularName: 'switchboard_pos_wait',
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

export interface ConnectionRow {
  id: number;
  name: string;
  key: string;
  key_digest: string;
  secret: string;
  scopes: string;
  mode: ConnectionMode;
  group_name: string | null;
  group_digest: string | null;
  locations: string;
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
  body: string;
  body_digest: string;
  tries: number;
  error: string | null;
  due_at: Big | null;
  owner: string | null;
}

/** One entry of a connection's `locations`. */
export interface MappedLocation {
  ref: string;
  /** The location's id. */
  location: number;
}

export const mappedLocations = (row: Pick<ConnectionRow, 'locations'>): MappedLocation[] =>
  JSON.parse(row.locations || '[]') as MappedLocation[];
