import type { ClosingComparison, ClosingDifference } from '../../../../shared/contracts/pos';
import { minorSum } from '../../../../shared/minor-sums';
import { type ClosingRecord, type ClosingTotals, type CurrencySums, LIMITS } from './records';

/** A sale or refund that a closing counts; money in minor units, a refund's positive. */
export interface ClosedRecord {
  kind: 'sale' | 'refund';
  externalId: string;
  /** null: of a refund that names none and whose sale is not known. */
  currency: string | null;
  amount: bigint;
}

const none = (): CurrencySums<bigint> => ({
  sales: { count: 0, total: 0n },
  refunds: { count: 0, total: 0n },
});

/** A refund without a currency can only be of the one that the shift had. */
const onlyCurrency = (totals: readonly ClosingTotals[], records: readonly ClosedRecord[]) => {
  const known = new Set([
    ...totals.map(({ currency }) => currency),
    ...records.flatMap(({ currency }) => currency ?? []),
  ]);
  return known.size === 1 ? ([...known][0] ?? null) : null;
};

const sumsOf = (records: readonly ClosedRecord[], fallback: string | null) => {
  const sums = new Map<string, CurrencySums<bigint>>();
  for (const { kind, currency: named, amount } of records) {
    const currency = named ?? fallback;
    if (currency === null) continue;
    const of = sums.get(currency) ?? none();
    sums.set(currency, of);
    const one = kind === 'sale' ? of.sales : of.refunds;
    one.count += 1;
    one.total += amount;
  }
  return sums;
};

const differencesOf = (
  currency: string,
  till: CurrencySums<number | bigint>,
  site: CurrencySums<bigint>
): ClosingDifference[] =>
  (['sales', 'refunds'] as const).flatMap((what) =>
    (['count', 'total'] as const).flatMap((which): ClosingDifference[] => {
      const theirs = BigInt(till[what][which]);
      const ours = BigInt(site[what][which]);
      if (theirs === ours) return [];
      const field = `${what}.${which}` as const;
      return [{ currency, field, till: minorSum(theirs), site: minorSum(ours) }];
    })
  );

/** Compares a closing with the records of its range, sorted by time (docs/tills.md#closing-a-shift). */
export const compareClosing = (
  { totals, externalIds }: Pick<ClosingRecord, 'totals' | 'externalIds'>,
  records: readonly ClosedRecord[]
): { state: 'matched' | 'differs'; comparison: ClosingComparison } => {
  const site = sumsOf(records, onlyCurrency(totals, records));
  const till = new Map(totals.map((one) => [one.currency, one]));
  const currencies = [...new Set([...till.keys(), ...[...site.keys()].sort()])];
  const differences = currencies.flatMap((currency) =>
    differencesOf(currency, till.get(currency) ?? none(), site.get(currency) ?? none())
  );
  const comparison: ClosingComparison = { differences };
  if (externalIds !== null) {
    const ours = new Set(records.map(({ externalId }) => externalId));
    const theirs = new Set(externalIds);
    comparison.missing = externalIds.filter((id) => !ours.has(id));
    const unexpected = [...ours].filter((id) => !theirs.has(id));
    comparison.unexpected = unexpected.slice(0, LIMITS.closingIds);
    if (unexpected.length > LIMITS.closingIds) comparison.unexpected_count = unexpected.length;
  }
  const differs = [differences, comparison.missing, comparison.unexpected].some(
    (list) => (list?.length ?? 0) > 0
  );
  return { state: differs ? 'differs' : 'matched', comparison };
};
