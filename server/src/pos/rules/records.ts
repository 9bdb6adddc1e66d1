import type { InventoryMode } from './states';
import type { JsonObject } from './strict-json';

/** What every accepted record has. Times are epoch milliseconds. */
interface RecordBase {
  externalId: string;
  /** As sent. */
  occurredAt: string;
  occurredAtMs: number;
  /** What it is ordered by: `occurredAtMs`, or the receipt where that lies ahead. */
  effectiveMs: number;
  /** `occurredAtMs` lay after the receipt. */
  clockAhead: boolean;
  locationRef: string | null;
}

/** One line of a sale or refund; at least one of `sku` and `gtin` is set, `quantity` is positive. */
export interface RecordLine {
  sku: string | null;
  gtin: string | null;
  quantity: number;
  /** Minor units. */
  unitPrice: number | null;
}

export interface SaleRecord extends RecordBase {
  kind: 'sale';
  currency: string;
  /** Minor units. */
  total: number;
  lines: RecordLine[];
  customer: JsonObject | null;
  meta: JsonObject | null;
}

export interface RefundRecord extends RecordBase {
  kind: 'refund';
  saleExternalId: string;
  reason: string | null;
  restock: boolean;
  /** ISO 4217, where it was sent; its sale's goes first. */
  currency: string | null;
  /** What was paid back, in minor units, where it was sent. */
  total: number | null;
  /** null: everything the sale still has. */
  lines: RecordLine[] | null;
}

export interface CountLine {
  sku: string;
  quantity: number;
  reason: string | null;
}

export interface InventoryRecord extends RecordBase {
  kind: 'inventory';
  mode: InventoryMode;
  counts: CountLine[];
}

/** Sums of one currency as a till has them, in minor units; refunds are positive. */
export interface ClosingTotals {
  currency: string;
  sales: { count: number; total: number };
  refunds: { count: number; total: number };
}

/** What a till believes of its shift; epoch milliseconds, `toMs` not included. */
export interface ClosingRecord extends RecordBase {
  kind: 'closing';
  fromMs: number;
  toMs: number;
  totals: ClosingTotals[];
  /** Each once; null where it lists none. */
  externalIds: string[] | null;
}

export type PosRecord = SaleRecord | RefundRecord | InventoryRecord;

/** What a line of a record names its item by. */
export type LineName = Pick<RecordLine, 'sku' | 'gtin'>;

/** What a record's lines name, in their order; none for a refund of the whole sale. */
export const lineNames = (record: PosRecord): LineName[] => {
  if (record.kind === 'inventory') return record.counts.map(({ sku }) => ({ sku, gtin: null }));
  return record.lines ?? [];
};

const quantities = (record: PosRecord): number[] =>
  record.kind === 'inventory'
    ? record.counts.map(({ quantity }) => quantity)
    : (record.lines ?? []).map(({ quantity }) => quantity);

export const quantityOf = (record: PosRecord, line: number): number =>
  quantities(record)[line] ?? 0;

export const noteOf = (record: PosRecord, line: number): string | null => {
  if (record.kind === 'inventory') return record.counts[line]?.reason ?? null;
  return record.kind === 'refund' ? record.reason : null;
};
