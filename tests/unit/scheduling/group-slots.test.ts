import fc from 'fast-check';
import { GroupSlots } from '../../../server/src/scheduling/group-slots';
import type { Lease } from '../../../server/src/queue/queue';

let nextId = 1;
const rows = (group: number, count: number, dueAt = 0): Lease[] =>
  Array.from({ length: count }, () => ({
    id: (nextId += 1),
    group,
    owner: 'me',
    dueAt,
    leaseUntil: Infinity,
  }));

const takeAll = (slots: GroupSlots<Lease>): Lease[] => {
  const all: Lease[] = [];
  for (let next = slots.takeNext(); next; next = slots.takeNext()) all.push(next);
  return all;
};

describe('slots', () => {
  it('start no more rows of a group than its cap, and of the node than its own', () => {
    const slots = new GroupSlots(10, 4);
    slots.add(rows(1, 20));
    expect(takeAll(slots)).toHaveLength(4);
    for (const group of [2, 3, 4]) slots.add(rows(group, 20));
    expect(takeAll(slots)).toHaveLength(6);
    expect(takeAll(slots)).toHaveLength(0);
  });

  it('are shared in turn when several groups start at once', () => {
    const slots = new GroupSlots(6, 6);
    for (const group of [1, 2, 3]) slots.add(rows(group, 6));
    const started = takeAll(slots).map(({ group }) => group);
    expect(started.sort()).toEqual([1, 1, 2, 2, 3, 3]);
  });

  it('that empty one by one go round the groups, so that none starves behind busy ones', () => {
    const slots = new GroupSlots(4, 4);
    for (const group of [1, 2, 3]) slots.add(rows(group, 100));
    const started: number[] = [];
    const running = takeAll(slots);
    for (let turn = 0; turn < 60; turn += 1) {
      const done = running.shift();
      slots.finish(done!.group, true);
      const next = takeAll(slots);
      expect(next).toHaveLength(1);
      running.push(...next);
      started.push(next[0]!.group);
    }
    for (const group of [1, 2, 3]) {
      expect(started.filter((one) => one === group).length).toBeGreaterThanOrEqual(15);
    }
  });

  it('of a group that fails halve down to one, and double back to the cap when it recovers', () => {
    const slots = new GroupSlots(64, 16);
    const startedNow = () => {
      slots.add(rows(1, 40));
      const started = takeAll(slots);
      slots.dropWaiting();
      return started.length;
    };
    expect(startedNow()).toBe(16);
    for (let index = 0; index < 16; index += 1) slots.finish(1, false);
    expect(startedNow()).toBe(1);
    slots.finish(1, true);
    expect(startedNow()).toBe(2);
    slots.finish(1, true);
    slots.finish(1, true);
    expect(startedNow()).toBe(8);
  });

  it('are given back by a row that was not worked on, without a word about its group', () => {
    const slots = new GroupSlots(64, 16);
    slots.add(rows(1, 16));
    takeAll(slots);
    for (let index = 0; index < 16; index += 1) slots.finish(1, false);
    slots.add(rows(1, 5));
    expect(takeAll(slots)).toHaveLength(1);
    slots.finish(1, null);
    expect(takeAll(slots)).toHaveLength(1);
  });

  it('of a group that fails are claimed for one at a time, none in advance', () => {
    const slots = new GroupSlots(64, 16);
    expect(slots.roomFor(1)).toBe(32);
    slots.add(rows(1, 16));
    takeAll(slots);
    for (let index = 0; index < 16; index += 1) slots.finish(1, false);
    expect(slots.roomFor(1)).toBe(1);
  });

  it('of a quick group have more rows claimed in advance, of a slow one as many as it has slots', () => {
    const roomAfter = (tookMs: number): number => {
      const slots = new GroupSlots(64, 16);
      slots.add(rows(1, 1));
      takeAll(slots);
      slots.finish(1, true, tookMs);
      return slots.roomFor(1);
    };
    expect(roomAfter(1)).toBe(16 + 4 * 64);
    expect(roomAfter(5)).toBe(16 + 160);
    expect(roomAfter(25)).toBe(16 + 32);
    expect(roomAfter(500)).toBe(16 + 16);
  });

  it('of many new groups have rows claimed in advance as long as the others are quick, of each as before', () => {
    const slots = new GroupSlots(64, 16);
    const planned = (groups: number) => {
      let sum = 0;
      for (let group = 10; group < 10 + groups; group += 1) sum += slots.roomFor(group, sum);
      return sum;
    };
    expect(slots.roomFor(2)).toBe(32);
    expect(planned(100)).toBe(64);
    slots.add(rows(1, 1));
    takeAll(slots);
    slots.finish(1, true, 2);
    expect(slots.roomFor(2)).toBe(32);
    expect(planned(100)).toBeGreaterThan(200);
  });

  it('never have more rows waiting than four times the cap of the node, claims under way included', () => {
    const slots = new GroupSlots(10, 10);
    slots.reserve(45);
    expect(slots.roomFor(1)).toBe(5);
    slots.reserve(-45);
    slots.add(rows(1, 50));
    takeAll(slots);
    expect(slots.room).toBe(0);
    expect(slots.roomFor(2)).toBe(0);
    slots.finish(1, true);
    expect(slots.room).toBe(1);
  });

  it('go to the row that has been due longest, whenever it was claimed', () => {
    const slots = new GroupSlots(64, 16);
    slots.add(rows(1, 2, 50));
    slots.add(rows(1, 2, 20));
    slots.add(rows(1, 1, 30));
    expect(takeAll(slots).map(({ dueAt }) => dueAt)).toEqual([20, 20, 30, 50, 50]);
  });

  it('have rows claimed in advance for a few groups, not for thousands', () => {
    const slots = new GroupSlots(64, 16);
    let claimed = 0;
    for (let group = 1; group <= 10_000; group += 1) {
      const room = slots.roomFor(group);
      slots.add(rows(group, room));
      claimed += room;
      takeAll(slots);
    }
    expect(claimed).toBeLessThan(64 + 5 * 64);
    // A slot that empties is offered to the groups that had to be left out.
    slots.dropWaiting();
    slots.finish(1, true);
    expect(slots.wantsRows).toBe(true);
    expect(slots.roomFor(9999)).toBeGreaterThan(0);
  });

  it('are handed out in a time that does not grow with the groups that are idle', () => {
    const timed = (groups: number): number => {
      const slots = new GroupSlots(64, 16);
      for (let group = 1; group <= groups; group += 1) slots.roomFor(group);
      const started = performance.now();
      for (let turn = 0; turn < 2000; turn += 1) {
        slots.add(rows(groups, 1));
        const [row] = takeAll(slots);
        slots.finish(row!.group, true);
        expect(slots.busy).toBe(0);
      }
      return performance.now() - started;
    };
    // The quickest of some: what the machine does meanwhile is not the slots'.
    const quickest = (groups: number) =>
      Math.min(...Array.from({ length: 4 }, () => timed(groups)));
    const few = Math.max(1, quickest(10));
    expect(quickest(20_000) / few).toBeLessThan(20);
  });

  it('forget an idle group with nothing due, and keep a failing one that has more', () => {
    const slots = new GroupSlots(64, 16);
    slots.add(rows(1, 16));
    takeAll(slots);
    for (let index = 0; index < 16; index += 1) slots.finish(1, false);
    slots.forgetExcept(new Map([[1, 0]]));
    expect(slots.roomFor(1)).toBe(1);
    slots.forgetExcept(new Map());
    expect(slots.roomFor(1)).toBe(32);
  });

  it('hold whatever is added, started and finished in whatever order', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), group: fc.nat(4), count: fc.nat(30) }),
      fc.record({ kind: fc.constant('finish' as const), at: fc.nat(100), healthy: fc.boolean() }),
      fc.record({ kind: fc.constant('start' as const) })
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(step),
        (node, cap, steps) => {
          const slots = new GroupSlots(node, cap);
          const running: Lease[] = [];
          let added = 0;
          let done = 0;
          for (const one of steps) {
            if (one.kind === 'add') {
              slots.add(rows(one.group, one.count));
              added += one.count;
            } else if (one.kind === 'start') running.push(...takeAll(slots));
            else if (running.length > 0) {
              const [row] = running.splice(one.at % running.length, 1);
              slots.finish(row!.group, one.healthy);
              done += 1;
            }
            expect(running.length).toBeLessThanOrEqual(node);
            for (const group of [0, 1, 2, 3, 4]) {
              expect(running.filter((row) => row.group === group).length).toBeLessThanOrEqual(cap);
            }
            expect(slots.busy).toBe(added - done);
          }
          // Nothing is left behind: with everything finished, the waiting rows all get their turn.
          for (let guard = 0; slots.busy > 0 && guard < 5000; guard += 1) {
            running.push(...takeAll(slots));
            const row = running.shift();
            if (row) slots.finish(row.group, true);
          }
          expect(slots.busy).toBe(0);
        }
      )
    );
  });
});

describe('a group that asks to go slower', () => {
  let now = 0;
  const open = () => {
    now = 0;
    const slots = new GroupSlots<Lease>(64, 16, { now: () => now });
    slots.add(rows(1, 200));
    return slots;
  };
  const asked = (slots: GroupSlots<Lease>) => {
    slots.slow(1);
    slots.finish(1, false);
  };
  /** How many run at once by now, while all that ends succeeds. */
  const running = (slots: GroupSlots<Lease>): number => {
    let most = takeAll(slots).length;
    for (let round = 0; round < 5; round += 1) {
      for (let ended = 0; ended < most; ended += 1) slots.finish(1, true);
      most = takeAll(slots).length;
    }
    return most;
  };

  it('does half as much, and twice as much again with each minute that passes', () => {
    const slots = open();
    const began = takeAll(slots).length;
    asked(slots);
    asked(slots);
    for (let ended = 2; ended < began; ended += 1) slots.finish(1, true);
    expect(running(slots)).toBe(4);
    for (let ended = 0; ended < 4; ended += 1) slots.finish(1, true);
    now = 59_999;
    expect(running(slots)).toBe(4);
    for (let ended = 0; ended < 4; ended += 1) slots.finish(1, true);
    now = 60_000;
    expect(running(slots)).toBe(8);
    for (let ended = 0; ended < 8; ended += 1) slots.finish(1, true);
    now = 120_000;
    expect(running(slots)).toBe(16);
  });

  it('never comes to a stop, and is not forgotten while it is idle', () => {
    const slots = open();
    const began = takeAll(slots).length;
    for (let ended = 0; ended < began; ended += 1) asked(slots);
    slots.dropWaiting();
    slots.forgetExcept(new Map());
    slots.add(rows(1, 100));
    expect(running(slots)).toBe(1);
  });

  it('may do all that its cap allows where it only failed', () => {
    const slots = open();
    const began = takeAll(slots).length;
    slots.finish(1, false);
    for (let ended = 1; ended < began; ended += 1) slots.finish(1, true);
    expect(running(slots)).toBe(16);
  });
});

describe('rows that are handed over before there is a slot', () => {
  const handing = (nodeCap: number, groupCap: number, ahead = true) =>
    new GroupSlots<Lease>(nodeCap, groupCap, {
      limitsOf: () => ({ ahead }),
      handsOver: () => true,
    });
  /** Takes one row of a group and ends it after so long. */
  const serve = (slots: GroupSlots<Lease>, group: number, tookMs: number): void => {
    slots.add(rows(group, 1));
    takeAll(slots);
    slots.finish(group, true, tookMs);
  };

  it('are none of a group that nothing is known of', () => {
    const slots = handing(8, 4);
    slots.add(rows(1, 100));
    expect(takeAll(slots)).toHaveLength(4);
  });

  it('are as many as its slots serve in 50 ms, and twice what the node does at once at most', () => {
    for (const [tookMs, more] of [
      [25, 8],
      [50, 4],
      [150, 1],
      [300, 0],
      [1, 16],
    ] as const) {
      const slots = handing(8, 4);
      serve(slots, 1, tookMs);
      slots.add(rows(1, 100));
      expect([tookMs, takeAll(slots).length]).toEqual([tookMs, 4 + more]);
    }
  });

  it('are none of a group that fails, or that takes none in advance', () => {
    const failing = handing(8, 4);
    serve(failing, 1, 1);
    failing.add(rows(1, 1));
    takeAll(failing);
    failing.finish(1, false);
    failing.add(rows(1, 100));
    expect(takeAll(failing)).toHaveLength(2);

    const limited = handing(8, 4, false);
    serve(limited, 1, 1);
    limited.add(rows(1, 100));
    expect(takeAll(limited)).toHaveLength(4);
  });

  it('go beyond the cap of the node as well, in turn', () => {
    const slots = handing(4, 4);
    serve(slots, 9, 50);
    for (const group of [1, 2, 3]) slots.add(rows(group, 4));
    const groups = takeAll(slots).map(({ group }) => group);
    expect(groups).toEqual([1, 2, 3, 1, 2, 3, 1, 2]);
  });

  it('are fewer where those that were handed over have waited in vain', () => {
    const slots = handing(8, 4);
    serve(slots, 1, 10);
    slots.add(rows(1, 60));
    expect(takeAll(slots)).toHaveLength(4 + 16);
    for (let one = 0; one < 16; one += 1) slots.finish(1, null, 250);
    expect(takeAll(slots)).toHaveLength(0);
    let taken = 0;
    for (let one = 0; one < 16; one += 1) {
      slots.finish(1, true, 10);
      taken += takeAll(slots).length;
    }
    // More than have ended: some are handed over again.
    expect(taken).toBeGreaterThan(16);
  });
});
