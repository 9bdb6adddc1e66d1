import type { LocationSummary, PlacedMovement } from './stock';

/** Types of `/switchboard/{connections,pos-events}…`; docs/tills.md#connections. Times are ISO 8601. */

/** The three kinds of record a till can send; the last part of the route's path. */
export const RECORD_KINDS = ['sale', 'refund', 'inventory'] as const;
export type PosEventKind = (typeof RECORD_KINDS)[number];

export const CONNECTION_SCOPES = ['sale:write', 'refund:write', 'inventory:write'] as const;
export type ConnectionScope = (typeof CONNECTION_SCOPES)[number];

export const CONNECTION_MODES = ['live', 'test'] as const;
export type ConnectionMode = (typeof CONNECTION_MODES)[number];

/** What a connection may be; docs/contract-pos.md#connections. */
export const CONNECTION_TYPES = ['Generic webhook'] as const;
export type ConnectionType = (typeof CONNECTION_TYPES)[number];

/** A till's name of a location beside ours. */
export interface ConnectionLocation {
  ref: string;
  location: LocationSummary;
}

export interface Connection {
  id: number;
  name: string;
  type: ConnectionType;
  /** `pos_live_…` or `pos_test_…`, by the mode the connection was made in; the same for life. */
  key: string;
  scopes: ConnectionScope[];
  mode: ConnectionMode;
  /** Connections of one group find each other's sales when they refund. */
  group: string | null;
  /** Empty: single-store mode, everything goes to the default location. */
  locations: ConnectionLocation[];
  /** False: its requests are 401 `revoked_key` until its owner switches it on. */
  active: boolean;
  /** Why it is off, where its owner did not switch it off. */
  disabled_reason: string | null;
  revoked_at: string | null;
  last_seen_at: string | null;
  /** The till's clock minus ours, in seconds, at its last signed request. */
  clock_skew_seconds: number | null;
  last_error: string | null;
  last_error_at: string | null;
  created_at: string;
  updated_at: string;
}

/** The secret is shown here and never again. */
export interface ConnectionWithSecret extends Connection {
  secret: string;
}

export interface ConnectionInput {
  name: string;
  /** Default: Generic webhook. */
  type?: ConnectionType;
  scopes: ConnectionScope[];
  /** Default: test. */
  mode?: ConnectionMode;
  group?: string | null;
  /** `location` is a location's id or code. */
  locations?: { ref: string; location: number | string }[];
  /** Only of a connection that exists: switches it on or off. */
  active?: boolean;
}

/** How many refusals of a connection are kept. */
export const REFUSALS_KEPT = 50;

/** A request of a connection's key that was refused; `GET /switchboard/connections/:id/refusals`. */
export interface ConnectionRefusal {
  at: string;
  kind: PosEventKind | 'ping';
  /** As the till was told: `signature_mismatch`, `schema_invalid`, `stale_count` … */
  code: string;
  /** Exactly what the till was told. */
  message: string;
  /** Of the refused record, where the connection signed it and it can be read. */
  external_id: string | null;
}

/**
 * Where an accepted record stands.
 *
 * - `pending`: accepted, not processed yet.
 * - `applied`: all its lines are in the ledger.
 * - `partially_applied`: some lines are, the others wait for an item or a location.
 * - `needs_mapping`: all lines wait, or a refund fits more than one sale.
 * - `held`: a refund whose sale was not seen yet.
 * - `simulated`: came through a test connection; the movements were worked out, not written.
 * - `failed`: processing gave up; an owner can have it processed again.
 */
export const POS_EVENT_STATES = [
  'pending',
  'applied',
  'partially_applied',
  'needs_mapping',
  'held',
  'simulated',
  'failed',
] as const;
export type PosEventState = (typeof POS_EVENT_STATES)[number];

/** A movement that a test-mode record would have made. */
export interface SimulatedMovement {
  type: PlacedMovement['type'];
  sku: string;
  location: LocationSummary;
  effective_at: string;
  quantity: number;
  effect: number;
  reason: string | null;
}

export interface PosEvent {
  id: number;
  event_id: number;
  connection: { id: number; name: string };
  kind: PosEventKind;
  external_id: string;
  state: PosEventState;
  mode: ConnectionMode;
  flags: string[];
  occurred_at: string;
  effective_at: string;
  received_at: string;
  processed_at: string | null;
  /** When a held refund stops waiting for its sale. */
  held_until: string | null;
  location_ref: string | null;
  /** Lines of a count that were older than an accepted one, as sent. */
  stale: { sku: string; quantity: number }[];
  /** What its lines wait for. */
  waiting: { line: number | null; sku?: string; gtin?: string; location_ref?: string }[];
  error: string | null;
}

export interface PosEventDetail extends PosEvent {
  /** The body exactly as sent. */
  body: string;
  movements: PlacedMovement[];
  /** What a test-mode record would have done; empty for live ones. */
  simulated: SimulatedMovement[];
}

/** The answer to an accepted or repeated record. */
export interface Accepted {
  ok: true;
  event_id: number;
  state: PosEventState;
  duplicate: boolean;
  /** Another body came under an id that was accepted before; the first one counts. */
  payload_mismatch?: true;
  stale?: { sku: string; quantity: number }[];
}

/** Every error of the namespace; further keys depend on `code`. */
export interface PosFailure {
  ok: false;
  code: string;
  message: string;
}

export interface Ping {
  ok: true;
  connection: string;
  mode: ConnectionMode;
  schema: 'v1';
  /** Unix seconds. */
  server_time: number;
}
