import fc from 'fast-check';

import { plainFold } from './support/plain-fold';
import { StockSite } from './support/stock-site';
import { idOf, records, runOf, type Input, type Run } from './support/world';

// Each run is some hundred transactions: few of them, and others each time.
jest.setTimeout(120_000);

let site: StockSite;

beforeAll(async () => {
  site = await StockSite.start();
});
afterAll(() => site.close());

const withRuns = (distinctCounts: boolean, runs: number) =>
  records(distinctCounts).chain((inputs) =>
    fc.record({
      inputs: fc.constant(inputs),
      runs: fc.array(runOf(inputs.length), { minLength: runs, maxLength: runs }),
    })
  );

const byArrival = (inputs: readonly Input[], arrivals: readonly number[]): Input[] => [
  ...new Map(
    arrivals.flatMap((index) => {
      const input = inputs[index];
      return input ? [[idOf(input), input] as const] : [];
    })
  ).values(),
];

/** Connection 3 does not map location 1 at first: the refund has no share while its sale waits. */
const wholeRefundUnmapped: Input[] = [
  {
    kind: 'sale',
    connection: 3,
    externalId: 's1',
    time: 1,
    location: 1,
    lines: [{ item: 1, quantity: 1 }],
  },
  {
    kind: 'refund',
    connection: 3,
    externalId: 'r1',
    saleExternalId: 's1',
    time: 1,
    namedLocation: 1,
    restock: true,
    lines: null,
  },
];
const saleFirst: Run = { arrivals: [0, 1], queueSeed: [0, 0], chances: [] };

describe('stock does not depend on the order of arrival', () => {
  it('any two orders, with duplicates, late mappings and graces that end, give the same shelf: that of the plain fold', async () => {
    await fc.assert(
      fc.asyncProperty(withRuns(true, 2), async ({ inputs, runs }) => {
        const expected = plainFold(inputs);
        for (const run of runs) {
          await site.play(inputs, run);
          expect(await site.quantities()).toEqual(expected);
        }
      }),
      { numRuns: 20, examples: [[{ inputs: wholeRefundUnmapped, runs: [saleFirst] }]] }
    );
  });

  it('of two counts of the very same time the later arrival wins, in whatever order they are processed; a rebuild from the ledger finds no difference, and the effects explain every level', async () => {
    await fc.assert(
      fc.asyncProperty(withRuns(false, 1), async ({ inputs, runs }) => {
        for (const run of runs) {
          const accepted = await site.play(inputs, run);
          const quantities = await site.quantities();
          expect(quantities).toEqual(plainFold(accepted));
          expect(quantities).toEqual(plainFold(byArrival(inputs, run.arrivals)));

          expect((await site.rebuild()).differences).toEqual([]);
          const movements = await site.movements();
          for (const { id, opening, quantity } of await site.levels()) {
            const own = movements.filter((movement) => movement.level_id === id);
            const explained = own.reduce(
              (sum, { effect }) => sum + Number(effect),
              Number(opening)
            );
            expect(explained).toBe(Number(quantity));
            const { terms, series, ...said } = await site.explain(id);
            expect(said.quantity).toBe(Number(quantity));
            expect(terms.reduce((sum, term) => sum + term.quantity, 0)).toBe(said.quantity);
            expect(series.at(-1)?.quantity).toBe(said.quantity);
          }
          for (const { type, quantity, effect, reason } of movements) {
            // A line without effect always says why; one with an effect moved all it was asked.
            if (type === 'count') continue;
            expect(effect === quantity || (effect === 0 && reason)).toBeTruthy();
          }
        }
      }),
      { numRuns: 25 }
    );
  });
});
