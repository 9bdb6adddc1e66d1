import {
  applyCount,
  applyMovement,
  isLatestCount,
  openLevel,
} from '../../../server/src/stock/rules/fold';

const mark = (time: number, seq = 1, line = 0) => ({ time, seq, line });
const counted = (quantity: number, time: number) => ({ quantity, lastCount: mark(time) });
const sold = (time: number, quantity = -2) => ({ time, quantity, reason: null });

describe('a movement', () => {
  it('moves a level that was never counted, whatever its time', () => {
    expect(applyMovement(openLevel(10), sold(-5))).toEqual({
      level: { quantity: 8, lastCount: null },
      effect: -2,
      reason: null,
    });
  });

  it.each([
    [99, 0, 'covered_by_count'],
    [100, 0, 'covered_by_count'],
    [101, -2, null],
  ])('at %i, with a count at 100: effect %i (%s)', (time, effect, reason) => {
    expect(applyMovement(counted(10, 100), sold(time))).toMatchObject({ effect, reason });
  });

  it.each(['no_restock', 'over_refund'] as const)('asked with %s never moves', (reason) => {
    const step = applyMovement(counted(10, 100), { time: 200, quantity: 3, reason });
    expect(step).toEqual({ level: counted(10, 100), effect: 0, reason });
    expect(applyMovement(counted(10, 100), { time: 50, quantity: 3, reason }).reason).toBe(reason);
  });

  it('keeps the reason reallocated unless a count covers it', () => {
    const movement = { time: 150, quantity: -1, reason: 'reallocated' as const };
    expect(applyMovement(counted(10, 100), movement)).toMatchObject({
      effect: -1,
      reason: 'reallocated',
    });
    expect(applyMovement(counted(10, 150), movement)).toMatchObject({
      effect: 0,
      reason: 'covered_by_count',
    });
  });

  it('may take a level below zero: the shelf is wrong then, not the sale', () => {
    expect(applyMovement(openLevel(1), sold(5)).level.quantity).toBe(-1);
  });
});

describe('a count', () => {
  it('replaces the level and adds the later movements again', () => {
    const step = applyCount(openLevel(10), { ...mark(100, 7, 2), quantity: 4 }, -3);
    expect(step).toEqual({
      level: { quantity: 1, lastCount: mark(100, 7, 2) },
      effect: -9,
      reason: null,
    });
  });

  it.each([
    [mark(99, 9), false],
    [mark(100, 4), false],
    [mark(100, 5, 0), false],
    [mark(100, 5, 2), true],
    [mark(100, 6), true],
    [mark(101, 1), true],
  ])('%j after a count of time 100, arrival 5, line 1: latest %s', (count, latest) => {
    const level = { quantity: 10, lastCount: mark(100, 5, 1) };
    expect(isLatestCount(level, count)).toBe(latest);
    const step = applyCount(level, { ...count, quantity: 3 }, 0);
    expect(step.reason).toBe(latest ? null : 'stale_count');
    expect(step.level.quantity).toBe(latest ? 3 : 10);
  });
});
