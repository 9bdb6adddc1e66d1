import {
  allocateRefunds,
  compareRefunds,
  type LeftOfItem,
  type LocationId,
  type RefundToShare,
  type Share,
  type SoldLine,
} from '../../stock/rules/allocation';
import {
  type ConnectionMode,
  type EventFlag,
  type EventState,
  type RecordLine,
  type RefundRecord,
  type SaleRecord,
  stateOfLines,
} from './records';

/**
 * Which sale a refund belongs to and what it returns (docs/tills.md#refund), for a *group*: all accepted sales with one
 * `external_id` and all refunds that name it, of one mode, on one connection or those of one group. The outcome depends
 * on the group only, so settling it again on each change (arrival, mapping, end of grace period) makes it independent
 * of order. The ledger appends the `differences` (stock/rules/postings).
 */

export interface GroupSale {
  /** Its event id. */
  id: number;
  connection: number;
  /** Its lines whose item and location are known. */
  lines: readonly SoldLine[];
}

export interface GroupRefund extends RefundToShare {
  /** The connection's only location, for a refund that is applied with no sale; null if it has several. */
  onlyLocation: LocationId | null;
  graceOver: boolean;
  /** Its owner accepted it without its sale. */
  accepted: boolean;
}

export type RefundOutcome = { id: number; shares: Share[] } & (
  | { status: 'allocated'; sale: number; overRefund: boolean }
  /** Two sales fit: waits for its owner. */
  | { status: 'ambiguous'; sales: number[] }
  /** No sale yet. `saleNeverSeen`: for longer than the grace period, and it has no lines. */
  | { status: 'held'; saleNeverSeen: boolean }
  /** No sale in time, or its owner did not wait: applied by itself. */
  | { status: 'standalone'; saleNeverSeen: true }
);

/** True once a refund has waited for its sale long enough (docs/limits.md#tills). */
export const graceIsOver = (receivedAtMs: number, nowMs: number, graceMs: number): boolean =>
  nowMs - receivedAtMs >= graceMs;

/** The sale on the refund's own connection, else the only one in the group. */
const matchSale = <S extends { connection: number }>(connection: number, sales: readonly S[]) => {
  const own = sales.find((sale) => sale.connection === connection);
  return own ?? (sales.length === 1 ? sales[0] : undefined);
};

const settleWithoutSale = (refund: GroupRefund): RefundOutcome => {
  const { id, lines, destination, onlyLocation, graceOver, accepted } = refund;
  if (!graceOver && !accepted) return { id, status: 'held', saleNeverSeen: false, shares: [] };
  if (lines === null) {
    // It is unknown what came back; accepted, it moves nothing until its sale arrives.
    return { id, status: accepted ? 'standalone' : 'held', saleNeverSeen: true, shares: [] };
  }
  const location = typeof destination === 'number' ? destination : null;
  const shares = lines.map(({ line, item, quantity }) => ({
    line,
    item,
    location: destination === 'of_sale' ? onlyLocation : location,
    requested: quantity,
    allocated: quantity,
  }));
  return { id, status: 'standalone', saleNeverSeen: true, shares };
};

/** Settles a group, in any order; returns an outcome for each refund in the order given, and the sales' rest by id. */
export const settleRefunds = (
  sales: readonly GroupSale[],
  refunds: readonly GroupRefund[]
): { outcomes: RefundOutcome[]; left: Map<number, LeftOfItem[]> } => {
  const outcomes = new Map<number, RefundOutcome>();
  const bySale = new Map<GroupSale, GroupRefund[]>(sales.map((sale) => [sale, []]));
  for (const refund of refunds) {
    const { id } = refund;
    const found = matchSale(refund.connection, sales);
    if (found) bySale.get(found)?.push(refund);
    else if (sales.length > 0) {
      const fitting = sales.map((sale) => sale.id).sort((a, b) => a - b);
      outcomes.set(id, { id, status: 'ambiguous', sales: fitting, shares: [] });
    } else outcomes.set(id, settleWithoutSale(refund));
  }
  const left = new Map<number, LeftOfItem[]>();
  for (const [sale, members] of bySale) {
    const result = allocateRefunds(sale.lines, members);
    left.set(sale.id, result.left);
    for (const { id, shares, overRefund } of result.shared) {
      outcomes.set(id, { id, status: 'allocated', sale: sale.id, overRefund, shares });
    }
  }
  return { outcomes: refunds.flatMap(({ id }) => outcomes.get(id) ?? []), left };
};

/**
 * The state of a refund once its group was settled.
 * @param unknownLines lines with an unknown item; for a refund without lines, those of its sale. Shares without a
 * location are counted here, not by the caller.
 */
export const stateOfRefund = (
  mode: ConnectionMode,
  outcome: RefundOutcome,
  unknownLines: number
): EventState => {
  const { status, shares } = outcome;
  if (status === 'held') return 'held';
  if (status === 'ambiguous') return mode === 'test' ? 'simulated' : 'needs_mapping';
  const homeless = shares.filter(({ location }) => location === null).length;
  return stateOfLines(mode, shares.length - homeless, homeless + unknownLines);
};

/** The flags that follow from the settling; they replace those of an earlier one. */
export const settledFlags = (outcome: RefundOutcome): EventFlag[] => {
  if (outcome.status === 'ambiguous') return [];
  if (outcome.status === 'allocated') return outcome.overRefund ? ['over_refund'] : [];
  return outcome.saleNeverSeen ? ['sale_never_seen'] : [];
};

/** The cost of refunds (docs/contract-pos.md#refund-amounts) by group, in minor units, in any order of arrival. */

export type SoldMoney = Pick<GroupSale, 'id' | 'connection'> &
  Pick<SaleRecord, 'currency' | 'total' | 'lines'>;

export type RefundToPrice = Pick<GroupRefund, 'id' | 'connection' | 'effectiveMs' | 'externalId'> &
  Pick<RefundRecord, 'currency' | 'total' | 'lines'>;

export interface ReturnedPieces {
  /** Indexes in the lines of the sale and of the refund; null: not of a line there. */
  saleLine: number | null;
  refundLine: number | null;
  quantity: number;
  unitPrice: number | null;
}

export interface PricedRefund {
  id: number;
  /** null: neither the refund names one nor is its sale known. */
  currency: string | null;
  amount: bigint;
  sale: number | null;
  pieces: ReturnedPieces[];
}

const times = (quantity: number, price: number | null): bigint =>
  BigInt(quantity) * BigInt(price ?? 0);

const valueOfLines = (lines: readonly RecordLine[]): bigint =>
  lines.reduce((sum, { quantity, unitPrice }) => sum + times(quantity, unitPrice), 0n);

const isSame = (sold: RecordLine, returned: RecordLine): boolean =>
  (returned.sku !== null && returned.sku === sold.sku) ||
  (returned.gtin !== null && returned.gtin === sold.gtin);

/** Half of a unit is rounded up. */
const share = (total: bigint, part: bigint, whole: bigint): bigint =>
  (2n * total * part + whole) / (2n * whole);

const positive = (amount: bigint): bigint => (amount < 0n ? 0n : amount);
const payable = (amount: bigint): bigint =>
  amount > BigInt(Number.MAX_SAFE_INTEGER) ? 0n : positive(amount);
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** Its total, or the sum of its lines; nothing if that exceeds the largest `total`. */
const priceWithoutSale = (refund: RefundToPrice): PricedRefund => {
  const lines = refund.lines ?? [];
  const isPriced = lines.every(({ unitPrice }) => unitPrice !== null);
  const ofLines = isPriced ? valueOfLines(lines) : 0n;
  return {
    id: refund.id,
    currency: refund.currency,
    amount: refund.total === null ? payable(ofLines) : BigInt(refund.total),
    sale: null,
    pieces: lines.map(({ quantity, unitPrice }, refundLine) => ({
      saleLine: null,
      refundLine,
      quantity,
      unitPrice,
    })),
  };
};

/** The money that refunds left of a sale, while none displaced another: the next then needs no look at the others. */
export interface MoneyLeft {
  left: number[];
  rest: bigint;
}

/** A sale, and what the refunds before the next one have left of it. */
class SaleMoney {
  private readonly left: number[];
  private readonly priced: boolean;
  private readonly whole: bigint;
  private rest: bigint;
  /** No refund so far was cut, took the rest, or could have been shared out otherwise. */
  private isPlain = true;

  constructor(
    private readonly sale: SoldMoney,
    before?: MoneyLeft
  ) {
    const { lines } = sale;
    const all = lines.map(({ quantity }) => quantity);
    this.left = before ? [...before.left] : all;
    const value = valueOfLines(lines);
    this.priced = lines.every(({ unitPrice }) => unitPrice !== null) && value > 0n;
    this.whole = this.priced ? value : BigInt(all.reduce((sum, one) => sum + one, 0));
    this.rest = before ? before.rest : positive(BigInt(sale.total));
  }

  private take(saleLine: number, wanted: number, price: number | null, refundLine: number | null) {
    const left = this.left[saleLine] ?? 0;
    const quantity = Math.min(left, wanted);
    if (quantity === 0) return [];
    this.left[saleLine] = left - quantity;
    const unitPrice = price ?? this.sale.lines[saleLine]?.unitPrice ?? null;
    return [{ saleLine, refundLine, quantity, unitPrice }];
  }

  private takeLine(line: RecordLine, refundLine: number): ReturnedPieces[] {
    let wanted = line.quantity;
    const matching = this.sale.lines.flatMap((sold, index) => (isSame(sold, line) ? [index] : []));
    const [only, second] = matching;
    if (second !== undefined || (only !== undefined && (this.left[only] ?? 0) < wanted)) {
      this.isPlain = false;
    }
    return matching.flatMap((saleLine) => {
      const taken = this.take(saleLine, wanted, line.unitPrice, refundLine);
      for (const { quantity } of taken) wanted -= quantity;
      return taken;
    });
  }

  private valueOf(pieces: readonly ReturnedPieces[]): bigint {
    return pieces.reduce((sum, { saleLine, quantity }) => {
      const price = this.priced ? (this.sale.lines[saleLine ?? -1]?.unitPrice ?? null) : 1;
      return sum + times(quantity, price);
    }, 0n);
  }

  private cost({ lines }: RefundToPrice, pieces: readonly ReturnedPieces[]): bigint {
    if (lines === null) return this.rest;
    if (pieces.length === 0) return 0n;
    // The last refund takes what rounding and the refunds before it have left.
    if (this.left.every((one) => one === 0)) return this.rest;
    const part = share(positive(BigInt(this.sale.total)), this.valueOf(pieces), this.whole);
    return smaller(positive(part), this.rest);
  }

  price(refund: RefundToPrice): PricedRefund {
    const pieces =
      refund.lines === null
        ? this.left.flatMap((left, saleLine) => this.take(saleLine, left, null, null))
        : refund.lines.flatMap((line, index) => this.takeLine(line, index));
    const amount = refund.total === null ? this.cost(refund, pieces) : BigInt(refund.total);
    const isLast = this.left.every((one) => one === 0);
    if (refund.lines === null || isLast || amount >= this.rest) this.isPlain = false;
    this.rest = positive(this.rest - amount);
    return { id: refund.id, currency: this.sale.currency, amount, sale: this.sale.id, pieces };
  }

  /** null: who comes next may change what others cost. */
  moneyLeft(): MoneyLeft | null {
    return this.isPlain ? { left: [...this.left], rest: this.rest } : null;
  }
}

/** Prices refunds on top of others, in any order among them; null if the others must be priced again. */
export const priceOnTop = (
  sale: SoldMoney,
  before: MoneyLeft,
  refunds: readonly RefundToPrice[]
): { priced: PricedRefund[]; left: MoneyLeft } | null => {
  const money = new SaleMoney(sale, before);
  const priced = [...refunds].sort(compareRefunds).map((refund) => money.price(refund));
  const left = money.moneyLeft();
  return left && { priced, left };
};

export interface PricedGroup {
  refunds: Map<number, PricedRefund>;
  left: Map<number, MoneyLeft | null>;
}

/** Prices the refunds of a group, in any order. */
export const priceRefunds = (
  sales: readonly SoldMoney[],
  refunds: readonly RefundToPrice[]
): PricedGroup => {
  const money = new Map(sales.map((sale) => [sale.id, new SaleMoney(sale)]));
  const priced = new Map(
    [...refunds].sort(compareRefunds).map((refund): [number, PricedRefund] => {
      const found = matchSale(refund.connection, sales);
      const sale = found && money.get(found.id);
      return [refund.id, sale ? sale.price(refund) : priceWithoutSale(refund)];
    })
  );
  const left = new Map([...money].map(([id, sale]) => [id, sale.moneyLeft()]));
  return { refunds: priced, left };
};
