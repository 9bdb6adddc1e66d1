import { createFaultLog } from '../database/retry';
import { TimeSlice } from '../runtime/event-loop';
import { createRecorder, createSignal, STOP_MARGIN_MS, stopWithin } from './recorder';
import type { GroupHandler, WorkerLog, WorkStore } from './types';
import type { Lease } from '../queue/lease';

export interface BatchWorkerOptions<L extends Lease> {
  name: string;
  store: WorkStore<L>;
  log: WorkerLog;
  /** Rows that are claimed of one group at once. */
  claimAtOnce: number;
  /** How much of a lease must be left for work to be started, in milliseconds. */
  reserveMs: number;
  pollMs: number;
  /** How long batches are kept while the database is away, in milliseconds. */
  keepMs: number;
  /** Says to the scheduler that more can be worked on now. */
  announce(): void;
  /**
   * Works on all of them together, in one transaction if it can. Called with what was claimed since
   * the last call, of whatever groups, and again with the same where the database was away.
   */
  consume(leases: readonly L[]): Promise<void>;
  /** Hears of what was claimed, before any of it starts. */
  onClaimed?(leases: readonly L[]): void;
  /** Hears of what waited too long to be worked on under its lease. */
  onLate?(leases: readonly L[]): void;
}

/** Groups that may have a turn at once: their rows share batches, so more of them wait for each other. */
const TURNS_AT_ONCE = 8;
/** When to look whether something of a group is due, of which fewer rows were brought than asked for. */
const LOOK_AGAIN_MS = 100;
/** How long a turn waits for the batches before it lets others have one, in milliseconds. */
const BATCH_WAIT_MS = 500;

/**
 * Works on claimed rows in batches, one batch after the other: for work whose cost is its commit. One
 * instance a kind of work.
 */
export const createBatchWorker = <L extends Lease>(
  options: BatchWorkerOptions<L>
): GroupHandler => {
  const { name, store, claimAtOnce, reserveMs } = options;
  const logFault = createFaultLog(options.log, Date.now);
  const idle: (() => void)[] = [];
  const done = createSignal();
  let stopping = false;
  let claiming = 0;

  const settleIdle = (): void => {
    if (claiming > 0 || batches.isBusy()) return;
    for (const resolve of idle.splice(0)) resolve();
  };

  const batches = createRecorder<L>({
    name,
    keepMs: options.keepMs,
    logFault,
    async record(leases) {
      // What waited here too long is left to its lease, and comes back.
      const now = store.now();
      const isHeld = ({ leaseUntil }: L) => leaseUntil - now >= reserveMs;
      const held = leases.filter(isHeld);
      if (held.length < leases.length) options.onLate?.(leases.filter((one) => !isHeld(one)));
      if (held.length > 0) await options.consume(held);
    },
    onDone(wasFull) {
      if (wasFull) options.announce();
      done.give();
      settleIdle();
    },
  });

  /** @returns whether more of the group may be due: it takes its turn again after the other groups. */
  const claim = async (group: number): Promise<boolean> => {
    claiming += 1;
    try {
      const leases = await store.claim([{ group, limit: claimAtOnce }]);
      options.onClaimed?.(leases);
      for (const lease of leases) batches.add(lease);
      batches.start();
      return leases.length >= claimAtOnce;
    } finally {
      claiming -= 1;
      settleIdle();
    }
  };

  return {
    pollMs: options.pollMs,
    now: () => store.now(),
    dueTimes: () => store.dueTimes(),
    async work(groups) {
      const slice = new TimeSlice();
      let isMoreDue = false;
      for (const group of groups) {
        if (stopping || batches.isFull()) break;
        if (await claim(group)) isMoreDue = true;
        if (slice.isOver()) await slice.next();
      }
      // What somebody holds locked is passed over: only a look tells that nothing more is due.
      return store.now() + (isMoreDue ? 0 : LOOK_AGAIN_MS);
    },
    async takeTurn(group, turn) {
      while (!stopping && !turn.isOver()) {
        const seen = done.count();
        // What other groups have brought goes first: claimed ahead, it would only wait under its lease.
        if (!batches.isBusy() && !(await claim(group))) return null;
        if (batches.isBusy() && !(await done.since(seen, BATCH_WAIT_MS))) break;
      }
      return store.now();
    },
    // One node a group: two that work on one till's records at once would wait for each other's locks.
    turns: { groups: TURNS_AT_ONCE, nodes: 1 },
    stop() {
      stopping = true;
      done.give();
      batches.hurry();
      const end = new Promise<void>((resolve) => {
        idle.push(resolve);
        settleIdle();
      });
      return stopWithin(reserveMs + STOP_MARGIN_MS, end);
    },
  };
};
