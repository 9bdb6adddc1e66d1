import type { PosEvent, PosEventKind } from '../../../../shared/contracts/pos';

/** One line of a record, as its till sent it. Money is in minor units. */
export interface ReceiptLine {
  sku: string | null;
  gtin: string | null;
  name: string | null;
  quantity: number;
  unitPrice: number | null;
  reason: string | null;
}

/** A record's contents for a reader; null if the record lacks them. */
export interface Receipt {
  lines: ReceiptLine[];
  currency: string | null;
  total: number | null;
  cashier: string | null;
  customer: { name: string | null; email: string | null; phone: string | null } | null;
  /** Refunds only: the sale that it names. */
  saleId: string | null;
  reason: string | null;
  /** Refunds only: true if the goods go back on the shelf. */
  restock: boolean | null;
  /** Stock records only: a stocktake, or goods in and out. */
  mode: 'absolute' | 'relative' | null;
  /** Closings only: its sums, by currency. */
  totals: {
    currency: string;
    sales: { count: number; total: number };
    refunds: { count: number; total: number };
  }[];
}

type Values = Record<string, unknown>;

const isValues = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): Values[] => (Array.isArray(value) ? value.filter(isValues) : []);
const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? value : null;
const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);

const parsed = (body: string): Values | null => {
  try {
    const value = JSON.parse(body) as unknown;
    return isValues(value) ? value : null;
  } catch {
    return null;
  }
};

const lineOf = (line: Values): ReceiptLine => ({
  sku: textOf(line.sku),
  gtin: textOf(line.gtin),
  name: textOf(line.name) ?? textOf(line.description),
  quantity: numberOf(line.quantity) ?? 0,
  unitPrice: numberOf(line.unit_price),
  reason: textOf(line.reason),
});

const customerOf = (value: unknown): Receipt['customer'] => {
  if (!isValues(value)) return null;
  const { first_name: first, last_name: last, email, phone, name } = value;
  const both = [textOf(first), textOf(last)].filter((part) => part !== null).join(' ');
  return { name: textOf(both) ?? textOf(name), email: textOf(email), phone: textOf(phone) };
};

/** A cashier is not of the contract: tills name theirs where they like. */
const cashierOf = ({ meta, cashier }: Values): string | null => {
  const named = isValues(meta) ? (meta.cashier ?? cashier) : cashier;
  const value = isValues(named) ? named.name : named;
  return typeof value === 'number' ? String(value) : textOf(value);
};

const sumOf = (value: unknown): { count: number; total: number } => {
  const { count, total } = isValues(value) ? value : {};
  return { count: numberOf(count) ?? 0, total: numberOf(total) ?? 0 };
};

/** Reads a record's body as a receipt; null if it is no JSON object. */
export const readReceipt = (kind: PosEventKind, body: string): Receipt | null => {
  const values = parsed(body);
  if (!values) return null;
  const { mode } = values;
  return {
    lines: listOf(kind === 'inventory' ? values.counts : values.line_items).map(lineOf),
    currency: textOf(values.currency),
    total: numberOf(values.total),
    cashier: cashierOf(values),
    customer: customerOf(values.customer),
    saleId: kind === 'refund' ? textOf(values.sale_external_id) : null,
    reason: textOf(values.reason),
    restock: kind === 'refund' ? values.restock !== false : null,
    mode: kind === 'inventory' && (mode === 'absolute' || mode === 'relative') ? mode : null,
    totals:
      kind === 'closing'
        ? listOf(values.totals).flatMap(({ currency, sales, refunds }) =>
            typeof currency === 'string'
              ? [{ currency, sales: sumOf(sales), refunds: sumOf(refunds) }]
              : []
          )
        : [],
  };
};

/**
 * The total of a record: as it counts, else as its till said. A refund counts in the currency of its
 * sale, whatever its till calls it, and for no sum below nothing.
 */
export const comesTo = (
  receipt: Pick<Receipt, 'currency' | 'total'>,
  counted: PosEvent['money']
): Pick<Receipt, 'currency' | 'total'> => counted ?? receipt;
