import type { GroupLimits } from './types';
import type { Lease } from '../queue/queue';

interface Group<L> {
  /** Rows that are under way, or handed over before there is a slot for them. */
  running: number;
  /** How many may run now: halved by a failure, raised by a success, never over the cap. */
  limit: number;
  cap: number;
  /** True if rows may be claimed before there is a slot for them. */
  ahead: boolean;
  /** The most that `limit` may be, since a time, for a group that was asked to go slower. */
  slowed: { to: number; at: number } | null;
  /** In the order they were due. */
  waiting: L[];
  /** How long one row takes, in milliseconds: the last ones count most. null: none has ended yet. */
  tookMs: number | null;
}

/** Rows are claimed ahead for this many milliseconds: quick ones would run out before the next claim. */
const AHEAD_MS = 50;
/** Rows that are handed over before there is a slot for them, times what may run at once. */
const MOST_HANDED = 2;
/** A group of which one row takes less is quick, in milliseconds. */
const QUICK_MS = 40;
/** Quick rows that may wait, per slot. A claim passes over all leases: few large ones cost less; a kill delays all. */
const MOST_AHEAD = 4;
/** How much the latest row counts towards how long one takes. */
const LATEST = 0.2;
/** A group that was asked to go slower may do twice as much after each of these without another such answer. */
const SLOW_FOR_MS = 60_000;

export interface SlotOptions {
  /** Milliseconds of a clock that only goes forward. */
  now?: () => number;
  limitsOf?: (id: number) => GroupLimits;
  /** Rows may be handed over before there is a slot for them, to one who keeps the caps himself. */
  handsOver?: () => boolean;
}

/** How many rows a number of slots serves while others are claimed. */
const servedBy = (slots: number, tookMs: number) => (slots * AHEAD_MS) / Math.max(tookMs, 1);

const averaged = (before: number | null, tookMs: number): number =>
  (before ?? tookMs) * (1 - LATEST) + tookMs * LATEST;

const byDue = (a: Lease, b: Lease): number => a.dueAt - b.dueAt || a.id - b.id;

/** Decides what runs, by caps for node and group; less for dead receivers, which hold slots for the whole deadline. */
export class GroupSlots<L extends Lease> {
  private readonly groups = new Map<number, Group<L>>();
  /** Groups with a row that waits and a free slot, in turn. */
  private readonly ready = new Set<number>();
  private running = 0;
  private waiting = 0;
  private reserved = 0;
  private tookMs: number | null = null;

  constructor(
    private readonly nodeCap: number,
    private readonly groupCap: number,
    private readonly options: SlotOptions = {}
  ) {}

  /** Rows running or waiting for a slot. */
  get busy(): number {
    return this.running + this.waiting;
  }

  /** True if more should be claimed: a slot is free, or enough fit for a statement, and few groups wait for a slot. */
  get wantsRows(): boolean {
    const isFull = this.running >= this.nodeCap;
    if (!isFull && this.ready.size === 0) return true;
    return (
      this.room >= (MOST_AHEAD * this.nodeCap) / 2 &&
      !(isFull && this.ready.size >= this.nodeCap / 4)
    );
  }

  private now(): number {
    return this.options.now?.() ?? performance.now();
  }

  private of(id: number): Group<L> {
    const { cap: own, ahead = true } = this.options.limitsOf?.(id) ?? {};
    const cap = own ?? this.groupCap;
    const fresh = { running: 0, limit: cap, cap, ahead, slowed: null, waiting: [], tookMs: null };
    const group: Group<L> = this.groups.get(id) ?? fresh;
    this.groups.set(id, group);
    group.limit = group.limit === group.cap ? cap : Math.min(group.limit, cap);
    group.cap = cap;
    group.ahead = ahead;
    return group;
  }

  /** How many rows to hand over beyond a number of slots. */
  private handedOver(slots: number, tookMs: number | null): number {
    if (!this.options.handsOver?.() || tookMs === null) return 0;
    return Math.min(Math.floor(servedBy(slots, tookMs)), MOST_HANDED * this.nodeCap);
  }

  /** True if one more of its rows may be taken. */
  private isOpen({ ahead, cap, limit, running, tookMs }: Group<L>): boolean {
    return running < limit + (ahead && limit === cap ? this.handedOver(cap, tookMs) : 0);
  }

  private offer(id: number, group: Group<L>): void {
    if (group.waiting.length > 0 && this.isOpen(group)) this.ready.add(id);
  }

  /** How many rows to have waiting: as many as the group has slots, more if they are quick, none if it fails. */
  private aheadOf({ limit, cap, ahead, tookMs }: Group<L>): number {
    if (limit < cap || !ahead) return 0;
    if (tookMs === null) return cap;
    const used = Math.ceil(servedBy(cap, tookMs));
    return Math.max(cap, Math.min(used, MOST_AHEAD * this.nodeCap));
  }

  /** True if a row takes so little time that a claim of the next ones would come late. */
  isQuick(id: number): boolean {
    const { tookMs } = this.of(id);
    return tookMs !== null && tookMs < QUICK_MS;
  }

  /** How many more rows may be claimed. */
  get room(): number {
    return Math.max(0, (1 + MOST_AHEAD) * this.nodeCap - this.busy - this.reserved);
  }

  /** Keeps room for what a claim may bring; given back with a negative number once it has ended. */
  reserve(rows: number): void {
    this.reserved += rows;
  }

  /** How many rows to claim for a group: for free slots and some ahead. `planned`: about to be claimed elsewhere. */
  roomFor(id: number, planned = 0): number {
    const group = this.of(id);
    const inAdvance = this.aheadOf(group);
    const isEnough = group.waiting.length >= Math.max(group.limit, inAdvance) / 2;
    if (group.waiting.length > 0 && isEnough) return 0;
    // If many rows of any groups wait already, only free slots are filled. A new group is expected to be as the others.
    const tookMs = group.tookMs ?? this.tookMs ?? AHEAD_MS;
    const most = tookMs < AHEAD_MS ? MOST_AHEAD * this.nodeCap : this.nodeCap;
    const ahead = this.waiting + planned < most ? inAdvance : 0;
    const left = Math.max(0, this.nodeCap - this.running - planned);
    const free = Math.max(0, Math.min(group.limit - group.running, left));
    const wanted = free + ahead - group.waiting.length;
    return Math.max(0, Math.min(wanted, this.room - planned));
  }

  /** How many of a group may be under way at once now. */
  limitOf(id: number): number {
    return this.of(id).limit;
  }

  /** How many more rows the group has slots for, apart from the cap of the node. */
  freeFor(id: number): number {
    const group = this.of(id);
    return Math.max(0, group.limit - group.running - group.waiting.length);
  }

  add(claimed: readonly L[]): void {
    for (const one of claimed) {
      const group = this.of(one.group);
      const last = group.waiting.at(-1);
      group.waiting.push(one);
      // A retry that has become due meanwhile may have been due before what waits.
      if (last && byDue(last, one) > 0) group.waiting.sort(byDue);
      this.waiting += 1;
      this.offer(one.group, group);
    }
  }

  /** The next row to start, which holds a slot until `finish`; none if no slot is free. */
  takeNext(): L | undefined {
    if (this.running >= this.nodeCap + this.handedOver(this.nodeCap, this.tookMs)) return undefined;
    for (const id of this.ready) {
      // To the end of the queue: groups take turns, also where slots empty one by one.
      this.ready.delete(id);
      const group = this.of(id);
      const next = this.isOpen(group) ? group.waiting.shift() : undefined;
      if (!next) continue;
      group.running += 1;
      this.running += 1;
      this.waiting -= 1;
      this.offer(id, group);
      return next;
    }
    return undefined;
  }

  private capOf(group: Group<L>): number {
    if (!group.slowed) return group.cap;
    const { to, at } = group.slowed;
    const cap = to * 2 ** Math.floor((this.now() - at) / SLOW_FOR_MS);
    if (cap < group.cap) return cap;
    group.slowed = null;
    return group.cap;
  }

  /** The group asked to go slower: half as much as until now, and more only when some time has passed. */
  slow(id: number): void {
    const group = this.of(id);
    group.slowed = { to: Math.max(1, Math.floor(group.limit / 2)), at: this.now() };
  }

  /**
   * @param healthy what the row says about its group; null: nothing, it was not worked on
   * @param tookMs time in a slot, or waiting for one, if it predicts later rows
   */
  finish(id: number, healthy: boolean | null, tookMs?: number): void {
    const group = this.of(id);
    if (tookMs !== undefined) {
      group.tookMs = averaged(group.tookMs, tookMs);
      this.tookMs = averaged(this.tookMs, tookMs);
    }
    group.running -= 1;
    this.running -= 1;
    if (healthy !== null) {
      group.limit = healthy
        ? Math.min(this.capOf(group), group.limit * 2)
        : Math.max(1, Math.floor(group.limit / 2));
    }
    this.offer(id, group);
  }

  /** Gives up the rows that wait for a slot and returns them. */
  dropWaiting(): L[] {
    this.ready.clear();
    this.waiting = 0;
    return [...this.groups.values()].flatMap((group) => group.waiting.splice(0));
  }

  /** Forgets groups that are idle and have nothing due, so that the map stays as small as the site. */
  forgetExcept(due: ReadonlyMap<number, number>): void {
    for (const [id, group] of this.groups) {
      const isIdle = group.running === 0 && group.waiting.length === 0 && !due.has(id);
      if (isIdle && this.capOf(group) === group.cap) this.groups.delete(id);
    }
  }
}
