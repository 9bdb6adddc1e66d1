import type { ConnectionMode, PosEventKind, PosEventState } from './pos';

/** Answers to tills; docs/contract-pos.md. Times are ISO 8601. */

/** The answer to an accepted or repeated record. */
export interface Accepted {
  ok: true;
  event_id: number;
  state: PosEventState;
  duplicate: boolean;
  /** Another body came under an id that was accepted before; the first one counts. */
  payload_mismatch?: true;
  /** Repeats only: the record was accepted in test mode, and moves no stock in any state. */
  mode?: 'test';
  stale?: { sku: string; quantity: number }[];
}

/** The single route's answer to one record of a batch, with its HTTP status. */
export type BatchResult = { status: number } & (Accepted | (PosFailure & Record<string, unknown>));

export interface BatchAnswer {
  ok: true;
  /** One a record, in the order sent. */
  results: BatchResult[];
}

/** A movement as tills are told it; docs/tills.md#status-of-a-record. */
export interface TillMovement {
  sku: string;
  /** As the connection maps it; null for the single store and for locations that it does not map. */
  location_ref: string | null;
  /** Pieces that the shelf should gain; the counted number for a count. */
  quantity: number;
  /** The change that results; 0 where a count covers it, for example. */
  effect: number;
  /** The level after it; only for connections with the scope `stock:read`. */
  quantity_after?: number;
}

/** The outcome that a record would have; docs/tills.md#trying-a-record. */
export interface Validated {
  ok: true;
  state: PosEventState;
  duplicate: boolean;
  stale: { sku: string; quantity: number }[];
  flags: string[];
  movements: TillMovement[];
  /** Values that the site does not know, each once. */
  unknown: ({ sku: string } | { gtin: string } | { location_ref: string })[];
}

/** The state of a record; `unknown` where the connection never sent one of this id. */
export type RecordStatus =
  | { external_id: string; state: 'unknown' }
  | {
      external_id: string;
      event_id: number;
      kind: PosEventKind;
      state: PosEventState;
      flags: string[];
      /** ISO 8601. */
      accepted_at: string;
      movements: TillMovement[];
    };

/** An item as tills download it; docs/tills.md#the-catalogue. */
export interface CatalogueItem {
  sku: string;
  gtin: string | null;
  name: string | null;
  /** Minor units; null if the site maps no price. */
  price: number | null;
  /** ISO 4217; null without a price. */
  currency: string | null;
  /** One entry for each location of the connection. */
  stock: { location_ref: string | null; quantity: number }[];
  deleted: boolean;
}

export interface CatalogueAnswer {
  ok: true;
  items: CatalogueItem[];
  /** The cursor to go on from, now or at any later time. */
  cursor: string;
  has_more: boolean;
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
