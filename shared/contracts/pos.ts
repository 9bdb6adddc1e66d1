import type { LocationSummary, PlacedMovement } from './stock';

/** Types of `/switchboard/{connections,pos-events}…`; ARCHITECTURE.md. Times are ISO 8601. */

export type ConnectionScope = 'sale:write' | 'refund:write' | 'inventory:write';
export type ConnectionMode = 'live' | 'test';

/** A till's name of a location beside ours. */
export interface ConnectionLocation {
  ref: string;
  location: LocationSummary;
}

export interface Connection {
  id: number;
  name: string;
  type: 'Generic webhook';
  key: string;
  scopes: ConnectionScope[];
  mode: ConnectionMode;
  /** Connections of one group find each other's sales when they refund. */
  group: string | null;
  /** Empty: single-store mode, everything goes to the default location. */
  locations: ConnectionLocation[];
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
  scopes: ConnectionScope[];
  /** Default: test. */
  mode?: ConnectionMode;
  group?: string | null;
  /** `location` is a location's id or code. */
  locations?: { ref: string; location: number | string }[];
}

export type PosEventState =
  'pending' | 'applied' | 'partially_applied' | 'needs_mapping' | 'held' | 'simulated' | 'failed';

export type PosEventKind = 'sale' | 'refund' | 'inventory';

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
