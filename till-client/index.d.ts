/** A client for tills, without dependencies; docs/tills.md describes the wire. */

export type RecordKind = 'sale' | 'refund' | 'inventory';

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
  /** Lines of a count that were older than an accepted one. */
  stale?: { sku: string; quantity: number }[];
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
  sale(record: Sale | string | Buffer): Promise<Accepted>;
  refund(record: Refund | string | Buffer): Promise<Accepted>;
  inventory(record: Inventory | string | Buffer): Promise<Accepted>;
  send(kind: RecordKind, record: object | string | Buffer): Promise<Accepted>;
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

export type Settlement = { kind: RecordKind; name: string; body: Buffer } & (
  | { outcome: 'accepted'; answer: Accepted }
  /** Will be tried again, in its turn. */
  | { outcome: 'waiting'; error: TillError }
  /** 409: nothing to send any more. */
  | { outcome: 'stale'; error: TillError }
  /** 400, 403, 413, 415, 422: put aside into the folder `refused`, with the answer. */
  | { outcome: 'refused'; error: TillError }
);

export interface OfflineTillOptions extends Omit<TillOptions, 'tries'> {
  /** Where records wait; for one process alone. */
  folder: string;
  onSettled?: (settlement: Settlement) => void;
}

export interface OfflineTill {
  /** Each resolves when the record is on the disk. */
  sale(record: Sale | string | Buffer): Promise<string>;
  refund(record: Refund | string | Buffer): Promise<string>;
  inventory(record: Inventory | string | Buffer): Promise<string>;
  add(kind: RecordKind, record: object | string | Buffer): Promise<string>;
  /** Names of the records that wait, oldest first. */
  pending(): Promise<string[]>;
  /** Names of the records that were put aside. */
  refused(): Promise<string[]>;
  /** Puts what was put aside at the end of the queue; how many. */
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

/** `X-POS-Signature` of these exact bytes. */
export declare function sign(request: {
  secret: string;
  timestamp: string | number;
  body: string | Buffer;
}): string;

export declare function createTill(options: TillOptions): Till;

export declare function createOfflineTill(options: OfflineTillOptions): OfflineTill;
