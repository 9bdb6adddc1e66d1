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
  /** The service's code, such as `schema_invalid`; `unreachable` where no answer came. */
  readonly code: string;
  readonly body: Record<string, unknown> | null;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
}

export type Settlement = { kind: RecordKind; name: string; body: Buffer } & (
  | { outcome: 'accepted'; answer: Accepted }
  /** Will be tried again, in its turn. */
  | { outcome: 'waiting'; error: TillError }
  /** 409: nothing to send any more. */
  | { outcome: 'stale'; error: TillError }
  /** 400, 413, 415: put aside into the folder `refused`. */
  | { outcome: 'refused'; error: TillError }
);

export interface OfflineTillOptions extends Omit<TillOptions, 'tries'> {
  /** Where records wait; for one process alone. */
  folder: string;
  onSettled?: (settlement: Settlement) => void;
}

export interface OfflineTill {
  /** Each resolves when the record is on the disk. */
  sale(record: Sale | string): Promise<string>;
  refund(record: Refund | string): Promise<string>;
  inventory(record: Inventory | string): Promise<string>;
  add(kind: RecordKind, record: object | string): Promise<string>;
  /** Names of the records that wait, oldest first. */
  pending(): Promise<string[]>;
  run(): OfflineTill;
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
