import type { SalesFigures, SalesRow } from '../../../shared/contracts/pos';
import { minorSum, type MinorSum } from '../../../shared/minor-sums';

const DAY_MS = 86_400_000;

/** A day some days after another, `YYYY-MM-DD`; before it where the number is negative. */
export const dayAfter = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);

export const daysFromTo = (from: string, to: string): string[] => {
  const days: string[] = [];
  for (let day = from; day <= to; day = dayAfter(day, 1)) days.push(day);
  return days;
};

/** Sales less refunds, in minor units. */
export const takingsOf = ({ sales, refunds }: Pick<SalesFigures, 'sales' | 'refunds'>): MinorSum =>
  minorSum(BigInt(sales.total) - BigInt(refunds.total));

/** Figures of nothing. */
export const noFigures = (currency: string): Required<SalesFigures> => ({
  currency,
  sales: { count: 0, total: 0 },
  refunds: { count: 0, total: 0 },
  pieces: { sold: 0, returned: 0 },
});

/** One sum a currency, in the order of their codes. */
export const addedUp = (rows: readonly SalesFigures[]): Required<SalesFigures>[] => {
  const sums = new Map<string, Required<SalesFigures>>();
  for (const { currency, sales, refunds, pieces } of rows) {
    const sum = sums.get(currency) ?? noFigures(currency);
    for (const [to, from] of [
      [sum.sales, sales],
      [sum.refunds, refunds],
    ] as const) {
      to.count += from.count;
      to.total = minorSum(BigInt(to.total) + BigInt(from.total));
    }
    sum.pieces.sold += pieces?.sold ?? 0;
    sum.pieces.returned += pieces?.returned ?? 0;
    sums.set(currency, sum);
  }
  return [...sums.values()].sort((a, b) => (a.currency < b.currency ? -1 : 1));
};

/** The figures of each of some days in one currency, days without any too. */
export const byDay = (
  rows: readonly SalesRow[],
  currency: string,
  days: readonly string[]
): ({ day: string } & SalesFigures)[] => {
  const found = new Map(
    rows.flatMap((row) => ('day' in row && row.currency === currency ? [[row.day, row]] : []))
  );
  return days.map((day) => found.get(day) ?? { day, ...noFigures(currency) });
};

/** Rows of sales that are days, within some of them. */
export const rowsWithin = (rows: readonly SalesRow[], from: string, to: string): SalesRow[] =>
  rows.filter((row) => 'day' in row && row.day >= from && row.day <= to);
