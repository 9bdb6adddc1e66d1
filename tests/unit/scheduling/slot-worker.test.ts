import { createEmbeddedScheduler } from '../../../server/src/scheduling/embedded-scheduler';
import { SlotWorker, type SlotWorkerOptions } from '../../../server/src/scheduling/slot-worker';
import type { Lease } from '../../../server/src/queue/queue';
import { createMemoryStore, type MemoryStore } from './support/memory-store';

interface Outcome {
  claimed: Lease;
  ok: boolean;
}

const sleep = (milliseconds: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

const until = async (probe: () => boolean, timeout = 8000): Promise<void> => {
  const deadline = Date.now() + timeout;
  while (!probe()) {
    if (Date.now() > deadline) throw new Error('waited too long');
    await sleep(2);
  }
};

interface Worker {
  /** @param group the one that was just committed to; any by default */
  wake(group?: number | null): void;
  stop(): Promise<void>;
}

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
});

const start = (queue: MemoryStore, changes: Partial<SlotWorkerOptions<Lease, Outcome>> = {}) => {
  const errors: string[] = [];
  const batches: number[] = [];
  const performed: number[] = [];
  const log = { error: (line: string) => void errors.push(line) };
  const scheduler = createEmbeddedScheduler(log, (work) => work());
  const announce = (group: number | null, at = queue.now()) =>
    scheduler.announce('work', group, at);
  const slots = new SlotWorker<Lease, Outcome>({
    name: 'work',
    store: queue,
    log,
    detached: (work) => work(),
    concurrency: 8,
    concurrencyPerGroup: 4,
    pace: () => ({ together: 8, restMs: 0 }),
    reserveMs: 1000,
    renewMs: 2500,
    longestMs: 15_000,
    pollMs: 10_000,
    announce,
    judge: ({ ok }) => ({ healthy: ok }),
    async record(outcomes) {
      batches.push(outcomes.length);
      queue.finish(outcomes.map(({ claimed }) => claimed));
    },
    async perform(claimed) {
      performed.push(claimed.id);
      return { claimed, ok: true };
    },
    ...changes,
  });
  scheduler.serve('work', slots);
  const worker: Worker = { wake: (group = null) => announce(group), stop: () => scheduler.stop() };
  workers.push(worker);
  return { worker, slots, errors, batches, performed };
};

const open = (queue: MemoryStore) => queue.rows.filter(({ dueAt }) => dueAt !== null);

describe('many groups with little to do each', () => {
  it('are claimed together, and all of it is done', async () => {
    const queue = createMemoryStore();
    for (let group = 1; group <= 100; group += 1) queue.put(group, 2);
    const { worker, performed } = start(queue, { concurrency: 64, concurrencyPerGroup: 16 });
    worker.wake();
    await until(() => queue.rows.length === 200 && open(queue).length === 0);
    expect(new Set(performed).size).toBe(200);
    expect(queue.calls.claim).toBeLessThan(50);
  });

  /** Puts one more group behind hundreds that are served. @returns how many attempts begin before its own */
  const comeLater = async ({ isWaitedFor }: { isWaitedFor: boolean }): Promise<number> => {
    const queue = createMemoryStore();
    for (let group = 1; group <= 300; group += 1) queue.put(group, 20, 1);
    const order: number[] = [];
    const { worker } = start(queue, {
      concurrency: 64,
      concurrencyPerGroup: 16,
      ...(isWaitedFor && { first: 999 }),
      async perform(claimed) {
        order.push(claimed.group);
        await sleep(1);
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => order.length > 500);
    queue.put(999, 1, 2);
    let begun = order.length;
    const { dueTimes } = queue;
    if (isWaitedFor) worker.wake(999);
    else {
      // From the first look that finds it: after a long look the scheduler rests as long, and attempts go on.
      queue.dueTimes = () => {
        begun = order.length;
        queue.dueTimes = dueTimes;
        return dueTimes();
      };
      worker.wake();
    }
    await until(() => order.includes(999));
    const before = order.indexOf(999) - begun;
    await until(() => open(queue).length === 0);
    return before;
  };

  it('do not crowd each other out: a group that comes later has its turn', async () => {
    // A turn of each of the three hundred, four rows at a time, and what is claimed already.
    expect(await comeLater({ isWaitedFor: false })).toBeLessThan(300 * 4 + 2 * 5 * 64);
  });

  it('keep the one waiting that somebody waits for no longer than what is claimed already', async () => {
    expect(await comeLater({ isWaitedFor: true })).toBeLessThan(6 * 64);
  });
});

describe('a worker that could stand in the way of an answer', () => {
  it('begins later where it is busy, and goes on although there is always one', async () => {
    const queue = createMemoryStore();
    queue.put(1, 60);
    let claimedAt = 0;
    let begunAt = 0;
    const { worker } = start(queue, {
      isAnswering: () => true,
      onClaimed: () => void (claimedAt ||= performance.now()),
      async perform(claimed) {
        begunAt ||= performance.now();
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => open(queue).length === 0);
    expect(begunAt - claimedAt).toBeGreaterThanOrEqual(14);
  });

  it('begins at once where it has little to do', async () => {
    const queue = createMemoryStore();
    queue.put(1, 3);
    const isAnswering = jest.fn(() => true);
    const { worker, performed } = start(queue, { isAnswering });
    worker.wake();
    await until(() => performed.length === 3);
    expect(isAnswering).not.toHaveBeenCalled();
  });
});

describe('waking', () => {
  it('is not needed for what a claim passed over, because somebody held it locked', async () => {
    const queue = createMemoryStore();
    queue.put(1, 20);
    const claim = queue.claim.bind(queue);
    queue.claim = (rooms) =>
      claim(rooms.map(({ group, limit }) => ({ group, limit: Math.min(limit, 3) })));
    const { worker } = start(queue);
    worker.wake(1);
    await until(() => open(queue).length === 0);
    const looks = queue.calls.dueTimes;
    await sleep(300);
    expect(queue.calls.dueTimes - looks).toBeLessThanOrEqual(1);
  });

  it('a thousand times in one tick looks for work once', async () => {
    const queue = createMemoryStore();
    const { worker } = start(queue);
    for (let index = 0; index < 1000; index += 1) worker.wake();
    await until(() => queue.calls.dueTimes > 0);
    await sleep(30);
    expect(queue.calls.dueTimes).toBe(1);
  });

  it('fails without a word once the worker is to stop', async () => {
    const queue = createMemoryStore();
    const { worker, errors } = start(queue);
    let fail = (_error: Error): void => {};
    queue.dueTimes = () => new Promise((_resolve, reject) => (fail = reject));
    worker.wake();
    await sleep(20);
    await worker.stop();
    fail(new Error('Unable to acquire a connection'));
    await sleep(20);
    expect(errors).toEqual([]);
  });

  it('while it looks makes it look again, so that nothing committed meanwhile is missed', async () => {
    const queue = createMemoryStore();
    const { worker } = start(queue);
    const dueTimes = queue.dueTimes.bind(queue);
    let looks = 0;
    queue.dueTimes = async () => {
      looks += 1;
      const seen = await dueTimes();
      if (looks === 1) {
        queue.put(1);
        worker.wake();
      }
      return seen;
    };
    worker.wake();
    await until(() => queue.rows.length === 1 && open(queue).length === 0);
  });

  it('comes by itself for a row that is due later', async () => {
    const queue = createMemoryStore();
    const dueAt = Date.now() + 60;
    queue.put(1, 1, dueAt);
    let performedAt = 0;
    const { worker } = start(queue, {
      async perform(claimed) {
        performedAt = Date.now();
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => open(queue).length === 0);
    expect(performedAt).toBeGreaterThanOrEqual(dueAt);
  });

  it('keeps no process alive and does nothing after stop', async () => {
    const queue = createMemoryStore();
    const { worker, performed } = start(queue);
    await worker.stop();
    queue.put(1);
    worker.wake();
    await sleep(20);
    expect(performed).toEqual([]);
  });

  it('recovers by itself after a look that failed', async () => {
    const queue = createMemoryStore();
    queue.put(1);
    queue.failNext = new Error('the database is away');
    const { worker, errors } = start(queue);
    worker.wake();
    await until(() => open(queue).length === 0, 3000);
    expect(errors.join()).toContain('the database is away');
  });
});

describe('a group that is known to have more', () => {
  it('is claimed of without asking what is due, ahead but within five times what may run', async () => {
    const queue = createMemoryStore();
    queue.put(1, 400);
    let ended = 0;
    let mostHeld = 0;
    const { worker } = start(queue, {
      async perform(claimed) {
        mostHeld = Math.max(mostHeld, queue.claimed.length - ended);
        await sleep(1);
        ended += 1;
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => open(queue).length === 0);
    expect(queue.claimed).toHaveLength(400);
    expect(queue.calls.dueTimes).toBeLessThan(10);
    // Eight may run at once, four of the group.
    expect(mostHeld).toBeGreaterThan(8);
    expect(mostHeld).toBeLessThanOrEqual(40);
  });

  it('because it was announced by name is not asked about either, and keeps the timers of others', async () => {
    const queue = createMemoryStore();
    const later = Date.now() + 150;
    queue.put(2, 1, later);
    const { worker, performed } = start(queue);
    worker.wake();
    await until(() => queue.calls.dueTimes === 1);
    queue.put(1, 1);
    worker.wake(1);
    await until(() => performed.length === 1);
    expect(queue.calls.dueTimes).toBe(1);
    await until(() => performed.length === 2);
    expect(Date.now()).toBeGreaterThanOrEqual(later);
    expect(queue.calls.dueTimes).toBeGreaterThan(1);
  });

  const oneByOne: Partial<SlotWorkerOptions<Lease, Outcome>> = {
    concurrency: 1,
    concurrencyPerGroup: 1,
    perform: async (claimed) => ({ claimed, ok: true }),
  };

  it('goes on where rows end sooner than the claims that brought them', async () => {
    const queue = createMemoryStore();
    queue.put(1, 30);
    const { worker } = start(queue, oneByOne);
    worker.wake();
    await until(() => open(queue).length === 0);
  });

  it('goes on where more was committed and announced while it was being claimed of', async () => {
    const queue = createMemoryStore();
    queue.put(1, 2);
    const claim = queue.claim.bind(queue);
    queue.claim = async (rooms) => {
      const rows = await claim(rooms);
      if (rows.length === 0 && queue.rows.length === 2) {
        queue.put(1, 3);
        worker.wake(1);
        await sleep(20);
      }
      return rows;
    };
    const { worker } = start(queue, oneByOne);
    worker.wake();
    await until(() => queue.rows.length === 5 && open(queue).length === 0);
  });

  it('is left alone where its rows are not worked on, until it is due again', async () => {
    const queue = createMemoryStore();
    queue.put(1, 50);
    let isOff = true;
    const dueTimes = queue.dueTimes.bind(queue);
    queue.dueTimes = async () => (isOff && queue.calls.claim > 0 ? new Map() : dueTimes());
    const { worker, performed } = start(queue, {
      async perform(claimed) {
        if (isOff) {
          await queue.release([claimed]);
          return null;
        }
        performed.push(claimed.id);
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => queue.calls.release > 0);
    await sleep(100);
    expect(queue.calls.claim).toBeLessThan(10);
    isOff = false;
    worker.wake();
    await until(() => open(queue).length === 0);
    expect(new Set(performed).size).toBe(50);
  });
});

describe('the pace', () => {
  it('says how many pieces begin together, and how long the next ones wait', async () => {
    const queue = createMemoryStore();
    queue.put(1, 6);
    const turns: { at: number; pieces: number }[] = [];
    let turn: { at: number; pieces: number } | null = null;
    const { worker, performed } = start(queue, {
      concurrencyPerGroup: 8,
      pace: () => ({ together: 2, restMs: 40 }),
      async perform(claimed) {
        if (!turn) {
          turn = { at: performance.now(), pieces: 0 };
          turns.push(turn);
          setImmediate(() => (turn = null));
        }
        turn.pieces += 1;
        performed.push(claimed.id);
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => performed.length === 6);
    expect(turns.map(({ pieces }) => pieces)).toEqual([2, 2, 2]);
    const waits = turns.slice(1).map(({ at }, before) => at - (turns[before]?.at ?? at));
    // A timer may be early by a millisecond.
    for (const wait of waits) expect(wait).toBeGreaterThanOrEqual(39);
  });
});

describe('work', () => {
  it('is all done, each row once, within the caps, and recorded in batches', async () => {
    const queue = createMemoryStore();
    for (const group of [1, 2, 3]) queue.put(group, 100);
    const running = new Map<number, number>();
    let most = 0;
    let mostOfOne = 0;
    const performed: number[] = [];
    const batches: number[] = [];
    const { worker } = start(queue, {
      async record(outcomes) {
        await sleep(3);
        batches.push(outcomes.length);
        queue.finish(outcomes.map(({ claimed }) => claimed));
      },
      async perform(claimed) {
        const { group } = claimed;
        running.set(group, (running.get(group) ?? 0) + 1);
        most = Math.max(
          most,
          [...running.values()].reduce((sum, n) => sum + n, 0)
        );
        mostOfOne = Math.max(mostOfOne, running.get(group)!);
        await sleep(1);
        running.set(group, running.get(group)! - 1);
        performed.push(claimed.id);
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => open(queue).length === 0);
    expect(performed.sort((a, b) => a - b)).toEqual(queue.rows.map(({ id }) => id));
    expect(most).toBe(8);
    expect(mostOfOne).toBe(4);
    expect(batches.reduce((sum, n) => sum + n, 0)).toBe(300);
    expect(batches.length).toBeLessThan(300);
  });

  it('starts a few rows a turn of the event loop, however many slots are free', async () => {
    const queue = createMemoryStore();
    queue.put(1, 20);
    const started: number[] = [];
    const startedAfterFirst: number[] = [];
    const { worker } = start(queue, {
      concurrency: 20,
      concurrencyPerGroup: 20,
      async perform(claimed) {
        started.push(claimed.id);
        // Still the same turn: only what waits for nothing comes in between.
        for (let tick = 0; tick < 10; tick += 1) await null;
        startedAfterFirst.push(started.length);
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => open(queue).length === 0);
    expect(new Set(startedAfterFirst)).toEqual(new Set([8, 16, 20]));
  });

  it('of a group that hangs does not hold up another group', async () => {
    const queue = createMemoryStore();
    queue.put(1, 1000);
    const free: (() => void)[] = [];
    const { worker } = start(queue, {
      perform: (claimed) =>
        claimed.group === 1
          ? new Promise((resolve) => free.push(() => resolve({ claimed, ok: false })))
          : Promise.resolve({ claimed, ok: true }),
    });
    worker.wake();
    await until(() => free.length === 4);
    queue.put(2, 20);
    worker.wake();
    await until(() => queue.rows.filter((row) => row.group === 2 && row.dueAt).length === 0);
    expect(free).toHaveLength(4);
    void worker.stop();
    for (const release of free) release();
  });

  it('that throws is logged, left to its lease, and harms no other row', async () => {
    const queue = createMemoryStore();
    queue.put(1, 3);
    const { worker, errors } = start(queue, {
      async perform(claimed) {
        if (claimed.id === 2) throw new Error('bug in a handler');
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => open(queue).length === 1);
    expect(open(queue)[0]).toMatchObject({ id: 2, owner: expect.stringContaining('lease') });
    expect(errors.join()).toContain('bug in a handler');
  });

  it('whose outcome cannot be recorded is logged and left to its lease; the next is recorded', async () => {
    const queue = createMemoryStore();
    queue.put(1, 1);
    let fail = true;
    const { worker, errors } = start(queue, {
      async record(outcomes) {
        if (fail) throw new Error('the disk is full');
        queue.finish(outcomes.map(({ claimed }) => claimed));
      },
    });
    worker.wake();
    await until(() => errors.length === 1);
    expect(errors[0]).toContain('the disk is full');
    fail = false;
    queue.put(1, 1);
    worker.wake();
    await until(() => open(queue).length === 1);
    expect(open(queue)[0]?.id).toBe(1);
  });
});

describe('rows that waited until their lease was nearly over', () => {
  it('are not started, come back, and do not block the group for ever', async () => {
    let time = 0;
    const queue = createMemoryStore({ leaseMs: 10_000, now: () => time });
    queue.put(1, 12);
    const started: Lease[] = [];
    const free: (() => void)[] = [];
    const { worker } = start(queue, {
      reserveMs: 5000,
      perform: (claimed) => {
        started.push(claimed);
        return new Promise((resolve) => free.push(() => resolve({ claimed, ok: false })));
      },
    });
    worker.wake();
    await until(() => started.length === 4);
    const claimedAhead = queue.claimed.length;
    expect(claimedAhead).toBeGreaterThan(4);
    time = 9000;
    for (const release of free.splice(0)) release();
    await sleep(20);
    for (const { leaseUntil } of started) expect(leaseUntil).toBeGreaterThanOrEqual(5000);
    const late = started.filter(({ leaseUntil }) => leaseUntil === 10_000).length;
    expect(late).toBe(4);
    time = 10_001;
    worker.wake();
    // A failing group has one slot; but it has one.
    for (let left = 8; left > 0; left -= 1) {
      await until(() => free.length > 0);
      for (const release of free.splice(0)) release();
      await sleep(1);
      worker.wake();
    }
    await until(() => open(queue).length === 0);
  });
});

describe('stopping', () => {
  it('waits for what is under way and records it, gives back what waited', async () => {
    const queue = createMemoryStore();
    queue.put(1, 30);
    const free: (() => void)[] = [];
    const { worker, batches } = start(queue, {
      perform: (claimed) =>
        new Promise((resolve) => free.push(() => resolve({ claimed, ok: true }))),
    });
    worker.wake();
    await until(() => free.length === 4);
    let stopped = false;
    const stopping = worker.stop().then(() => (stopped = true));
    await sleep(20);
    expect(stopped).toBe(false);
    for (const release of free) release();
    await stopping;
    expect(free).toHaveLength(4);
    expect(batches.reduce((sum, n) => sum + n, 0)).toBe(4);
    expect(open(queue)).toHaveLength(26);
    expect(open(queue).every(({ owner }) => owner === null)).toBe(true);
  });

  it('during a claim gives the claimed rows back', async () => {
    const queue = createMemoryStore();
    queue.put(1, 5);
    const claim = queue.claim.bind(queue);
    let claimed: (() => void) | undefined;
    queue.claim = async (rooms) => {
      const rows = await claim(rooms);
      await new Promise<void>((resolve) => (claimed = resolve));
      return rows;
    };
    const { worker, performed } = start(queue);
    worker.wake();
    await until(() => claimed !== undefined);
    const stopping = worker.stop();
    claimed!();
    await stopping;
    expect(performed).toEqual([]);
    expect(open(queue).every(({ owner }) => owner === null)).toBe(true);
  });
});

describe('a database that is away', () => {
  const away = () => Object.assign(new Error('no'), { code: 'ECONNREFUSED' });

  it('costs no outcome: they are recorded when it is back, and the log is not flooded', async () => {
    const queue = createMemoryStore();
    queue.put(1, 3);
    let tries = 0;
    const { worker, performed, errors } = start(queue, {
      async record(outcomes) {
        tries += 1;
        if (tries <= 3) throw away();
        queue.finish(outcomes.map(({ claimed }) => claimed));
      },
    });
    worker.wake();
    await until(() => open(queue).length === 0, 10_000);
    expect(performed).toHaveLength(3);
    expect(errors).toHaveLength(1);
  }, 15_000);

  it('says nothing about the group of a row that could not be worked on', async () => {
    const queue = createMemoryStore();
    queue.put(1, 4);
    let down = true;
    let most = 0;
    let now = 0;
    const { worker, errors } = start(queue, {
      async perform(claimed) {
        if (down) throw away();
        now += 1;
        most = Math.max(most, now);
        await sleep(20);
        now -= 1;
        return { claimed, ok: true };
      },
    });
    worker.wake();
    await until(() => queue.claimed.length === 4);
    await sleep(20);
    down = false;
    queue.put(1, 8);
    worker.wake();
    await until(() => open(queue).length === 4);
    expect(most).toBe(4);
    expect(errors).toHaveLength(1);
  });

  it('does not hold a stop up for ever', async () => {
    const queue = createMemoryStore();
    queue.put(1, 1);
    const { worker, performed } = start(queue, {
      async record() {
        throw away();
      },
    });
    worker.wake();
    await until(() => performed.length === 1);
    const stoppedAt = Date.now();
    await worker.stop();
    expect(Date.now() - stoppedAt).toBeLessThan(5000);
  }, 10_000);
});

describe('rows of a group that fails', () => {
  it('are tried in the order they are due, retries among first tries, though more come than can be tried', async () => {
    let time = 1000;
    const queue = createMemoryStore({ now: () => time });
    queue.put(1, 6, 10);
    const tried: number[] = [];
    const { worker } = start(queue, {
      concurrencyPerGroup: 1,
      async perform(claimed) {
        tried.push(claimed.id);
        return { claimed, ok: false };
      },
      async record(outcomes) {
        for (const { claimed } of outcomes) {
          const row = queue.rows.find(({ id }) => id === claimed.id);
          // A retry is due a little later; fresh rows, two for each that is tried, later still.
          if (row) Object.assign(row, { dueAt: time + 10, owner: null });
          queue.put(1, 2, time + 15);
        }
        time += 20;
        worker.wake();
      },
    });
    worker.wake();
    await until(() => tried.length >= 30);
    const first = tried.filter((id) => id === 1).length;
    expect(first).toBeGreaterThanOrEqual(2);
  });
});

describe('groups that are claimed of by themselves', () => {
  const ALONE = new Set([1, 2, 3]);
  const limitsOf = (group: number) => ({ separate: ALONE.has(group) });

  it('keep no other group waiting, and neither do several of them', async () => {
    const queue = createMemoryStore();
    queue.put(1, 1, 1);
    queue.put(2, 1, 2);
    queue.put(7, 3, 3);
    queue.put(8, 3, 4);
    const claim = queue.claim.bind(queue);
    let letGo = (): void => {};
    const gone = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    queue.claim = async (rooms) => {
      if (rooms.some(({ group }) => ALONE.has(group))) await gone;
      return claim(rooms);
    };
    const { worker, performed } = start(queue, { limitsOf, concurrency: 32 });
    worker.wake();
    await until(() => open(queue).length === 2);
    expect(open(queue).map(({ group }) => group)).toEqual([1, 2]);
    queue.put(8, 1);
    worker.wake(8);
    await until(() => performed.length === 7);
    letGo();
    await until(() => open(queue).length === 0);
    expect(performed).toHaveLength(9);
  });

  it('cost the others nothing where a claim of theirs fails, and are claimed of again', async () => {
    const queue = createMemoryStore();
    queue.put(7, 2, 1);
    queue.put(1, 2, 2);
    queue.put(8, 2, 3);
    const claim = queue.claim.bind(queue);
    let failures = 1;
    queue.claim = async (rooms) => {
      if (rooms.some(({ group }) => group === 1) && failures > 0) {
        failures -= 1;
        throw new Error('the row is locked');
      }
      return claim(rooms);
    };
    const { worker, performed, errors } = start(queue, { limitsOf });
    worker.wake();
    await until(() => open(queue).length === 0);
    expect(performed.slice(0, 4).sort()).toEqual([1, 2, 5, 6]);
    expect(errors).toHaveLength(1);
  });
});

describe('room for what a write queues under leases', () => {
  const leased = (queue: MemoryStore, group: number): Lease => {
    queue.put(group, 1, queue.now());
    const row = queue.rows.at(-1);
    const lease = { owner: 'born', dueAt: queue.now(), leaseUntil: queue.now() + 30_000 };
    Object.assign(row ?? {}, { owner: lease.owner, dueAt: lease.leaseUntil });
    return { id: queue.rows.length, group, ...lease };
  };

  it('is kept, and what comes is worked on without a claim', async () => {
    const queue = createMemoryStore();
    const { slots, performed } = start(queue);
    const { isKept, take } = slots.keepRoom([1, 2, 1]);
    expect(isKept).toEqual([true, true, true]);
    take([leased(queue, 1), leased(queue, 2), leased(queue, 1)]);
    await until(() => open(queue).length === 0);
    expect(performed.sort()).toEqual([1, 2, 3]);
    expect(queue.calls.claim).toBe(0);
  });

  it('is no more than a group has slots and rows ahead, nor than the node has slots', () => {
    const { slots } = start(createMemoryStore());
    const ofOne = slots.keepRoom(Array<number>(12).fill(1));
    expect(ofOne.isKept.filter(Boolean)).toHaveLength(8);
    expect(slots.keepRoom([2]).isKept).toEqual([false]);
    ofOne.take([]);
    // What was refused room waits in the queue, and goes before what comes after it.
    expect(slots.keepRoom([2]).isKept).toEqual([false]);
    expect(slots.keepRoom([3]).isKept).toEqual([true]);
  });

  it('is given back once, however often it is given back', () => {
    const { slots } = start(createMemoryStore());
    for (let write = 0; write < 100; write += 1) {
      const { isKept, take } = slots.keepRoom([write]);
      expect(isKept).toEqual([true]);
      take([]);
      take([]);
    }
    const all = Array.from({ length: 20 }, (_, group) => group);
    expect(slots.keepRoom(all).isKept.filter(Boolean)).toHaveLength(8);
  });

  it('is not there before what waits, nor while the worker stops', async () => {
    const queue = createMemoryStore();
    queue.put(1, 40);
    const free: (() => void)[] = [];
    const { slots, worker } = start(queue, {
      perform: (claimed) =>
        new Promise((resolve) => free.push(() => resolve({ claimed, ok: true }))),
    });
    worker.wake();
    await until(() => free.length === 4);
    expect(slots.keepRoom([1, 2]).isKept).toEqual([false, true]);
    const stopped = worker.stop();
    expect(slots.keepRoom([2]).isKept).toEqual([false]);
    free.forEach((go) => go());
    await stopped;
  });
});
