import { settleRefunds } from '../../../../server/src/pos/rules/settle-refunds';
import {
  applyCount,
  applyMovement,
  openLevel,
  type AskedReason,
  type LedgerEntry,
  type LevelState,
  type Step,
} from '../../../../server/src/stock/rules/fold';
import { differences, postingsOf, type Posting } from '../../../../server/src/stock/rules/postings';
import { judgeCounts } from '../../../../server/src/stock/rules/staleness';
import {
  groupOf,
  idOf,
  ITEMS,
  LOCATIONS,
  onlyLocationOf,
  openingOf,
  UNKNOWN_AT_FIRST,
  type Input,
  type RefundInput,
  type Run,
  type SaleInput,
} from './world';

export type Row = LedgerEntry & {
  item: number;
  location: number;
  effect: number;
  refund: number | null;
};

interface Accepted {
  seq: number;
  input: Input;
  processed: boolean;
  graceOver: boolean;
  /** Lines that are in the ledger. */
  placed: Set<number>;
}

type Of<I extends Input> = Accepted & { input: I };

/**
 * Does in memory, step by step, with the rules under test, what intake, processor and ledger do in
 * the database: accept, process in any order, park, settle again, append.
 */
export class LedgerEngine {
  readonly rows: Row[] = [];
  readonly levels = new Map<string, LevelState>();
  private readonly accepted = new Map<string, Accepted>();
  private readonly unknown = new Set(UNKNOWN_AT_FIRST);

  constructor() {
    for (const item of ITEMS) {
      for (const location of LOCATIONS) {
        this.levels.set(`${item}@${location}`, openLevel(openingOf(item, location)));
      }
    }
  }

  get acceptedInputs(): Input[] {
    return [...this.accepted.values()].map(({ input }) => input);
  }

  get quantities(): Record<string, number> {
    return Object.fromEntries([...this.levels].map(([key, { quantity }]) => [key, quantity]));
  }

  /** Lets the whole run happen, the end of all grace periods and of all ignorance last. */
  play(inputs: readonly Input[], { arrivals, queueSeed, chances }: Run): this {
    for (const index of arrivals) {
      const input = inputs[index];
      if (input) this.accept(input);
    }
    const queue = [...this.accepted.values()].sort(
      (a, b) => (queueSeed[a.seq] ?? 0) - (queueSeed[b.seq] ?? 0)
    );
    for (const [at, record] of queue.entries()) {
      for (const chance of chances) {
        if (chance.at !== at) continue;
        if (chance.what === 'graces end') this.endGraces();
        else this.learn(chance.what.learn);
      }
      this.process(record);
    }
    UNKNOWN_AT_FIRST.forEach((item) => this.learn(item));
    this.endGraces();
    return this;
  }

  private accept(input: Input): void {
    if (this.accepted.has(idOf(input))) return;
    if (input.kind === 'count') {
      const lines = input.lines.map(({ item }) => ({
        newestAcceptedTime: this.unknown.has(item) ? null : this.newestCount(item, input.location),
      }));
      if (judgeCounts(input.time, lines).verdict === 'stale') return;
    }
    this.accepted.set(idOf(input), {
      seq: this.accepted.size,
      input,
      processed: false,
      graceOver: false,
      placed: new Set(),
    });
  }

  private newestCount(item: number, location: number): number | null {
    const times = this.acceptedInputs.flatMap((input) =>
      input.kind === 'count' &&
      input.location === location &&
      input.lines.some((line) => line.item === item)
        ? [input.time]
        : []
    );
    return times.length === 0 ? null : Math.max(...times);
  }

  private process(record: Accepted): void {
    record.processed = true;
    this.place(record);
  }

  private learn(item: number): void {
    this.unknown.delete(item);
    // The newest first, to be as far from the order of arrival as possible.
    for (const record of [...this.accepted.values()].reverse()) this.place(record);
  }

  private endGraces(): void {
    for (const record of this.accepted.values()) {
      if (!record.processed || record.input.kind !== 'refund') continue;
      record.graceOver = true;
      this.settleFamily(record.input.connection, record.input.saleExternalId);
    }
  }

  private place(record: Accepted): void {
    const { input } = record;
    if (!record.processed) return;
    if (input.kind === 'refund') {
      this.settleFamily(input.connection, input.saleExternalId);
      return;
    }
    for (const [line, { item, quantity }] of input.lines.entries()) {
      if (record.placed.has(line) || this.unknown.has(item)) continue;
      record.placed.add(line);
      const { time, location } = input;
      if (input.kind === 'count') this.count(item, location, time, record.seq, line, quantity);
      else if (input.kind === 'sale')
        this.move('sale', item, location, time, -quantity, null, null);
      else this.move('adjustment', item, location, time, quantity, null, null);
    }
    if (input.kind === 'sale') this.settleFamily(input.connection, input.externalId);
  }

  private family(connection: number) {
    return [...this.accepted.values()].filter(
      ({ processed, input }) => processed && groupOf(input.connection) === groupOf(connection)
    );
  }

  private settleFamily(connection: number, saleExternalId: string): void {
    const family = this.family(connection);
    const sales = family.filter(
      (one): one is Of<SaleInput> =>
        one.input.kind === 'sale' && one.input.externalId === saleExternalId
    );
    const refunds = family.filter(
      (one): one is Of<RefundInput> =>
        one.input.kind === 'refund' && one.input.saleExternalId === saleExternalId
    );
    const outcomes = settleRefunds(
      sales.map(({ seq, input }) => ({
        id: seq,
        connection: input.connection,
        lines: input.lines
          .filter(({ item }) => !this.unknown.has(item))
          .map((line) => ({ ...line, location: input.location })),
      })),
      refunds.map(({ seq, input, graceOver }) => ({
        id: seq,
        connection: input.connection,
        effectiveMs: input.time,
        externalId: input.externalId,
        lines:
          input.lines
            ?.map((line, index) => ({ ...line, line: index }))
            .filter(({ item }) => !this.unknown.has(item)) ?? null,
        namedLocation: input.namedLocation,
        onlyLocation: onlyLocationOf(input.connection),
        graceOver,
      }))
    );
    const byId = new Map(refunds.map(({ seq, input }) => [seq, input]));
    const desired = outcomes.flatMap(({ id, shares }) => postingsOf(id, shares));
    const todo = differences(desired, this.posted(byId), (id) => byId.get(id)?.restock ?? true);
    for (const { refund, item, location, quantity, reason } of todo) {
      this.move('refund', item, location, byId.get(refund)?.time ?? 0, quantity, reason, refund);
    }
  }

  private posted(refunds: ReadonlyMap<number, RefundInput>): Posting[] {
    const sums = new Map<string, Posting>();
    for (const { refund, item, location, quantity } of this.rows) {
      if (refund === null || !refunds.has(refund)) continue;
      const key = `${refund}/${item}/${location}`;
      const before = sums.get(key)?.quantity ?? 0;
      sums.set(key, { refund, item, location, quantity: before + quantity });
    }
    return [...sums.values()];
  }

  private count(
    item: number,
    location: number,
    time: number,
    seq: number,
    line: number,
    quantity: number
  ): void {
    const level = this.level(item, location);
    const movedAfter = this.rows
      .filter((row) => row.type !== 'count' && row.item === item && row.location === location)
      .reduce((sum, row) => sum + (row.time > time ? row.effect : 0), 0);
    const step = applyCount(level, { time, seq, line, quantity }, movedAfter);
    const base = { type: 'count' as const, time, seq, line, quantity };
    this.append({ ...base, item, location, effect: step.effect, refund: null }, step);
  }

  private move(
    type: 'sale' | 'refund' | 'adjustment',
    item: number,
    location: number,
    time: number,
    quantity: number,
    asked: AskedReason | null,
    refund: number | null
  ): void {
    const step = applyMovement(this.level(item, location), { time, quantity, reason: asked });
    const { effect, reason } = step;
    this.append({ type, time, quantity, reason, item, location, effect, refund }, step);
  }

  private append(row: Row, step: Step): void {
    this.rows.push(row);
    this.levels.set(`${row.item}@${row.location}`, step.level);
  }

  private level(item: number, location: number): LevelState {
    return this.levels.get(`${item}@${location}`) ?? openLevel(0);
  }
}
