import type { PosRecord, RecordLine } from './records';

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
