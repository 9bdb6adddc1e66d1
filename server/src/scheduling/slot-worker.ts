import type { Detached } from '../database/connection';
import { createFaultLog } from '../database/errors/fault-log';
import { isInfrastructureFault } from '../database/errors/faults';
import { GroupSlots } from './group-slots';
import { createRecorder } from './recorder';
import { createLeaseKeeper } from './lease-keeper';
import { createSlotClaims } from './slot-claims';
import { createSlotTurns } from './slot-turns';
import { STOP_MARGIN_MS, stopWithin } from './stop-within';
import type { CappedWorkStore, GroupHandler, GroupLimits, Lease, WorkerLog } from './types';

export interface SlotWorkerOptions<L extends Lease, Outcome> {
  name: string;
  store: CappedWorkStore<L>;
  log: WorkerLog;
  detached: Detached;
  /** Pieces of work under way at once on this node. */
  concurrency: number;
  /** The same of one group: on this node, and in turns on all nodes together. */
  concurrencyPerGroup: number;
  /** What a group has of its own, as it is now. */
  limitsOf?(group: number): GroupLimits;
  /**
   * How much of the lease that a claim gave must be left for work to be started, in milliseconds; else it
   * is given back. Below 0 where it may wait for longer than that: leases are prolonged meanwhile.
   */
  reserveMs: number;
  /** How often leases of what waits and of what is under way are prolonged, in milliseconds. */
  renewMs: number;
  /** How long one piece of work may take, in milliseconds. */
  longestMs: number;
  pollMs: number;
  /**
   * Says to the scheduler that more of a group, or of any (`null`), can be worked on now, or from a
   * time on, epoch milliseconds of the store's clock.
   */
  announce(group: number | null, at?: number): void;
  /** Does one piece of work. `null`: nothing to record, it is left to its lease. */
  perform(lease: L): Promise<Outcome | null>;
  /** Whether an outcome speaks for its group: a failing group gets fewer slots until it recovers. */
  healthy(outcome: Outcome): boolean;
  /** Whether it asks to go slower; only of those that are not healthy. */
  slows?(outcome: Outcome): boolean;
  /** Whether other work waits for an outcome to be recorded. */
  awaited?(outcome: Outcome): boolean;
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

/**
 * Keeps a node's hands full: claims due work of a group when it is told to, performs it side by side
 * within the caps, and records the outcomes in batches. One instance a kind of work.
 */
export const createSlotWorker = <L extends Lease, Outcome>(
  options: SlotWorkerOptions<L, Outcome>
): GroupHandler => {
  const { name, store, detached } = options;
  const now = () => store.now();
  const slots = new GroupSlots<L>(
    options.concurrency,
    options.concurrencyPerGroup,
    undefined,
    options.limitsOf
  );
  const logFault = createFaultLog(options.log, Date.now);
  const recorder = createRecorder<{ lease: L; outcome: Outcome }>({
    name,
    async record(done) {
      for (const { lease } of done) keeper.drop(lease);
      try {
        await options.record(done.map(({ outcome }) => outcome));
      } catch (error) {
        // It is tried again until the database is back; what is given up comes back with its lease.
        if (isInfrastructureFault(error)) for (const { lease } of done) keeper.keepAgain(lease);
        throw error;
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
  const keeper = createLeaseKeeper<L>({
    everyMs: options.renewMs,
    name,
    renew: (leases) => detached(() => store.renew(leases)),
    logFault,
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

  const run = async (lease: L): Promise<void> => {
    let healthy: boolean | null = null;
    let wasPerformed = false;
    const since = performance.now();
    try {
      const outcome = await options.perform(lease);
      if (outcome !== null) {
        wasPerformed = true;
        healthy = options.healthy(outcome);
        if (!healthy && options.slows?.(outcome)) slots.slow(lease.group);
        turns.unrecorded(lease);
        recorder.add({ lease, outcome }, options.awaited?.(outcome));
      } else keeper.drop(lease);
    } catch (error) {
      keeper.drop(lease);
      // A database that is away says nothing about the group; the row comes back with its lease.
      healthy = isInfrastructureFault(error) ? null : false;
      logFault(`${name}: row ${lease.id} could not be worked on`, error);
    }
    slots.finish(lease.group, healthy, wasPerformed ? performance.now() - since : undefined);
    start();
    recorder.start();
    if (slots.busy === 0) recorder.expectNoMore();
    if (!wasPerformed) turns.unworked(lease.group);
    const ofTurn = turns.finished(lease);
    if (ofTurn === undefined) (wasPerformed ? claims.goOn : claims.lookAgain)(lease.group);
    else if (ofTurn) options.announce(lease.group);
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
        keeper.drop(lease);
        turns.givenBack(lease);
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
      else {
        for (const lease of leases) keeper.keep(lease);
        slots.add(leases);
      }
    } finally {
      claiming -= 1;
      settleIdle();
    }
    start();
  };

  const claims = createSlotClaims<L>({
    name,
    store,
    slots,
    detached,
    isAlone: (group) => options.limitsOf?.(group).alone ?? false,
    isHeldUp: () => recorder.isFull(),
    isStopping: () => stopping,
    announce: options.announce,
    take,
    logFault,
  });
  const turns = createSlotTurns<L>({
    store,
    slots,
    concurrency: options.concurrency,
    concurrencyPerGroup: options.concurrencyPerGroup,
    isHeldUp: () => recorder.isFull(),
    isStopping: () => stopping,
    mayClaimAhead: (group) => !options.limitsOf?.(group).alone,
    take,
  });

  const end = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      idle.push(resolve);
      settleIdle();
    });
    keeper.stop();
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
    work: claims.work,
    takeTurn: turns.takeTurn,
    turns: { groups: options.concurrency, nodes: options.concurrencyPerGroup },
    looked(due) {
      slots.forgetExcept(due);
      turns.forgetExcept(due);
      claims.forgetExcept(due);
    },
    stop() {
      stopping = true;
      turns.wake();
      recorder.hurry();
      const waiting = slots.dropWaiting();
      for (const lease of waiting) keeper.drop(lease);
      unstarted.push(...waiting);
      return stopWithin(options.longestMs + STOP_MARGIN_MS, end());
    },
  };
};
