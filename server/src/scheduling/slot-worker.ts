import type { Detached } from '../database/connection';
import { createFaultLog } from '../database/errors/fault-log';
import { isInfrastructureFault } from '../database/errors/faults';
import { createTimeSlice } from '../runtime/event-loop';
import { GroupSlots } from './group-slots';
import { createRecorder } from './recorder';
import { createSlotTurns } from './slot-turns';
import { STOP_MARGIN_MS, stopWithin } from './stop-within';
import type { CappedWorkStore, GroupHandler, GroupRoom, Lease, WorkerLog } from './types';

export interface SlotWorkerOptions<L extends Lease, Outcome> {
  name: string;
  store: CappedWorkStore<L>;
  log: WorkerLog;
  detached: Detached;
  /** Pieces of work under way at once on this node. */
  concurrency: number;
  /** The same of one group: on this node, and in turns on all nodes together. */
  concurrencyPerGroup: number;
  /** How much of a lease must be left for work to be started, in milliseconds; else it is given back. */
  reserveMs: number;
  pollMs: number;
  /** Says to the scheduler that more of a group, or of any (`null`), can be worked on now. */
  announce(group: number | null): void;
  /** Does one piece of work. `null`: nothing to record, it is left to its lease. */
  perform(lease: L): Promise<Outcome | null>;
  /** Whether an outcome speaks for its group: a failing group gets fewer slots until it recovers. */
  healthy(outcome: Outcome): boolean;
  /**
   * Records outcomes. Called with what has gathered since the last call, and again with the same
   * where the database was away: what a lost lease or an earlier call settled must change nothing.
   */
  record(outcomes: readonly Outcome[]): Promise<void>;
  /** Hears of what was claimed, before any of it starts. */
  onClaimed?(leases: readonly L[]): void;
  /** Hears of what was given back, because none of its lease or of the worker's time was left. */
  onGivenBack?(leases: readonly L[]): void;
}

/** Groups that are claimed with one statement. */
const GROUPS_AT_ONCE = 32;

/**
 * Keeps a node's hands full: claims due work of a group when it is told to, performs it side by side
 * within the caps, and records the outcomes in batches. One instance a kind of work.
 */
export const createSlotWorker = <L extends Lease, Outcome>(
  options: SlotWorkerOptions<L, Outcome>
): GroupHandler => {
  const { name, store, detached } = options;
  const now = () => store.now();
  const slots = new GroupSlots<L>(options.concurrency, options.concurrencyPerGroup);
  const logFault = createFaultLog(options.log, Date.now);
  const recorder = createRecorder<{ lease: L; outcome: Outcome }>({
    name,
    async record(done) {
      try {
        await options.record(done.map(({ outcome }) => outcome));
      } finally {
        for (const { lease } of done) turns.recorded(lease);
      }
    },
    logFault,
    onDone(wasFull) {
      if (wasFull) options.announce(null);
      turns.wake();
      settleIdle();
    },
  });
  const idle: (() => void)[] = [];
  /** Leased, but given back by `stop`: it would otherwise sit through its lease. */
  const unstarted: L[] = [];
  let stopping = false;
  let claiming = 0;
  let startedThisTurn = false;

  const settleIdle = (): void => {
    if (slots.busy > 0 || claiming > 0 || recorder.isBusy()) return;
    for (const resolve of idle.splice(0)) resolve();
  };

  /** Whether due groups should be looked for, now that a row of this one is done. */
  const wantsLook = (group: number): boolean =>
    slots.hungry || (!slots.saturated && slots.wantsMore(group));

  const run = async (lease: L): Promise<void> => {
    let healthy: boolean | null = null;
    try {
      const outcome = await options.perform(lease);
      if (outcome !== null) {
        healthy = options.healthy(outcome);
        turns.unrecorded(lease);
        recorder.add({ lease, outcome });
      }
    } catch (error) {
      // A database that is away says nothing about the group; the row comes back with its lease.
      healthy = isInfrastructureFault(error) ? null : false;
      logFault(`${name}: row ${lease.id} could not be worked on`, error);
    }
    slots.finish(lease.group, healthy);
    start();
    recorder.start();
    if (turns.finished(lease) ?? wantsLook(lease.group)) {
      options.announce(lease.group);
    }
    settleIdle();
  };

  /** What waited for a slot until too little of its lease was left goes back to its place. */
  const giveBack = async (leases: L[]): Promise<void> => {
    try {
      await store.release(leases);
      options.onGivenBack?.(leases);
      options.announce(null);
    } catch (error) {
      logFault(`${name}: ${leases.length} rows could not be given back`, error);
    }
  };

  const nextTurn = (): void => {
    startedThisTurn = false;
    start();
  };

  /**
   * Starts what is claimed and has a slot, one piece a turn of the event loop, so that the site's own
   * requests are served in between. Goes on until nothing more can start: what waited through its
   * lease gives its slot back at once, and nobody else would offer it to the next one.
   */
  const start = (): void => {
    const late: L[] = [];
    while (!stopping && !startedThisTurn) {
      const lease = slots.takeNext();
      if (!lease) break;
      if (lease.leaseUntil - now() < options.reserveMs) {
        slots.finish(lease.group, null);
        late.push(lease);
        continue;
      }
      startedThisTurn = true;
      setImmediate(nextTurn);
      void run(lease);
    }
    if (late.length > 0) detached(() => void giveBack(late));
  };

  /** Has rows claimed, and starts them. */
  const take = async (claim: () => Promise<L[]>): Promise<void> => {
    claiming += 1;
    try {
      const leases = await claim();
      options.onClaimed?.(leases);
      if (stopping) unstarted.push(...leases);
      else slots.add(leases);
    } finally {
      claiming -= 1;
      settleIdle();
    }
    start();
  };

  const claim = async (group: number, room: number): Promise<null> => {
    await take(() => store.claim(group, room));
    return null;
  };

  /** So many groups from there on that their rows may fill what is free. @returns where the rest begins. */
  const plan = (groups: readonly number[], from: number): { rooms: GroupRoom[]; next: number } => {
    const rooms: GroupRoom[] = [];
    let planned = 0;
    let next = from;
    for (; next < groups.length && rooms.length < GROUPS_AT_ONCE; next += 1) {
      const group = groups[next] as number;
      const limit = slots.roomFor(group, planned);
      // What was planned may turn out to be less.
      if (limit === 0 && planned > 0 && slots.roomFor(group) > 0) break;
      if (limit > 0) rooms.push({ group, limit });
      planned += limit;
    }
    return { rooms, next };
  };

  /** Groups that have little to do each are claimed together: a statement for a few rows is dear. */
  const workOn = async (groups: readonly number[]): Promise<void> => {
    const slice = createTimeSlice();
    for (let from = 0; from < groups.length && !stopping && !recorder.isFull();) {
      const { rooms, next } = plan(groups, from);
      from = next;
      const [only, ...others] = rooms;
      if (only) {
        await take(() =>
          others.length > 0 ? store.claimGroups(rooms) : store.claim(only.group, only.limit)
        );
      }
      if (slice.isOver()) await slice.next();
    }
  };

  const turns = createSlotTurns<L>({
    store,
    slots,
    concurrency: options.concurrency,
    concurrencyPerGroup: options.concurrencyPerGroup,
    isHeldUp: () => recorder.isFull(),
    isStopping: () => stopping,
    take,
  });

  const end = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      idle.push(resolve);
      settleIdle();
    });
    try {
      await store.release(unstarted);
      options.onGivenBack?.(unstarted);
    } catch (error) {
      // They come back when their leases end.
      logFault(`${name}: ${unstarted.length} rows could not be given back`, error);
    }
  };

  return {
    pollMs: options.pollMs,
    now,
    dueTimes: () => store.dueTimes(),
    work(group) {
      const room = stopping || recorder.isFull() ? 0 : slots.roomFor(group);
      return room > 0 ? claim(group, room) : null;
    },
    workOn,
    takeTurn: turns.takeTurn,
    turns: { groups: options.concurrency, nodes: options.concurrencyPerGroup },
    looked(due) {
      slots.forgetExcept(due);
      turns.forgetExcept(due);
    },
    stop() {
      stopping = true;
      turns.wake();
      recorder.hurry();
      unstarted.push(...slots.dropWaiting());
      return stopWithin(options.reserveMs + STOP_MARGIN_MS, end());
    },
  };
};
