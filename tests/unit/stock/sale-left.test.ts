import fc from 'fast-check';
import {
  allocateRefunds,
  readLeft,
  type RefundShares,
  type RefundToShare,
  shareOnTop,
  type SoldLine,
  wholeSale,
  writeLeft,
} from '../../../server/src/stock/rules/allocation';

const ITEMS = 4;

const soldLine = fc.record({
  item: fc.integer({ min: 1, max: ITEMS - 1 }),
  location: fc.constant(1),
  quantity: fc.integer({ min: 1, max: 6 }),
});

const destination = fc.constantFrom<RefundToShare['destination']>('of_sale', 'unknown', 2);

const refund = fc.record({
  effectiveMs: fc.integer({ min: 0, max: 3 }),
  externalId: fc.constantFrom('a', 'B', 'b', '10', '9', 'é'),
  connection: fc.integer({ min: 1, max: 2 }),
  destination,
  lines: fc.option(
    fc.array(
      fc.record({
        item: fc.integer({ min: 1, max: ITEMS }),
        quantity: fc.integer({ min: 1, max: 5 }),
      }),
      { minLength: 1, maxLength: 3 }
    ),
    { freq: 5, nil: null }
  ),
});

type Generated = typeof refund extends fc.Arbitrary<infer T> ? T : never;

const withIds = (list: Generated[]): RefundToShare[] =>
  list
    // A till uses an id once: two refunds never have the same key.
    .filter(
      (one, index) =>
        list.findIndex(
          (other) => other.externalId === one.externalId && other.connection === one.connection
        ) === index
    )
    .map(({ lines, ...one }, id) => ({
      ...one,
      id,
      lines: lines && lines.map((line, index) => ({ ...line, line: index })),
    }));

const byId = (shares: readonly RefundShares[]) => new Map(shares.map((one) => [one.id, one]));
const tookAny = ({ shares }: RefundShares): boolean =>
  shares.some(({ allocated }) => allocated > 0);

describe('one refund more', () => {
  it('shares out what sharing all of them out anew would, whatever the order of arrival', () => {
    let onTop = 0;
    let makingWay = 0;
    fc.assert(
      fc.property(
        fc.array(soldLine, { maxLength: 5 }) as fc.Arbitrary<SoldLine[]>,
        fc.array(refund, { maxLength: 10 }).map(withIds),
        (sale, refunds) => {
          let left = wholeSale(sale);
          let known = new Map<number, RefundShares>();
          refunds.forEach((one, index) => {
            const present = refunds.slice(0, index + 1);
            const whole = byId(allocateRefunds(sale, present).shared);
            const stored = readLeft(writeLeft(left, 3));
            expect(stored).toEqual({ left, unknownLines: 3 });
            const result = shareOnTop(stored.left, [one]);
            if (result) {
              onTop += 1;
              known.set(one.id, result.shared[0]!);
              left = result.left;
            } else {
              makingWay += 1;
              // Only those that got something can lose it; the others stay as they were.
              const some = present.filter(({ id }) => id === one.id || tookAny(known.get(id)!));
              const again = allocateRefunds(sale, some);
              known = new Map([...known, ...byId(again.shared)]);
              left = again.left;
            }
            expect(new Map([...known].sort())).toEqual(new Map([...whole].sort()));
          });
        }
      ),
      { numRuns: 200 }
    );
    // Both ways are gone; how often is a matter of chance.
    expect(onTop).toBeGreaterThan(30);
    expect(makingWay).toBeGreaterThan(30);
  });

  it('several at once are as one after the other', () => {
    fc.assert(
      fc.property(
        fc.array(soldLine, { maxLength: 5 }) as fc.Arbitrary<SoldLine[]>,
        fc.array(refund, { maxLength: 8 }).map(withIds),
        (sale, refunds) => {
          const result = shareOnTop(wholeSale(sale), refunds);
          expect(result && byId(result.shared)).toEqual(
            byId(allocateRefunds(sale, refunds).shared)
          );
        }
      )
    );
  });
});
