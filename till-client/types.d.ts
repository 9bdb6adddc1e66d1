/** Shapes of what a till sends and is answered, on every platform; docs/tills.md describes the wire. */

export type RecordKind = 'sale' | 'refund' | 'inventory';
/** What has a route of its own: the records, and the closing of a shift. */
export type SentKind = RecordKind | 'closing';
/** Of one kind of record: an object, or its text or bytes, which go out as they are. */
export type Sent<T> = T | string | Uint8Array;

/** One of `sku` and `gtin` at least. Amounts are integers in minor units, such as cents. */
export interface LineItem {
  sku?: string;
  gtin?: string;
  quantity: number;
  unit_price?: number;
}

export interface Sale {
  /** The till's own id of the transaction, the same in every retry. */
  external_id: string;
  /** ISO 8601 with an explicit offset. */
  occurred_at: string;
  location_ref?: string;
  /** ISO 4217. */
  currency: string;
  total: number;
  line_items: LineItem[];
  customer?: Record<string, unknown>;
  meta?: Record<string, unknown>;
}

export interface Refund {
  external_id: string;
  sale_external_id: string;
  occurred_at: string;
  location_ref?: string;
  reason?: string;
  /** false: the goods do not go back on the shelf. Default: true. */
  restock?: boolean;
  /** Left out: everything the sale still has. */
  line_items?: LineItem[];
}

export interface Inventory {
  external_id: string;
  occurred_at: string;
  location_ref?: string;
  /** `absolute`: a stocktake count. `relative`: an adjustment. */
  mode: 'absolute' | 'relative';
  counts: { sku: string; quantity: number; reason?: string }[];
}

export interface Accepted {
  /** 202, or 200 for a repeat. */
  status: number;
  ok: true;
  event_id: number;
  state: string;
  duplicate: boolean;
  payload_mismatch?: true;
  /** Of a repeat: the record was accepted in test mode, and moves no stock in any state. */
  mode?: 'test';
  /** Lines of a count that were older than an accepted one. */
  stale?: { sku: string; quantity: number }[];
}

export interface ClosingTotals {
  /** ISO 4217. */
  currency: string;
  sales: { count: number; total: number };
  /** Positive. */
  refunds: { count: number; total: number };
}

/** A shift as the till believes it was; amounts in minor units. */
export interface Closing {
  external_id: string;
  occurred_at: string;
  /** The shift: from <= `occurred_at` of its records < to. */
  from: string;
  to: string;
  location_ref?: string;
  totals: ClosingTotals[];
  /** Of its sales and refunds; 5,000 at most. */
  external_ids?: string[];
}

export interface Closed {
  /** 202, or 200 for a repeat. */
  status: number;
  ok: true;
  event_id: number;
  state: 'matched' | 'differs';
  duplicate: boolean;
  /** Ids that the site does not have; with `external_ids` only. */
  missing?: string[];
  /** Ids that the till did not name; with `external_ids` only. */
  unexpected?: string[];
  differences: {
    currency: string;
    field: 'sales.count' | 'sales.total' | 'refunds.count' | 'refunds.total';
    till: number;
    site: number;
  }[];
}

export interface Ping {
  status: number;
  ok: true;
  connection: string;
  mode: 'live' | 'test';
  schema: string;
  /** Unix seconds. */
  server_time: number;
}

export interface BatchRecord {
  kind: RecordKind;
  body: Sent<object>;
}

/** What the record's own route would have answered. */
export type BatchResult =
  | (Accepted & { status: 200 | 202 })
  | { status: number; ok: false; code: string; message: string; [detail: string]: unknown };

export interface BatchAnswer {
  status: number;
  ok: true;
  /** One a record, in the order sent. */
  results: BatchResult[];
}

export interface Movement {
  sku: string;
  /** null: the single store, or a location that the connection does not map. */
  location_ref: string | null;
  quantity: number;
  effect: number;
  /** Only with the scope `stock:read`. */
  quantity_after?: number;
}

export interface Validated {
  status: number;
  ok: true;
  state: string;
  duplicate: boolean;
  stale: { sku: string; quantity: number }[];
  flags: string[];
  movements: Movement[];
  unknown: ({ sku: string } | { gtin: string } | { location_ref: string })[];
}

export interface StatusAnswer {
  status: number;
  ok: true;
  records: (
    | { external_id: string; state: 'unknown' }
    | {
        external_id: string;
        event_id: number;
        kind: RecordKind;
        state: string;
        flags: string[];
        accepted_at: string;
        movements: Movement[];
      }
  )[];
}

export interface CatalogueItem {
  sku: string;
  gtin: string | null;
  name: string | null;
  /** Minor units. */
  price: number | null;
  currency: string | null;
  stock: { location_ref: string | null; quantity: number }[];
  /** Take it off the till. */
  deleted: boolean;
}

export interface CataloguePage {
  status: number;
  ok: true;
  items: CatalogueItem[];
  /** To be kept beside the items, and sent with the next request. */
  cursor: string;
  has_more: boolean;
}

export interface TillOptions {
  /** `https://shop.example/api/service-pos/v1` */
  url: string;
  key: string;
  secret: string;
  /** Of one request. Default: 10,000. */
  timeoutMs?: number;
  /** Requests a call makes at most before it gives up. Default: 5. */
  tries?: number;
  /** A longer `Retry-After` than this is not waited for: the call gives up. Default: 60,000. */
  maxWaitMs?: number;
  fetch?: typeof globalThis.fetch;
  now?: () => number;
  random?: () => number;
  pause?: (milliseconds: number) => Promise<void>;
}

export interface Till {
  ping(): Promise<Ping>;
  sale(record: Sent<Sale>): Promise<Accepted>;
  refund(record: Sent<Refund>): Promise<Accepted>;
  inventory(record: Sent<Inventory>): Promise<Accepted>;
  closing(record: Sent<Closing>): Promise<Closed>;
  send(kind: RecordKind, record: Sent<object>): Promise<Accepted>;
  /** Up to 100 records; resolves with an answer for each, those that were refused too. */
  batch(records: readonly BatchRecord[]): Promise<BatchAnswer>;
  /** What a record would become; nothing is stored. */
  validate(kind: RecordKind, record: Sent<object>): Promise<Validated>;
  status(externalIds: readonly string[]): Promise<StatusAnswer>;
  catalogue(asked?: { cursor?: string; limit?: number }): Promise<CataloguePage>;
}

/** Every refusal, and every failure to reach the service. */
export declare class TillError extends Error {
  /** HTTP status; null where no answer came. */
  readonly status: number | null;
  /**
   * The service's code, such as `schema_invalid`; `unreachable` where no answer came; `http_<status>`
   * where something else than the service answered.
   */
  readonly code: string;
  /** The service's answer with its further fields (`field`, `skew_seconds`, …); else null. */
  readonly body: Record<string, unknown> | null;
  /** Whether the same record can pass later without anybody mending anything. */
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
}

/** What came of a record that was sent from the queue; its bytes are the platform's. */
export type SettlementOf<Bytes> = { kind: SentKind; name: string; body: Bytes } & (
  | { outcome: 'accepted'; answer: Accepted | Closed }
  /** Will be tried again, in its turn. */
  | { outcome: 'waiting'; error: TillError }
  /** 409: nothing to send any more. */
  | { outcome: 'stale'; error: TillError }
  /**
   * Put aside with the answer: 400, 403, 413, 415, 422; `payload_mismatch`, the site has another record
   * under this id; or `simulated`, it has it from a test though the till is live.
   */
  | { outcome: 'refused'; error: TillError }
  /** It cannot be read where it waits: put aside. `body` is empty. */
  | { outcome: 'unreadable'; error: Error }
);

export interface OfflineTill {
  /** Each resolves when the record is on the disk, with its name. */
  sale(record: Sent<Sale>): Promise<string>;
  refund(record: Sent<Refund>): Promise<string>;
  inventory(record: Sent<Inventory>): Promise<string>;
  closing(record: Sent<Closing>): Promise<string>;
  add(kind: SentKind, record: Sent<object>): Promise<string>;
  /** Names of the records that wait, oldest first. */
  pending(): Promise<string[]>;
  /** Names of the records that were put aside. */
  refused(): Promise<string[]>;
  /** Puts what was put aside, and can be read, at the end of the queue; how many. */
  requeue(): Promise<number>;
  run(): OfflineTill;
  /**
   * Sends what waits now instead of after the pause, but never before a `Retry-After`. Resolves
   * when nothing waits any more, or when the first record still has to.
   */
  flush(): Promise<{ sent: number; remaining: number; error: Error | null }>;
  /** Resolves when the record under way has been answered. What waits stays on the disk. */
  stop(): Promise<void>;
}
