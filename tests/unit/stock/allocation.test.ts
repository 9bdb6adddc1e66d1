import fc from 'fast-check';

import {
  allocateRefunds,
  differences,
  postingsOf,
  type RefundToShare,
  type SoldLine,
} from '../../../server/src/stock/rules/allocation';

const HERE = 1;
const THERE = 2;
const sold = (item: number, quantity: number): SoldLine => ({ item, location: HERE, quantity });
const back = (item: number, quantity: number, line = 0) => ({ item, quantity, line });
const refund = (id: number, fields: Partial<RefundToShare> = {}): RefundToShare => ({
  id,
  effectiveMs: id,
  externalId: `r${id}`,
  connection: 1,
  lines: null,
  destination: 'of_sale',
  ...fields,
});

const given = (sale: SoldLine[], refunds: RefundToShare[]) =>
  allocateRefunds(sale, refunds).shared.map(({ id, shares, overRefund }) => ({
    id,
    got: shares.map(({ item, allocated }) => [item, allocated]),
    overRefund,
  }));

describe('allocateRefunds', () => {
  it('gives the earlier refund first, whichever comes first in the list', () => {
    const early = refund(1, { lines: [back(7, 2)] });
    const late = refund(2, { lines: [back(7, 2)] });
    const expected = [
      { id: 1, got: [[7, 2]], overRefund: false },
      { id: 2, got: [[7, 1]], overRefund: true },
    ];
    expect(given([sold(7, 3)], [early, late])).toEqual(expected);
    expect(given([sold(7, 3)], [late, early])).toEqual(expected);
  });

  it('breaks a tie by external id, letter case counting, then by connection', () => {
    const at = (id: number, externalId: string, connection = 1) =>
      refund(id, { effectiveMs: 5, externalId, connection });
    const ids = allocateRefunds([], [at(1, 'b'), at(2, 'a', 2), at(3, 'B'), at(4, 'a', 1)]).shared;
    expect(ids.map(({ id }) => id)).toEqual([3, 4, 2, 1]);
  });

  it('a refund without lines takes what is left at its place in the order', () => {
    const part = refund(1, { lines: [back(7, 1)] });
    const whole = refund(2);
    const later = refund(3, { lines: [back(8, 1)] });
    expect(given([sold(7, 3), sold(8, 2)], [later, whole, part])).toEqual([
      { id: 1, got: [[7, 1]], overRefund: false },
      {
        id: 2,
        got: [
          [7, 2],
          [8, 2],
        ],
        overRefund: false,
      },
      { id: 3, got: [[8, 0]], overRefund: true },
    ]);
  });

  it('a second refund of the whole sale gets nothing and says so', () => {
    expect(given([sold(7, 1)], [refund(1), refund(2)])[1]).toEqual({
      id: 2,
      got: [],
      overRefund: true,
    });
  });

  it('a sale whose lines all wait for a mapping is not over-refunded by its refund', () => {
    expect(given([], [refund(1)])[0]).toMatchObject({ overRefund: false });
  });

  it('adds up the lines of one item, of the sale and of the refund', () => {
    const lines = [back(7, 2, 0), back(7, 3, 1)];
    expect(given([sold(7, 1), sold(7, 3)], [refund(1, { lines })])).toEqual([
      {
        id: 1,
        got: [
          [7, 2],
          [7, 2],
        ],
        overRefund: true,
      },
    ]);
  });

  it('gives nothing of an item the sale does not have', () => {
    const [first] = allocateRefunds([sold(7, 1)], [refund(1, { lines: [back(9, 1)] })]).shared;
    expect(first).toMatchObject({ overRefund: true, shares: [{ location: null, allocated: 0 }] });
  });

  it('puts goods where the refund says, else where the sale was', () => {
    const shares = (destination: RefundToShare['destination']) =>
      allocateRefunds([sold(7, 1)], [refund(1, { destination })]).shared[0]?.shares[0]?.location;
    expect(shares('of_sale')).toBe(HERE);
    expect(shares(THERE)).toBe(THERE);
    expect(shares('unknown')).toBeNull();
  });

  it('never gives more than was sold or asked, and the order of the list changes nothing', () => {
    const item = fc.constantFrom(1, 2, 3);
    const quantity = fc.integer({ min: 1, max: 6 });
    const sale = fc.array(fc.record({ item, quantity, location: fc.constant(HERE) }));
    const lines = fc.array(fc.record({ item, quantity, line: fc.nat(9) }), { minLength: 1 });
    const refunds = fc
      .array(fc.tuple(fc.nat(3), fc.option(lines, { nil: null })), { maxLength: 6 })
      .map((all) => all.map(([effectiveMs, own], id) => refund(id, { effectiveMs, lines: own })));
    fc.assert(
      fc.property(sale, refunds, fc.infiniteStream(fc.nat()), (soldLines, all, stream) => {
        const result = allocateRefunds(soldLines, all).shared;
        const shuffled = all
          .map((one) => [stream.next().value as number, one] as const)
          .sort(([a], [b]) => a - b)
          .map(([, one]) => one);
        expect(allocateRefunds(soldLines, shuffled).shared).toEqual(result);
        for (const one of [1, 2, 3]) {
          const total = soldLines.reduce((sum, l) => sum + (l.item === one ? l.quantity : 0), 0);
          const shares = result.flatMap((r) => r.shares).filter((share) => share.item === one);
          expect(shares.reduce((sum, { allocated }) => sum + allocated, 0)).toBeLessThanOrEqual(
            total
          );
          expect(shares.every((s) => s.allocated >= 0 && s.allocated <= s.requested)).toBe(true);
        }
      }),
      { numRuns: 500 }
    );
  });
});

describe('differences', () => {
  const posting = (quantity: number, location = HERE) => ({
    refund: 1,
    item: 7,
    location,
    quantity,
  });
  const yes = () => true;

  it('posts a refund for the first time, and then nothing more', () => {
    expect(differences([posting(2)], [], yes)).toEqual([{ ...posting(2), reason: null }]);
    expect(differences([posting(2)], [posting(2)], yes)).toEqual([]);
  });

  it('posts only the difference when the sale is shared out again', () => {
    expect(differences([posting(1)], [posting(3)], yes)).toEqual([
      { ...posting(-2), reason: 'reallocated' },
    ]);
    expect(differences([], [posting(3)], yes)).toEqual([{ ...posting(-3), reason: 'reallocated' }]);
    expect(differences([posting(3, THERE)], [posting(3)], yes)).toEqual([
      { ...posting(3, THERE), reason: null },
      { ...posting(-3), reason: 'reallocated' },
    ]);
  });

  it('shows once that nothing was left, and moves it when something is', () => {
    expect(differences([posting(0)], [], yes)).toEqual([{ ...posting(0), reason: 'over_refund' }]);
    expect(differences([posting(0)], [posting(0)], yes)).toEqual([]);
    expect(differences([posting(2)], [posting(0)], yes)).toEqual([
      { ...posting(2), reason: 'reallocated' },
    ]);
  });

  it('never restocks damaged goods, the first time or later', () => {
    const no = () => false;
    expect(differences([posting(2)], [], no)).toEqual([{ ...posting(2), reason: 'no_restock' }]);
    expect(differences([posting(1)], [posting(2)], no)).toEqual([
      { ...posting(-1), reason: 'no_restock' },
    ]);
  });

  it('adds up the lines of one refund, item and place; what has no place waits', () => {
    const share = (location: number | null, allocated: number, line = 0) => ({
      line,
      item: 7,
      location,
      requested: 5,
      allocated,
    });
    expect(postingsOf(1, [share(HERE, 2), share(HERE, 1, 1), share(null, 4, 2)])).toEqual([
      posting(3),
    ]);
  });
});
