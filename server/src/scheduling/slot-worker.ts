import type { Detached } from '../database/connection';
import { createFaultLog, isInfrastructureFault } from '../database/retry';
import type { GroupRoom, Lease } from '../queue/lease';
import { TimeSlice } from '../runtime/event-loop';
import { GroupSlots } from './group-slots';
import { Recorder, STOP_MARGIN_MS, stopWithin } from './recorder';
import { SlotTurns } from './slot-turns';
import type { CappedWorkStore, GroupHandler, GroupLimits, Turn, WorkerLog } from './types';

/**
 * Renews the leases of what a process works on, so that none need last as long as the longest work:
 * what a killed process held is somebody else's soon, however long an attempt may take.
 */
class LeaseKeeper<L extends Lease> {
  /** Since when each lease is as long as it is, on a clock that only goes forward. */
  private readonly kept = new Map<L, number>();
  private timer: NodeJS.Timeout | undefined;

  /** @param renew never rejects */
  constructor(
    private readonly everyMs: number,
    private readonly renew: (leases: readonly L[]) => Promise<void>
  ) {}

  /** @param since when it was renewed last, by `performance.now()` */
  keep(lease: L, since = performance.now()): void {
    this.kept.set(lease, since);
    if (!this.timer) this.schedule();
  }

  /** What is recorded at this moment must not be renewed: the two would wait for each other's rows. */
  drop(lease: L): void {
    this.kept.delete(lease);
  }

  stop(): void {
    this.kept.clear();
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private schedule(): void {
    this.timer = setTimeout(() => void this.renewOld(), this.everyMs);
    this.timer.unref();
  }

  private async renewOld(): Promise<void> {
    const at = performance.now();
    const isOld = ([, since]: [L, number]): boolean => at - since >= this.everyMs / 2;
    const old = [...this.kept].filter(isOld).map(([lease]) => lease);
    for (const lease of old) this.kept.set(lease, at);
    // What cannot be renewed now is tried again while there is something left of its lease.
    if (old.length > 0) await this.renew(old);
    this.timer = undefined;
    if (this.kept.size > 0) this.schedule();
  }
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
  /** When groups are due, where that is not what the store says. */
  dueTimes?(): Promise<ReadonlyMap<number, number>>;
  /** Ends what goes on beside the work, once all of that is recorded. */
  onStop?(): Promise<void>;
}

/**
 * Keeps a node's hands full: claims due work of groups when it is told to, performs it side by side
 * within the caps, and records the outcomes in batches. One instance a kind of work.
 */
export class SlotWorker<L extends Lease, Outcome> implements GroupHandler {
  readonly pollMs: number;
  readonly turns: { groups: number; nodes: number };
  readonly slots: GroupSlots<L>;
  stopping = false;
  private readonly logFault: (what: string, error: unknown) => void;
  private readonly recorder: Recorder<{ lease: L; outcome: Outcome }>;
  private readonly keeper: LeaseKeeper<L>;
  private readonly idle: (() => void)[] = [];
  /** Leased, but given back by `stop`: it would otherwise sit through its lease. */
  private readonly unstarted: L[] = [];
  /** Groups of which more is due than was claimed, as far as this node knows. */
  private readonly unfinished = new Set<number>();
  /** Groups that are being claimed of by `refill`, and whether a look has come upon them meanwhile. */
  private readonly refilling = new Map<number, { wasDue: boolean }>();
  /** Groups for which the node had no room when it looked, the first one first: they come before others. */
  private readonly crowdedOut = new Set<number>();
  /** Claims of groups that are made beside others. */
  private readonly alone = new Set<Promise<void>>();
  /** Where the engine shares groups with other nodes. */
  private ofTurns: SlotTurns<L> | null = null;
  private claiming = 0;
  private startedThisTurn = false;

  constructor(readonly options: SlotWorkerOptions<L, Outcome>) {
    const { concurrency, concurrencyPerGroup, detached, name, store } = options;
    this.pollMs = options.pollMs;
    this.turns = { groups: concurrency, nodes: concurrencyPerGroup };
    this.slots = new GroupSlots<L>(
      ...([concurrency, concurrencyPerGroup, undefined, options.limitsOf] as const)
    );
    this.logFault = createFaultLog(options.log, Date.now);
    this.recorder = new Recorder({
      name,
      record: (done) => this.record(done),
      logFault: this.logFault,
      onDone: (wasFull) => {
        if (wasFull) options.announce(null);
        this.ofTurns?.wake();
        this.settleIdle();
      },
    });
    this.keeper = new LeaseKeeper(options.renewMs, async (leases) => {
      try {
        await detached(() => store.renew(leases));
      } catch (error) {
        this.logFault(`${name}: ${leases.length} leases could not be renewed`, error);
      }
    });
  }

  now(): number {
    return this.options.store.now();
  }

  dueTimes(): Promise<ReadonlyMap<number, number>> {
    return this.options.dueTimes?.() ?? this.options.store.dueTimes();
  }

  /** Claims of groups that are due; those that have little to do each together: a statement for a few rows is dear. */
  async work(due: readonly number[]): Promise<null> {
    const slice = new TimeSlice();
    const groups = this.leftOutFirst(due);
    for (let from = 0; from < groups.length && !this.stopping && !this.isHeldUp();) {
      const { rooms, next } = this.plan(groups, from);
      from = next;
      const isAlone = ({ group }: GroupRoom) => this.options.limitsOf?.(group).alone ?? false;
      const together = rooms.filter((room) => !isAlone(room));
      if (together.length > 0) await this.take(() => this.claim(together));
      for (const room of rooms.filter(isAlone)) await this.claimAlone(room);
      if (slice.isOver()) await slice.next();
    }
    // Rows that ended while a claim had reserved the room, and after which no other one ends.
    const { hungry, room } = this.slots;
    if (this.crowdedOut.size > 0 && hungry && room > 0 && !this.isHeldUp()) {
      this.options.announce(null);
    }
    return null;
  }

  takeTurn(group: number, turn: Turn): Promise<number | null> {
    this.ofTurns ??= new SlotTurns(this);
    return this.ofTurns.take(group, turn);
  }

  looked(due: ReadonlyMap<number, number>): void {
    this.slots.forgetExcept(due);
    this.ofTurns?.forgetExcept(due);
    for (const known of [this.unfinished, this.crowdedOut]) {
      for (const group of known) if (!due.has(group)) known.delete(group);
    }
  }

  stop(): Promise<void> {
    this.stopping = true;
    this.ofTurns?.wake();
    this.recorder.hurry();
    const waiting = this.slots.dropWaiting();
    for (const lease of waiting) this.keeper.drop(lease);
    this.unstarted.push(...waiting);
    const end = this.end().then(() => this.options.onStop?.());
    return stopWithin(this.options.longestMs + STOP_MARGIN_MS, end);
  }

  /** Whether nothing should be claimed for now, because recording lags behind. */
  isHeldUp(): boolean {
    return this.recorder.isFull();
  }

  /** Has rows claimed, and starts them. */
  async take(claim: () => Promise<L[]>): Promise<void> {
    this.claiming += 1;
    try {
      const leases = await claim();
      this.options.onClaimed?.(leases);
      if (this.stopping) this.unstarted.push(...leases);
      else {
        for (const lease of leases) this.keeper.keep(lease);
        this.slots.add(leases);
      }
    } finally {
      this.claiming -= 1;
      this.settleIdle();
    }
    this.start();
  }

  private async end(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.idle.push(resolve);
      this.settleIdle();
    });
    this.keeper.stop();
    const { unstarted } = this;
    const { name, onGivenBack, store } = this.options;
    try {
      await store.release(unstarted);
      onGivenBack?.(unstarted);
    } catch (error) {
      // They come back when their leases end.
      this.logFault(`${name}: ${unstarted.length} rows could not be given back`, error);
    }
  }

  private settleIdle(): void {
    if (this.slots.busy > 0 || this.claiming > 0 || this.recorder.isBusy()) return;
    for (const resolve of this.idle.splice(0)) resolve();
  }

  private async record(done: readonly { lease: L; outcome: Outcome }[]): Promise<void> {
    for (const { lease } of done) this.keeper.drop(lease);
    try {
      await this.options.record(done.map(({ outcome }) => outcome));
    } catch (error) {
      // It is tried again until the database is back; what is given up comes back with its lease.
      if (isInfrastructureFault(error)) {
        for (const { lease } of done) this.keeper.keep(lease, Number.NEGATIVE_INFINITY);
      }
      throw error;
    } finally {
      for (const { lease } of done) this.ofTurns?.recorded(lease);
    }
  }

  /** Performs one piece of work that holds a slot, and goes on with its group. */
  private async run(lease: L): Promise<void> {
    const since = performance.now();
    const { healthy, wasPerformed } = await this.perform(lease);
    const took = wasPerformed ? performance.now() - since : undefined;
    this.slots.finish(lease.group, healthy, took);
    this.start();
    this.recorder.start();
    if (this.slots.busy === 0) this.recorder.expectNoMore();
    if (!wasPerformed) this.ofTurns?.unworked(lease.group);
    const ofTurn = this.ofTurns?.finished(lease);
    if (ofTurn) this.options.announce(lease.group);
    else if (ofTurn === undefined && wasPerformed) this.goOn(lease.group);
    else if (ofTurn === undefined) this.lookAgain(lease.group);
    this.settleIdle();
  }

  /** @returns whether the work speaks for its group, null where it says nothing, and whether there was any */
  private async perform(lease: L): Promise<{ healthy: boolean | null; wasPerformed: boolean }> {
    const { awaited, healthy, name, perform, slows } = this.options;
    try {
      const outcome = await perform(lease);
      if (outcome === null) {
        this.keeper.drop(lease);
        return { healthy: null, wasPerformed: false };
      }
      const isHealthy = healthy(outcome);
      if (!isHealthy && slows?.(outcome)) this.slots.slow(lease.group);
      this.ofTurns?.unrecorded(lease);
      this.recorder.add({ lease, outcome }, awaited?.(outcome));
      return { healthy: isHealthy, wasPerformed: true };
    } catch (error) {
      this.keeper.drop(lease);
      this.logFault(`${name}: row ${lease.id} could not be worked on`, error);
      // A database that is away says nothing about the group; the row comes back with its lease.
      return { healthy: isInfrastructureFault(error) ? null : false, wasPerformed: false };
    }
  }

  /** What waited for a slot until too little of its lease was left goes back to its place. */
  private async giveBack(leases: L[]): Promise<void> {
    const { announce, name, onGivenBack, store } = this.options;
    try {
      await store.release(leases);
      onGivenBack?.(leases);
      announce(null);
    } catch (error) {
      this.logFault(`${name}: ${leases.length} rows could not be given back`, error);
    }
  }

  private readonly nextTurn = (): void => {
    this.startedThisTurn = false;
    this.start();
  };

  /**
   * Starts what is claimed and has a slot, one piece a turn of the event loop, so that the site's own
   * requests are served in between. Goes on until nothing more can start: what waited through its
   * lease gives its slot back at once, and nobody else would offer it to the next one.
   */
  private start(): void {
    const late: L[] = [];
    while (!this.stopping && !this.startedThisTurn) {
      const lease = this.slots.takeNext();
      if (!lease) break;
      if (lease.leaseUntil - this.now() < this.options.reserveMs) {
        this.slots.finish(lease.group, null);
        this.keeper.drop(lease);
        this.ofTurns?.givenBack(lease);
        late.push(lease);
        continue;
      }
      this.startedThisTurn = true;
      setImmediate(this.nextTurn);
      void this.run(lease);
    }
    if (late.length > 0) this.options.detached(() => void this.giveBack(late));
  }

  /** Goes on now that a row of this group was worked on: with that group where few have more. */
  private goOn(group: number): void {
    const { slots } = this;
    const isShared = this.crowdedOut.size > 0 || this.unfinished.size > FEW_GROUPS;
    if (!isShared) this.refill(group);
    else if (slots.hungry || (slots.hasMuchRoom && !slots.saturated && slots.wantsMore(group))) {
      // Several have more, or wait for room: a look gives all of them their turn.
      this.options.announce(null);
    }
  }

  /** The row was not worked on, perhaps because its group is off: only what is due tells whether to go on. */
  private lookAgain(group: number): void {
    this.unfinished.delete(group);
    this.options.announce(null);
  }

  /** Claims of groups, and remembers which of them may have more. */
  private async claim(rooms: readonly GroupRoom[]): Promise<L[]> {
    const { slots } = this;
    const asked = rooms.reduce((sum, { limit }) => sum + limit, 0);
    slots.reserve(asked);
    try {
      const leases = await this.options.store.claim(rooms);
      const brought = new Map<number, number>();
      for (const { group } of leases) brought.set(group, (brought.get(group) ?? 0) + 1);
      for (const { group, limit } of rooms) {
        if ((brought.get(group) ?? 0) < limit) this.unfinished.delete(group);
        else this.unfinished.add(group);
      }
      // What somebody holds locked is passed over: only a look tells that nothing more is due.
      if (leases.length < asked) this.options.announce(null, this.now() + LOOK_AGAIN_MS);
      return leases;
    } finally {
      slots.reserve(-asked);
    }
  }

  /** What was leased with other groups would wait for this claim: it is made beside them, some at once. */
  private async claimAlone({ group, limit }: GroupRoom): Promise<void> {
    while (this.alone.size >= CLAIMS_ALONE) await Promise.race(this.alone);
    const underWay = this.refilling.get(group);
    if (underWay) underWay.wasDue = true;
    if (underWay || this.stopping) return;
    const claiming: Promise<void> = this.claimMore(group, limit).finally(() =>
      this.alone.delete(claiming)
    );
    this.alone.add(claiming);
  }

  private async claimMore(group: number, limit: number): Promise<void> {
    const { announce, name } = this.options;
    const refill = { wasDue: false };
    this.refilling.set(group, refill);
    try {
      await this.take(() => this.claim([{ group, limit }]));
    } catch (error) {
      this.logFault(`${name}: more of a group could not be claimed`, error);
      this.unfinished.delete(group);
      announce(null, this.now() + FAILED_AGAIN_MS);
    } finally {
      this.refilling.delete(group);
    }
    // What was committed after the claim had begun is not in it.
    if (refill.wasDue) this.unfinished.add(group);
    // Rows that ended meanwhile found the claim under way, or the room that it had reserved.
    this.goOn(group);
  }

  /** Claims more of a group that is known to have it, without asking first what is due. */
  private refill(group: number): void {
    const { slots } = this;
    if (this.stopping || !this.unfinished.has(group) || this.refilling.has(group)) return;
    if (!slots.wantsMore(group) || this.isHeldUp()) return;
    const room = slots.roomFor(group);
    if (room > 0) this.options.detached(() => void this.claimMore(group, room));
    else if (slots.isCrowdedOut(group)) this.crowdedOut.add(group);
  }

  /**
   * So many groups from there on that their rows may fill what is free, and a fair share for each.
   * @returns where the rest begins.
   */
  private plan(groups: readonly number[], from: number): { rooms: GroupRoom[]; next: number } {
    const { slots } = this;
    const rooms: GroupRoom[] = [];
    let planned = 0;
    let next = from;
    for (; next < groups.length && rooms.length < GROUPS_AT_ONCE; next += 1) {
      const group = groups[next] as number;
      const sharers = Math.min(groups.length - next, GROUPS_AT_ONCE - rooms.length);
      const share =
        groups.length > FEW_GROUPS ? Math.ceil((slots.room - planned) / sharers) : slots.room;
      const underWay = this.refilling.get(group);
      if (underWay) underWay.wasDue = true;
      const limit = underWay ? 0 : Math.min(slots.roomFor(group, planned), Math.max(1, share));
      // What was planned may turn out to be less.
      if (!underWay && limit === 0 && planned > 0 && slots.roomFor(group) > 0) break;
      if (limit > 0) {
        rooms.push({ group, limit });
        this.crowdedOut.delete(group);
      } else {
        this.unfinished.add(group);
        if (slots.isCrowdedOut(group)) this.crowdedOut.add(group);
      }
      planned += limit;
    }
    return { rooms, next };
  }

  /** Due groups in the order in which they are claimed of, after those that had to be left out. */
  private leftOutFirst(due: readonly number[]): readonly number[] {
    const { crowdedOut } = this;
    if (crowdedOut.size === 0) return due;
    return [...crowdedOut, ...due.filter((group) => !crowdedOut.has(group))];
  }
}
