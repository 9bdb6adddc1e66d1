import fc from 'fast-check';
import {
  type GroupRefund,
  type GroupSale,
  type RefundOutcome,
  settledFlags,
  settleRefunds,
  stateOfRefund,
} from '../../../server/src/pos/rules/refunds';
import { compareClosing } from '../../../server/src/pos/rules/closing-comparison';
import { type EventState, stateAfter, stateOfLines } from '../../../server/src/pos/rules/records';
import { readDocument } from '../docs/support/markdown';

/**
 * The lives of events: what is found out about one, again and again, and the state that it is shown
 * in then. The words and their meanings are those that tills and owners read.
 */

const told = readDocument('docs/tills.md').split('## How a record is processed')[1] ?? '';
const STATES = [...told.matchAll(/^\| `(\w+)`/gm)].map(([, state]) => state as EventState);
const FLAGS = [...(/^Its flags.*$/m.exec(told)?.[0] ?? '').matchAll(/`(\w+)`/g)].map(
  ([, flag]) => flag
);

const mode = fc.constantFrom('live' as const, 'test' as const);

/** A sale or an inventory message: its lines find their items one by one, its location at some time. */
const linesLife = fc.record({
  mode,
  /** For each line the look at which its item is known. */
  lines: fc.array(fc.nat(4), { minLength: 1, maxLength: 4 }),
  located: fc.nat(4),
});

const statesOfLines = (life: typeof linesLife extends fc.Arbitrary<infer T> ? T : never) => {
  const states: EventState[] = ['pending'];
  for (let look = 0; look <= 4; look++) {
    const known = life.lines.filter((at) => at <= look && life.located <= look).length;
    const found = stateOfLines(life.mode, known, life.lines.length - known);
    states.push(stateAfter(states.at(-1) as EventState, found));
  }
  return states;
};

describe('a sale or an inventory message', () => {
  const progress: EventState[] = ['pending', 'needs_mapping', 'partially_applied', 'applied'];

  it('only ever comes further as its items and its location become known, to the end', () => {
    fc.assert(
      fc.property(linesLife, (life) => {
        const states = statesOfLines(life);
        if (life.mode === 'test') {
          expect(new Set(states.slice(1))).toEqual(new Set(['simulated']));
          return;
        }
        const ranks = states.map((state) => progress.indexOf(state));
        expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
        expect(states.at(-1)).toBe('applied');
      })
    );
  });
});

const ITEMS = 2;
const ONLY_LOCATION = 1;

interface Group {
  mode: 'live' | 'test';
  sales: (GroupSale & { unplaced: number })[];
  refunds: (Omit<GroupRefund, 'graceOver'> & { unknown: number; graceEnds: number })[];
}

const line = fc.record({ item: fc.nat(ITEMS - 1), quantity: fc.integer({ min: 1, max: 3 }) });

/** At most one sale a connection: its id is taken once in it. */
const group: fc.Arbitrary<Group> = fc
  .record({
    mode,
    sales: fc.uniqueArray(
      fc.record({
        connection: fc.nat(2),
        lines: fc.array(line, { maxLength: 3 }),
        unplaced: fc.nat(1),
      }),
      { maxLength: 2, selector: ({ connection }) => connection }
    ),
    refunds: fc.array(
      fc.record({
        connection: fc.nat(2),
        effectiveMs: fc.nat(3),
        lines: fc.option(fc.array(line, { maxLength: 2 })),
        unknown: fc.nat(1),
        destination: fc.constantFrom('of_sale' as const, 'unknown' as const, 5),
        onlyLocation: fc.constantFrom(null, ONLY_LOCATION),
        graceEnds: fc.nat(8),
        accepted: fc.boolean(),
      }),
      { minLength: 1, maxLength: 3 }
    ),
  })
  .map(({ mode: one, sales, refunds }) => ({
    mode: one,
    sales: sales.map((sale, index) => ({
      ...sale,
      id: index + 1,
      lines: sale.lines.map((sold) => ({ ...sold, location: ONLY_LOCATION })),
    })),
    refunds: refunds.map((refund, index) => ({
      ...refund,
      id: index + 101,
      externalId: `r${index}`,
      lines: refund.lines?.map((asked, at) => ({ ...asked, line: at })) ?? null,
      unknown: refund.lines === null ? 0 : refund.unknown,
    })),
  }));

/** What a group comes to when these of it are there and that many looks were taken. */
const settled = (
  { mode: one, sales, refunds }: Group,
  there: ReadonlySet<number>,
  look: number
): { outcome: RefundOutcome; state: EventState }[] => {
  const { outcomes } = settleRefunds(
    sales.filter(({ id }) => there.has(id)),
    refunds
      .filter(({ id }) => there.has(id))
      .map((refund) => ({ ...refund, graceOver: refund.graceEnds <= look }))
  );
  return outcomes.map((outcome) => {
    const refund = refunds.find(({ id }) => id === outcome.id);
    const sale = outcome.status === 'allocated' && sales.find(({ id }) => id === outcome.sale);
    const unknown = refund?.lines === null && sale ? sale.unplaced : (refund?.unknown ?? 0);
    return { outcome, state: stateOfRefund(one, outcome, unknown) };
  });
};

const membersOf = ({ sales, refunds }: Group): number[] =>
  [...sales, ...refunds].map(({ id }) => id);

/** The group and the order in which its members arrive. */
const refundLife = group.chain((one) =>
  fc.record({
    group: fc.constant(one),
    order: fc.shuffledSubarray(membersOf(one), { minLength: membersOf(one).length }),
  })
);

/** The states of each refund, as its group is looked at after each arrival and until all graces end. */
const statesOfRefunds = (one: Group, order: readonly number[]): Map<number, EventState[]> => {
  const lives = new Map<number, EventState[]>();
  for (let look = 0; look <= 8; look++) {
    const there = new Set(order.slice(0, look + 1));
    for (const { outcome, state } of settled(one, there, look)) {
      const before = lives.get(outcome.id) ?? ['pending'];
      lives.set(outcome.id, [...before, stateAfter(before.at(-1) as EventState, state)]);
    }
  }
  return lives;
};

describe('a refund', () => {
  it('is in the end in the state that its whole group gives it, in whatever order that arrived', () => {
    fc.assert(
      fc.property(refundLife, ({ group: one, order }) => {
        const ends = [...statesOfRefunds(one, order)].map(([id, states]) => [id, states.at(-1)]);
        const all = settled(one, new Set(membersOf(one)), 8);
        expect(new Map(ends as [number, EventState][])).toEqual(
          new Map(all.map(({ outcome, state }) => [outcome.id, state]))
        );
      }),
      { numRuns: 300 }
    );
  });

  it('moves no stock in test mode, whatever became of it', () => {
    fc.assert(
      fc.property(refundLife, ({ group: one, order }) => {
        const states = [...statesOfRefunds({ ...one, mode: 'test' }, order).values()].flat();
        expect(['pending', 'held', 'simulated']).toEqual(expect.arrayContaining(states));
      })
    );
  });

  it('is marked over_refund if and only if somebody asked for more than the one sale had', () => {
    fc.assert(
      fc.property(group, (one) => {
        const [sale] = one.sales;
        const withLines = one.refunds.filter(({ lines }) => lines !== null);
        fc.pre(sale !== undefined && withLines.length > 0);
        const alone: Group = { ...one, sales: sale ? [sale] : [], refunds: withLines };
        const sum = (lines: readonly { item: number; quantity: number }[], item: number): number =>
          lines.reduce((total, next) => total + (next.item === item ? next.quantity : 0), 0);
        const asked = withLines.flatMap(({ lines }) => lines ?? []);
        const tooMuch = [...Array(ITEMS).keys()].some(
          (item) => sum(asked, item) > sum(sale?.lines ?? [], item)
        );
        const flags = settled(alone, new Set(membersOf(alone)), 8).flatMap(({ outcome }) =>
          settledFlags(outcome)
        );
        expect(flags.includes('over_refund')).toBe(tooMuch);
      })
    );
  });

  it('is marked sale_never_seen if and only if nobody waits any longer and there is no sale', () => {
    fc.assert(
      fc.property(group, fc.nat(8), (one, look) => {
        for (const { outcome } of settled(one, new Set(membersOf(one)), look)) {
          const refund = one.refunds.find(({ id }) => id === outcome.id);
          const marked = settledFlags(outcome).includes('sale_never_seen');
          const over = refund?.accepted === true || (refund?.graceEnds ?? 0) <= look;
          expect(marked).toBe(one.sales.length === 0 && over);
        }
      })
    );
  });
});

describe('an event of which anything is found out', () => {
  const finding = fc.constantFrom(...STATES);

  it('is simulated for good, is never applied and then pending or failed', () => {
    fc.assert(
      fc.property(finding, (found) => {
        expect(stateAfter('simulated', found)).toBe('simulated');
        expect(['pending', 'failed', 'simulated']).not.toContain(stateAfter('applied', found));
      })
    );
  });

  it('is pending again only after it failed, and leaves failed by that alone', () => {
    fc.assert(
      fc.property(finding, finding, (state, found) => {
        const after = stateAfter(state, found);
        if (after === 'pending') expect(['pending', 'failed']).toContain(state);
        if (state === 'failed') expect(['pending', 'failed']).toContain(after);
      })
    );
  });

  it('can fail wherever something of it is still to be applied', () => {
    for (const state of STATES) {
      const over = ['applied', 'simulated', 'matched', 'differs'].includes(state);
      expect([state, stateAfter(state, 'failed')]).toEqual([state, over ? state : 'failed']);
    }
  });
});

const ONE = { count: 1, total: 1 };

describe('docs/tills.md', () => {
  it('explains exactly the states that an event can come to', () => {
    const reached = new Set<string>([
      stateAfter('pending', 'failed'),
      ...fc.sample(linesLife, { numRuns: 200, seed: 1 }).flatMap(statesOfLines),
      ...fc
        .sample(refundLife, { numRuns: 200, seed: 1 })
        .flatMap(({ group: one, order }) => [...statesOfRefunds(one, order).values()].flat()),
      ...[[], [{ currency: 'EUR', sales: ONE, refunds: ONE }]].map(
        (totals) => compareClosing({ totals, externalIds: null }, []).state
      ),
    ]);
    expect([...reached].sort()).toEqual([...STATES].sort());
  });

  it('explains each flag that settling a refund gives', () => {
    const given = new Set(
      fc
        .sample(group, { numRuns: 200, seed: 1 })
        .flatMap((one) => settled(one, new Set(membersOf(one)), 8))
        .flatMap(({ outcome }) => settledFlags(outcome))
    );
    expect(given.size).toBeGreaterThan(1);
    expect(FLAGS).toEqual(expect.arrayContaining([...given]));
  });
});
