import {
  graceIsOver,
  type GroupRefund,
  type GroupSale,
  settledFlags,
  settleRefunds,
  stateOfRefund,
} from '../../../server/src/pos/rules/refunds';
import { stateOfLines } from '../../../server/src/pos/rules/records';

const sale = (id: number, connection: number, quantity = 3): GroupSale => ({
  id,
  connection,
  lines: [{ item: 7, location: 1, quantity }],
});
const refund = (fields: Partial<GroupRefund> = {}): GroupRefund => ({
  id: 50,
  connection: 1,
  effectiveMs: 5,
  externalId: 'r1',
  lines: null,
  destination: 'of_sale',
  onlyLocation: 2,
  graceOver: false,
  accepted: false,
  ...fields,
});
const settleOne = (sales: GroupSale[], fields: Partial<GroupRefund> = {}) => {
  const [outcome] = settleRefunds(sales, [refund(fields)]).outcomes;
  if (!outcome) throw new Error('no outcome');
  return outcome;
};
const lines = [{ line: 0, item: 7, quantity: 5 }];

describe('which sale a refund belongs to', () => {
  it('the one of its own connection, though the group has others', () => {
    expect(settleOne([sale(1, 2), sale(2, 1)])).toMatchObject({ status: 'allocated', sale: 2 });
  });

  it('else the only one of the group', () => {
    expect(settleOne([sale(1, 2)])).toMatchObject({ status: 'allocated', sale: 1 });
  });

  it('none if two of the group fit: nobody guesses', () => {
    const outcome = settleOne([sale(2, 3), sale(1, 2)], { lines, graceOver: true });
    expect(outcome).toEqual({ id: 50, status: 'ambiguous', sales: [1, 2], shares: [] });
    expect(stateOfRefund('live', outcome, 0)).toBe('needs_mapping');
    expect(settledFlags(outcome)).toEqual([]);
  });

  it('refunds of one sale from several connections share it', () => {
    const [first, second] = settleRefunds(
      [sale(1, 2)],
      [refund({ id: 51, externalId: 'r2', lines }), refund({ id: 50, connection: 2, lines })]
    ).outcomes;
    expect(second).toMatchObject({ id: 50, overRefund: true, shares: [{ allocated: 3 }] });
    expect(first).toMatchObject({ id: 51, overRefund: true, shares: [{ allocated: 0 }] });
    expect(first && settledFlags(first)).toEqual(['over_refund']);
  });
});

describe('a refund whose sale was never seen', () => {
  it('is held during the grace period, with lines or without', () => {
    for (const own of [lines, null]) {
      const outcome = settleOne([], { lines: own });
      expect(outcome).toEqual({ id: 50, status: 'held', saleNeverSeen: false, shares: [] });
      expect(stateOfRefund('test', outcome, 0)).toBe('held');
    }
  });

  it('stands alone afterwards, at its location or the connection’s only one', () => {
    const after = { lines, graceOver: true };
    expect(settleOne([], after)).toMatchObject({
      status: 'standalone',
      shares: [{ location: 2, allocated: 5 }],
    });
    expect(settleOne([], { ...after, destination: 9 }).shares[0]?.location).toBe(9);
    const nowhere = settleOne([], { ...after, onlyLocation: null });
    expect(nowhere.shares[0]?.location).toBeNull();
    expect(stateOfRefund('live', nowhere, 0)).toBe('needs_mapping');
    expect(settleOne([], { ...after, destination: 'unknown' }).shares[0]?.location).toBeNull();
    expect(settledFlags(nowhere)).toEqual(['sale_never_seen']);
  });

  it('stays held without lines, and says that the sale was never seen', () => {
    const outcome = settleOne([], { graceOver: true });
    expect(outcome).toMatchObject({ status: 'held', saleNeverSeen: true });
    expect(settledFlags(outcome)).toEqual(['sale_never_seen']);
  });

  it('stands alone at once where its owner accepts it, without lines as one that moves nothing', () => {
    expect(settleOne([], { lines, accepted: true })).toEqual(
      settleOne([], { lines, graceOver: true })
    );
    const bare = settleOne([], { accepted: true });
    expect(bare).toMatchObject({ status: 'standalone', shares: [] });
    expect(stateOfRefund('live', bare, 0)).toBe('applied');
    for (const own of [lines, null]) {
      const fields = { lines: own };
      expect(settleOne([sale(1, 1)], { ...fields, accepted: true })).toEqual(
        settleOne([sale(1, 1)], fields)
      );
    }
  });

  it('is capped by its sale if that comes after all, and no longer marked', () => {
    const outcome = settleOne([sale(1, 1)], { lines, graceOver: true });
    expect(outcome).toMatchObject({ status: 'allocated', shares: [{ location: 1, allocated: 3 }] });
    expect(settledFlags(outcome)).toEqual(['over_refund']);
  });

  it('has its grace counted from the receipt, to the millisecond', () => {
    expect(graceIsOver(1000, 1000 + 86_399_999, 86_400_000)).toBe(false);
    expect(graceIsOver(1000, 1000 + 86_400_000, 86_400_000)).toBe(true);
  });
});

describe('the state that follows', () => {
  it.each([
    ['live', 3, 0, 'applied'],
    ['live', 0, 0, 'applied'],
    ['live', 2, 1, 'partially_applied'],
    ['live', 0, 3, 'needs_mapping'],
    ['test', 3, 0, 'simulated'],
    ['test', 0, 3, 'simulated'],
  ] as const)('%s, %i placed, %i waiting: %s', (mode, placed, waiting, state) => {
    expect(stateOfLines(mode, placed, waiting)).toBe(state);
  });

  it('of a refund counts lines of unknown items and shares without a place', () => {
    const known = settleOne([sale(1, 1)]);
    expect(stateOfRefund('live', known, 0)).toBe('applied');
    expect(stateOfRefund('live', known, 1)).toBe('partially_applied');
    expect(stateOfRefund('test', known, 1)).toBe('simulated');
    const homeless = settleOne([sale(1, 1)], { destination: 'unknown' });
    expect(stateOfRefund('live', homeless, 0)).toBe('needs_mapping');
  });
});
