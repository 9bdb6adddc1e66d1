import { setTimeout as sleep } from 'node:timers/promises';
import type { Detached } from '../database/connection';
import { createFaultLog, isInfrastructureFault } from '../database/retry';
import type { GroupRoom, Lease } from '../queue/queue';
import { stopWithin, TimeSlice, whenIdle } from '../runtime/event-loop';
import { GroupSlots, type SlotOptions } from './group-slots';
import { LOOK_AGAIN_MS, Recorder, STOP_MARGIN_MS } from './recorder';
import type { CappedWorkStore, GroupHandler, WorkerOptions } from './types';

const GROUPS_AT_ONCE = 32;
/** So few groups may fill all there is room for; of more, each gets its share. */
const FEW_GROUPS = 4;
/** How long a busy worker yields to requests in progress before it continues; milliseconds. */
const MAKES_WAY_MS = 15;
const FAILED_AGAIN_MS = 1000;
/** Claims of groups that are made each by itself, at once: each may hold a connection for a while. */
const MAX_SEPARATE = 2;

/** The part of an outcome that concerns its group. */
interface Judgement {
  /** It speaks for its group: a failing group gets fewer slots until it recovers. */
  healthy: boolean;
  /** If it is unhealthy: its group asks for fewer attempts. */
  slows?: boolean;
  /** Other work waits for it to be recorded. */
  awaited?: boolean;
  /** How long it held its slot, in milliseconds, if it may have been handed over before it had one. */
  tookMs?: number;
}

/** Below 0 `reserveMs` lets rows wait for longer than the claim's lease, which is prolonged meanwhile. */
export interface SlotWorkerOptions<L extends Lease, Outcome>
  extends WorkerOptions<L>, Pick<SlotOptions, 'limitsOf' | 'handsOver'> {
  store: CappedWorkStore<L>;
  detached: Detached;
  /** Pieces of work under way at once on this node. */
  concurrency: number;
  /** The limit of one group: on this node, and with turns on all nodes together. */
  concurrencyPerGroup: number;
  /** A group that is claimed before others, because a user waits for it. */
  first?: number;
  /** How often leases of what waits and of what is under way are prolonged, in milliseconds. */
  renewMs: number;
  /** How long one piece of work may take, in milliseconds. */
  longestMs: number;
  /** Pieces that begin together, and milliseconds until the next ones, 0: one turn of the event loop. */
  pace(): { together: number; restMs: number };
  isAnswering?(): boolean;
  /** Does one piece of work; null: nothing to record, its lease ends. `atOnce`: maximum of its group now. */
  perform(lease: L, atOnce: number): Promise<Outcome | null>;
  judge(outcome: Outcome): Judgement;
  /** Records outcomes. After a database fault it gets the same again: what was lost or settled must change nothing. */
  record(outcomes: readonly Outcome[]): Promise<void>;
  /** When groups are due, if it differs from the store's due times. */
  dueTimes?(): Promise<ReadonlyMap<number, number>>;
  /** Ends concurrent work, once all outcomes are recorded. */
  onStop?(): Promise<void>;
}

const NEVER = Number.POSITIVE_INFINITY;

interface HeldLease {
  /** When it was prolonged last, on a clock that only goes forward; `NEVER`: it is not to be. */
  renewedAt: number;
  /** Its slot is free; its outcome is not recorded yet. */
  isDone: boolean;
}

/**
 * Claims due rows, performs them concurrently within caps, and records outcomes in batches. One instance a kind of
 * work. Groups that may have more due rows form a queue. When there is room, one statement claims a share for each of
 * the first ones; a group with more goes to the end. Leases are renewed until outcomes are recorded, so other processes
 * soon take over the rows of a killed one.
 */
export class SlotWorker<L extends Lease, Outcome> implements GroupHandler {
  readonly pollMs: number;
  readonly turns: { groups: number; nodes: number };
  readonly slots: GroupSlots<L>;
  stopping = false;
  /** The turns that an engine makes of it which shares groups with other nodes. */
  shared: { wake(): void; finished(group: number, wasPerformed: boolean): void } | null = null;
  private readonly logFault: (what: string, error: unknown) => void;
  readonly recorder: Recorder<{ lease: L; outcome: Outcome }>;
  /** Claimed rows, until their outcome is recorded. */
  readonly leases = new Map<L, HeldLease>();
  private readonly renewing: NodeJS.Timeout;
  private isRenewing = false;
  /** Leased, but given back by `stop`: it would otherwise sit through its lease. */
  private readonly unstarted: L[] = [];
  /** Groups of which more may be due, the one first that has waited longest for a claim. */
  private readonly more = new Set<number>();
  private readonly claimedOf = new Set<number>();
  /** Groups that are being claimed of by themselves. */
  private readonly separate = new Set<number>();
  private filling = false;
  /** The claim of several groups that is under way, or the last one. */
  private claimed = Promise.resolve();
  private claiming = 0;
  private kept = 0;
  private begun = 0;
  private isHeld = false;
  /** When it may make way again, on a clock that only goes forward. */
  private makesWayFrom = 0;

  constructor(readonly options: SlotWorkerOptions<L, Outcome>) {
    const { concurrency, concurrencyPerGroup: nodes, detached, name, renewMs } = options;
    this.pollMs = options.pollMs;
    this.turns = { groups: concurrency, nodes };
    this.slots = new GroupSlots<L>(concurrency, nodes, options);
    this.logFault = createFaultLog(options.log);
    this.recorder = new Recorder({
      name,
      record: async (done) => {
        await this.makeWay();
        await this.record(done);
      },
      logFault: this.logFault,
      onDone: (wasFull) => {
        if (wasFull) options.announce(null);
        this.shared?.wake();
      },
    });
    this.renewing = setInterval(() => detached(() => void this.renew()), renewMs).unref();
  }

  now(): number {
    return this.options.store.now();
  }

  async dueTimes(): Promise<ReadonlyMap<number, number>> {
    const due = await (this.options.dueTimes?.() ?? this.options.store.dueTimes());
    this.slots.forgetExcept(due);
    return due;
  }

  async work(due: readonly number[]): Promise<void> {
    for (const group of due) this.more.add(group);
    this.fill();
    await this.claimed;
  }

  stop(): Promise<void> {
    this.stopping = true;
    this.shared?.wake();
    this.recorder.hurry();
    const waiting = this.slots.dropWaiting();
    for (const lease of waiting) this.leases.delete(lease);
    this.unstarted.push(...waiting);
    return stopWithin(this.options.longestMs + STOP_MARGIN_MS, this.end());
  }

  private async end(): Promise<void> {
    await whenIdle(() => this.slots.busy > 0 || this.claiming > 0 || this.recorder.isBusy());
    this.leases.clear();
    clearInterval(this.renewing);
    await this.giveBack(this.unstarted);
    await this.options.onStop?.();
  }

  async take<Claimed extends { leases: L[] }>(claim: () => Promise<Claimed>): Promise<Claimed> {
    this.claiming += 1;
    try {
      const claimed = await claim();
      const { leases } = claimed;
      this.options.onClaimed?.(leases);
      if (this.stopping) this.unstarted.push(...leases);
      else {
        const renewedAt = performance.now();
        for (const lease of leases) this.leases.set(lease, { renewedAt, isDone: false });
        this.slots.add(leases);
        this.start();
      }
      return claimed;
    } finally {
      this.claiming -= 1;
    }
  }

  /**
   * Reserves slots for rows that a write queues under leases of this worker: no claim, no reading back.
   * @param groups of the rows, in their order
   * @returns which rows have room, and a function that takes them after the commit; without rows it frees the room
   */
  keepRoom(groups: readonly number[]): { isKept: boolean[]; take: (leases: L[]) => void } {
    const { concurrency, detached } = this.options;
    const isOpen = !this.stopping && !this.shared && !this.recorder.isFull();
    const planned = new Map<number, number>();
    let keeps = 0;
    const isKept = groups.map((group) => {
      const before = planned.get(group) ?? 0;
      // Rows that wait in the queue go first, this one too if it is queued without a lease.
      const isNext = !this.more.has(group) && !this.claimedOf.has(group);
      const isFree = isOpen && isNext && this.kept < concurrency;
      const isGiven = isFree && this.slots.roomFor(group) > before;
      if (isGiven) {
        planned.set(group, before + 1);
        this.kept += 1;
        keeps += 1;
      } else if (isOpen) this.more.add(group);
      return isGiven;
    });
    const take = (leases: L[]): void => {
      this.kept -= keeps;
      keeps = 0;
      if (leases.length > 0) detached(() => void this.take(async () => ({ leases })));
    };
    return { isKept, take };
  }

  /** Claims of groups that may have more, for as long as there is room for it. */
  private fill(): void {
    if (this.filling || this.more.size === 0) return;
    this.filling = true;
    this.options.detached(() => void this.fillUp());
  }

  private async fillUp(): Promise<void> {
    const slice = new TimeSlice();
    for (let rooms = this.plan(); rooms.length > 0; rooms = this.plan()) {
      this.claimed = this.claim(rooms);
      await this.claimed;
      if (slice.isOver()) await slice.next();
    }
    this.filling = false;
  }

  /** How much to claim of which groups together. Slow claims run concurrently: leased rows would wait for them. */
  private plan(): GroupRoom[] {
    const { separate, more, slots } = this;
    const { first = -1 } = this.options;
    const rooms: GroupRoom[] = [];
    if (this.stopping || !slots.wantsRows || this.recorder.isFull()) return rooms;
    const sharers = more.size > FEW_GROUPS ? Math.min(more.size, GROUPS_AT_ONCE) : 1;
    // A round of many groups would take long if each had much at once.
    const shared = sharers > 1 ? Math.min(slots.room, 2 * this.options.concurrency) : slots.room;
    const share = Math.max(1, Math.ceil(shared / sharers));
    // More are passed over only if the node is full, or if many groups wait for a claim of their own.
    const mostLooks = 2 * this.options.concurrency + GROUPS_AT_ONCE;
    let planned = 0;
    let looked = 0;
    for (const group of more.has(first) ? new Set([first, ...more]) : more) {
      looked += 1;
      if (rooms.length === GROUPS_AT_ONCE || looked > mostLooks) break;
      const limit = Math.min(slots.roomFor(group, planned), share);
      const isSeparate = this.options.limitsOf?.(group).separate ?? false;
      if (limit === 0 || separate.has(group) || (isSeparate && separate.size >= MAX_SEPARATE))
        continue;
      more.delete(group);
      if (isSeparate) void this.claimSeparately({ group, limit });
      else {
        rooms.push({ group, limit });
        planned += limit;
      }
    }
    return rooms;
  }

  private async claimSeparately(room: GroupRoom): Promise<void> {
    this.separate.add(room.group);
    await this.claim([room]);
    this.separate.delete(room.group);
    this.fill();
  }

  /** Claims of groups, and notes which of them may have more. */
  private async claim(rooms: readonly GroupRoom[]): Promise<void> {
    const { announce, name, store } = this.options;
    const requested = rooms.reduce((sum, { limit }) => sum + limit, 0);
    let leases: readonly L[] = [];
    this.slots.reserve(requested);
    for (const { group } of rooms) this.claimedOf.add(group);
    try {
      ({ leases } = await this.take(async () => ({
        leases: await store.claim(rooms).finally(() => this.slots.reserve(-requested)),
      })));
      // Locked rows are passed over: only a look tells that nothing more is due.
      if (leases.length < requested) announce(null, this.now() + LOOK_AGAIN_MS);
    } catch (error) {
      this.logFault(`${name}: due rows could not be claimed`, error);
      announce(null, this.now() + FAILED_AGAIN_MS);
    }
    for (const { group, limit } of rooms) {
      this.claimedOf.delete(group);
      if (leases.filter((one) => one.group === group).length >= limit) this.more.add(group);
    }
  }

  /** One call at a time: a database may be slower than the interval. Failed renewals are retried while leases last. */
  private async renew(): Promise<void> {
    const { name, renewMs, store } = this.options;
    if (this.isRenewing) return;
    const at = performance.now();
    const old = [...this.leases].filter(([, { renewedAt }]) => at - renewedAt >= renewMs / 2);
    if (old.length === 0) return;
    for (const [, held] of old) held.renewedAt = at;
    this.isRenewing = true;
    try {
      await store.renew(old.map(([lease]) => lease));
    } catch (error) {
      this.logFault(`${name}: ${old.length} leases could not be renewed`, error);
    }
    this.isRenewing = false;
  }

  private async record(done: readonly { lease: L; outcome: Outcome }[]): Promise<void> {
    // A row that is being recorded must not be renewed: the two would wait for each other's rows.
    for (const { lease } of done) this.leases.set(lease, { renewedAt: NEVER, isDone: true });
    let isKept = false;
    try {
      await this.options.record(done.map(({ outcome }) => outcome));
    } catch (error) {
      // It is tried again until the database is back; what is given up comes back with its lease.
      isKept = isInfrastructureFault(error);
      throw error;
    } finally {
      for (const { lease } of done) {
        if (isKept) this.leases.set(lease, { renewedAt: Number.NEGATIVE_INFINITY, isDone: true });
        else this.leases.delete(lease);
      }
    }
  }

  /** Performs one piece of work that holds a slot, then continues with its group. */
  private async run(lease: L): Promise<void> {
    const { announce, name, perform } = this.options;
    const since = performance.now();
    let judged: Partial<Judgement> = {};
    let wasPerformed = false;
    try {
      const outcome = await perform(lease, this.slots.limitOf(lease.group));
      wasPerformed = outcome !== null;
      if (outcome !== null) judged = this.note(lease, outcome);
    } catch (error) {
      this.logFault(`${name}: row ${lease.id} could not be worked on`, error);
      // An unreachable database does not count against the group.
      if (!isInfrastructureFault(error)) judged = { healthy: false };
    }
    const { healthy = null, tookMs = performance.now() - since } = judged;
    this.slots.finish(lease.group, healthy, wasPerformed ? tookMs : undefined);
    this.start();
    this.recorder.start();
    if (this.slots.busy === 0) this.recorder.expectNoMore();
    this.shared?.finished(lease.group, wasPerformed);
    if (!wasPerformed) {
      // The row comes back with its lease. Perhaps its group is off: only what is due tells that.
      this.leases.delete(lease);
      this.more.delete(lease.group);
      announce(null);
    }
    this.fill();
  }

  /** Passes an outcome to the recorder. @returns its judgement of the group */
  private note(lease: L, outcome: Outcome): Judgement {
    const judged = this.options.judge(outcome);
    const { awaited, healthy, slows } = judged;
    if (!healthy && slows) this.slots.slow(lease.group);
    const held = this.leases.get(lease);
    if (held) held.isDone = true;
    this.recorder.add({ lease, outcome }, awaited);
    return judged;
  }

  /** Puts unprocessed rows back to their place; else they come back with their lease. */
  private async giveBack(leases: readonly L[]): Promise<void> {
    const { name, onUnstarted, store } = this.options;
    try {
      await store.release(leases);
      onUnstarted?.(leases);
    } catch (error) {
      this.logFault(`${name}: ${leases.length} rows could not be given back`, error);
    }
  }

  /** True while much is under way and requests wait for this process. */
  private isInTheWay(): boolean {
    const isBusy = this.slots.busy >= this.options.concurrency / 2;
    const isDue = !this.stopping && performance.now() >= this.makesWayFrom;
    return isBusy && isDue && (this.options.isAnswering?.() ?? false);
  }

  /** Yields to waiting requests, for half of the time at most. */
  private async makeWay(): Promise<void> {
    const until = performance.now() + MAKES_WAY_MS;
    while (this.isInTheWay()) {
      await sleep(1);
      if (performance.now() >= until) this.makesWayFrom = until + MAKES_WAY_MS;
    }
  }

  private start(): void {
    if (this.isHeld) return;
    if (!this.isInTheWay()) return this.startSome();
    this.isHeld = true;
    void this.makeWay().then(() => {
      this.isHeld = false;
      this.startSome();
    });
  }

  /**
   * Starts claimed rows that have a slot, a few at a time, so that the site's requests are served between.
   * Continues until none can start: rows whose lease is nearly over free their slot at once, which nothing else offers.
   */
  private startSome(): void {
    const late: L[] = [];
    const { announce, detached, pace } = this.options;
    const { together, restMs } = pace();
    while (!this.stopping && this.begun < together) {
      const lease = this.slots.takeNext();
      if (!lease) break;
      if (lease.leaseUntil - this.now() < this.options.reserveMs) {
        this.slots.finish(lease.group, null);
        this.leases.delete(lease);
        late.push(lease);
        continue;
      }
      this.begun += 1;
      if (this.begun === 1) {
        (restMs > 0 ? setTimeout : setImmediate)(() => {
          this.begun = 0;
          this.start();
        }, restMs);
      }
      void this.run(lease);
    }
    if (late.length > 0) detached(() => void this.giveBack(late).then(() => announce(null)));
  }
}
