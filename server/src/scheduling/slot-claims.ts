import type { Detached } from '../database/connection';
import { createTimeSlice } from '../runtime/event-loop';
import type { GroupSlots } from './group-slots';
import type { CappedWorkStore, GroupRoom, Lease } from './types';

export interface SlotClaimsOptions<L extends Lease> {
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

export interface SlotClaims {
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
export const createSlotClaims = <L extends Lease>({
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
    const [only, ...others] = rooms;
    if (!only) return [];
    const asked = rooms.reduce((sum, { limit }) => sum + limit, 0);
    slots.reserve(asked);
    try {
      const leases = await (others.length > 0
        ? store.claimGroups(rooms)
        : store.claim(only.group, only.limit));
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
    const slice = createTimeSlice();
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
