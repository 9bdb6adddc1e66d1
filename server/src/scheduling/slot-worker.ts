import type { Detached } from '../database/connection';
import type { GroupRoom, Lease } from '../queue/lease';
import { createFaultLog, isInfrastructureFault } from '../database/retry';
import { TimeSlice } from '../runtime/event-loop';
import { GroupSlots } from './group-slots';
import { createRecorder, STOP_MARGIN_MS, stopWithin } from './recorder';
import { createSlotTurns } from './slot-turns';
import type { CappedWorkStore, GroupHandler, GroupLimits, WorkerLog } from './types';

interface LeaseKeeperOptions<L extends Lease> {
  /** How often leases are prolonged, in milliseconds. */
  everyMs: number;
  /** What is worked on, as the log calls it. */
  name: string;
  renew(leases: readonly L[]): Promise<void>;
  logFault(what: string, error: unknown): void;
}

/**
 * Prolongs the leases of what a process works on, so that none need last as long as the longest work:
 * what a killed process held is somebody else's soon, however long an attempt may take.
 */
interface LeaseKeeper<L extends Lease> {
  keep(lease: L): void;
  /** As `keep`, of one that has not been prolonged for some time: it is the next time. */
  keepAgain(lease: L): void;
  /** What is recorded at this moment must not be prolonged: the two would wait for each other's rows. */
  drop(lease: L): void;
  /** Prolongs nothing more. */
  stop(): void;
}

const createLeaseKeeper = <L extends Lease>({
  everyMs,
  name,
  renew,
  logFault,
}: LeaseKeeperOptions<L>): LeaseKeeper<L> => {
  /** Since when each lease is as long as it is, on a clock that only goes forward. */
  const kept = new Map<L, number>();
  let timer: NodeJS.Timeout | undefined;

  const schedule = (): void => {
    timer = setTimeout(() => void renewOld(), everyMs);
    timer.unref();
  };

  const renewOld = async (): Promise<void> => {
    const at = performance.now();
    const old = [...kept].filter(([, since]) => at - since >= everyMs / 2).map(([lease]) => lease);
    for (const lease of old) kept.set(lease, at);
    try {
      if (old.length > 0) await renew(old);
    } catch (error) {
      // What cannot be prolonged now is tried again while there is something left of its lease.
      logFault(`${name}: ${old.length} leases could not be prolonged`, error);
    }
    timer = undefined;
    if (kept.size > 0) schedule();
  };

  const keepSince = (lease: L, since: number): void => {
    kept.set(lease, since);
    if (!timer) schedule();
  };

  return {
    keep: (lease) => keepSince(lease, performance.now()),
    keepAgain: (lease) => keepSince(lease, Number.NEGATIVE_INFINITY),
    drop: (lease) => void kept.delete(lease),
    stop() {
      kept.clear();
      clearTimeout(timer);
      timer = undefined;
    },
  };
};

interface SlotClaimsOptions<L extends Lease> {
  /** Of the kind of work, for the log. */
  name: string;
  store: CappedWorkStore<L>;
  slots: GroupSlots<L>;
  detached: Detached;
  /** Whether a group is claimed of by itself, because each of its claims may take long. */
  isAlone(group: number): boolean;
  /** Whether nothing should be claimed for now, because recording lags behind. */
  isHeldUp(): boolean;
  isStopping(): boolean;
  /** Says that more of a group, or of any (`null`), can be worked on now, or from a time on. */
  announce(group: number | null, at?: number): void;
  /** Has rows claimed, and starts them. */
  take(claim: () => Promise<L[]>): Promise<void>;
  logFault(what: string, error: unknown): void;
}

interface SlotClaims {
  /** Claims of groups that are due, and starts what they have. */
  work(due: readonly number[]): Promise<null>;
  /** Goes on now that a row of this group was worked on. */
  goOn(group: number): void;
  /** A row was not worked on: only what is due tells whether to go on. */
  lookAgain(group: number): void;
  /** Forgets groups that have nothing due. */
  forgetExcept(due: ReadonlyMap<number, number>): void;
}

/** Groups that are claimed with one statement. */
const GROUPS_AT_ONCE = 32;
/** So few groups are claimed of one by one; of more, each gets its share of one statement. */
const FEW_GROUPS = 4;
/** When to look whether something of a group is due, of which fewer rows were brought than asked for. */
const LOOK_AGAIN_MS = 100;
/** The same after a claim that failed. */
const FAILED_AGAIN_MS = 1000;
/** Claims of groups that are made each by itself, at once: each may hold a connection for a while. */
const CLAIMS_ALONE = 2;

/** Decides of which groups a node claims how much, so that its slots stay full and groups get their share. */
const createSlotClaims = <L extends Lease>({
  name,
  store,
  slots,
  detached,
  isAlone,
  isHeldUp,
  isStopping,
  announce,
  take,
  logFault,
}: SlotClaimsOptions<L>): SlotClaims => {
  /** Groups of which more is due than was claimed, as far as this node knows. */
  const unfinished = new Set<number>();
  /** Groups that are being claimed of by `refill`, and whether a look has come upon them meanwhile. */
  const refilling = new Map<number, { wasDue: boolean }>();
  /** Groups for which the node had no room when it looked, the first one first: they come before others. */
  const crowdedOut = new Set<number>();

  /** Claims of groups that are made beside others. */
  const alone = new Set<Promise<void>>();

  /** Whether several groups have more, or wait for room: a look gives all of them their turn. */
  const isShared = (): boolean => crowdedOut.size > 0 || unfinished.size > FEW_GROUPS;

  /** Goes on now that a row of this group was worked on: with that group where few have more. */
  const goOn = (group: number): void => {
    if (!isShared()) refill(group);
    else if (slots.hungry || (slots.hasMuchRoom && !slots.saturated && slots.wantsMore(group))) {
      announce(null);
    }
  };

  /** The row was not worked on, perhaps because its group is off: only what is due tells whether to go on. */
  const lookAgain = (group: number): void => {
    unfinished.delete(group);
    announce(null);
  };

  /** Claims of one group or of several, and remembers which of them may have more. */
  const claim = async (rooms: readonly GroupRoom[]): Promise<L[]> => {
    if (rooms.length === 0) return [];
    const asked = rooms.reduce((sum, { limit }) => sum + limit, 0);
    slots.reserve(asked);
    try {
      const leases = await store.claim(rooms);
      const brought = new Map<number, number>();
      for (const { group } of leases) brought.set(group, (brought.get(group) ?? 0) + 1);
      for (const { group, limit } of rooms) {
        if ((brought.get(group) ?? 0) < limit) unfinished.delete(group);
        else unfinished.add(group);
      }
      // What somebody holds locked is passed over: only a look tells that nothing more is due.
      if (leases.length < asked) announce(null, store.now() + LOOK_AGAIN_MS);
      return leases;
    } finally {
      slots.reserve(-asked);
    }
  };

  /** What was leased with other groups would wait for this claim: it is made beside them, some at once. */
  const claimAlone = async ({ group, limit }: GroupRoom): Promise<void> => {
    while (alone.size >= CLAIMS_ALONE) await Promise.race(alone);
    const underWay = refilling.get(group);
    if (underWay) underWay.wasDue = true;
    if (underWay || isStopping()) return;
    const claiming: Promise<void> = claimMore(group, limit).finally(() => alone.delete(claiming));
    alone.add(claiming);
  };

  const claimMore = async (group: number, limit: number): Promise<void> => {
    const refill = { wasDue: false };
    refilling.set(group, refill);
    try {
      await take(() => claim([{ group, limit }]));
    } catch (error) {
      logFault(`${name}: more of a group could not be claimed`, error);
      unfinished.delete(group);
      announce(null, store.now() + FAILED_AGAIN_MS);
    } finally {
      refilling.delete(group);
    }
    // What was committed after the claim had begun is not in it.
    if (refill.wasDue) unfinished.add(group);
    // Rows that ended meanwhile found the claim under way, or the room that it had reserved.
    goOn(group);
  };

  /** Claims more of a group that is known to have it, without asking first what is due. */
  const refill = (group: number): void => {
    if (isStopping() || !unfinished.has(group) || refilling.has(group)) return;
    if (!slots.wantsMore(group) || isHeldUp()) return;
    const room = slots.roomFor(group);
    if (room > 0) detached(() => void claimMore(group, room));
    else if (slots.isCrowdedOut(group)) crowdedOut.add(group);
  };

  /**
   * So many groups from there on that their rows may fill what is free, and a fair share for each.
   * @returns where the rest begins.
   */
  const plan = (groups: readonly number[], from: number): { rooms: GroupRoom[]; next: number } => {
    const rooms: GroupRoom[] = [];
    let planned = 0;
    let next = from;
    for (; next < groups.length && rooms.length < GROUPS_AT_ONCE; next += 1) {
      const group = groups[next] as number;
      const sharers = Math.min(groups.length - next, GROUPS_AT_ONCE - rooms.length);
      const share =
        groups.length > FEW_GROUPS ? Math.ceil((slots.room - planned) / sharers) : slots.room;
      const underWay = refilling.get(group);
      if (underWay) underWay.wasDue = true;
      const limit = underWay ? 0 : Math.min(slots.roomFor(group, planned), Math.max(1, share));
      // What was planned may turn out to be less.
      if (!underWay && limit === 0 && planned > 0 && slots.roomFor(group) > 0) break;
      if (limit > 0) {
        rooms.push({ group, limit });
        crowdedOut.delete(group);
      } else {
        unfinished.add(group);
        if (slots.isCrowdedOut(group)) crowdedOut.add(group);
      }
      planned += limit;
    }
    return { rooms, next };
  };

  /** Due groups in the order in which they are claimed of, after those that had to be left out. */
  const leftOutFirst = (due: readonly number[]): readonly number[] =>
    crowdedOut.size > 0 ? [...crowdedOut, ...due.filter((group) => !crowdedOut.has(group))] : due;

  /** Groups that have little to do each are claimed together: a statement for a few rows is dear. */
  const work = async (due: readonly number[]): Promise<null> => {
    const slice = new TimeSlice();
    const groups = leftOutFirst(due);
    for (let from = 0; from < groups.length && !isStopping() && !isHeldUp();) {
      const { rooms, next } = plan(groups, from);
      from = next;
      const together = rooms.filter(({ group }) => !isAlone(group));
      if (together.length > 0) await take(() => claim(together));
      for (const room of rooms) if (isAlone(room.group)) await claimAlone(room);
      if (slice.isOver()) await slice.next();
    }
    // Rows that ended while a claim had reserved the room, and after which no other one ends.
    if (crowdedOut.size > 0 && slots.hungry && slots.room > 0 && !isHeldUp()) {
      announce(null);
    }
    return null;
  };

  return {
    work,
    goOn,
    lookAgain,
    forgetExcept(due) {
      for (const known of [unfinished, crowdedOut]) {
        for (const group of known) if (!due.has(group)) known.delete(group);
      }
    },
  };
};

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
