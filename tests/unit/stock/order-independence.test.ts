import fc from 'fast-check';

import { foldLevel } from '../../../server/src/stock/rules/fold';
import { LedgerEngine } from './support/ledger-engine';
import { plainFold } from './support/plain-fold';
import { idOf, openingOf, records, runOf, type Input } from './support/world';

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

describe('stock does not depend on the order of arrival', () => {
  it('any two orders, with duplicates, late mappings and graces that end, give the same shelf: that of the plain fold', () => {
    fc.assert(
      fc.property(withRuns(true, 2), ({ inputs, runs }) => {
        const expected = plainFold(inputs);
        for (const run of runs) {
          expect(new LedgerEngine().play(inputs, run).quantities).toEqual(expected);
        }
      }),
      { numRuns: 2000 }
    );
  });

  it('of two counts of the very same time the later arrival wins, in whatever order they are processed', () => {
    fc.assert(
      fc.property(withRuns(false, 1), ({ inputs, runs }) => {
        for (const run of runs) {
          const engine = new LedgerEngine().play(inputs, run);
          expect(engine.quantities).toEqual(plainFold(engine.acceptedInputs));
          expect(engine.quantities).toEqual(plainFold(byArrival(inputs, run.arrivals)));
        }
      }),
      { numRuns: 1000 }
    );
  });

  it('a rebuild from the ledger finds no difference, and the effects explain every level', () => {
    fc.assert(
      fc.property(withRuns(false, 1), ({ inputs, runs }) => {
        for (const run of runs) {
          const { rows, levels } = new LedgerEngine().play(inputs, run);
          for (const [key, level] of levels) {
            const [item = 0, location = 0] = key.split('@').map(Number);
            const opening = openingOf(item, location);
            const own = rows.filter((row) => row.item === item && row.location === location);
            expect(foldLevel(opening, own)).toEqual(level);
            expect(foldLevel(opening, [...own].reverse())).toEqual(level);
            expect(own.reduce((sum, row) => sum + row.effect, opening)).toBe(level.quantity);
          }
          for (const row of rows) {
            // A line without effect always says why; one with an effect moved all it was asked.
            if (row.type === 'count') continue;
            expect(row.effect === row.quantity || (row.effect === 0 && row.reason)).toBeTruthy();
          }
        }
      }),
      { numRuns: 500 }
    );
  });
});
