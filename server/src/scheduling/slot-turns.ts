import type { GroupSlots } from './group-slots';
import { createSignal, type Signal } from './signal';
import type { CappedWorkStore, GroupHandler, Lease } from './types';

export interface SlotTurnsOptions<L extends Lease> {
  store: CappedWorkStore<L>;
  slots: GroupSlots<L>;
  /** Pieces of work under way at once on this node. */
  concurrency: number;
  /** The same of one group, on all nodes together. */
  concurrencyPerGroup: number;
  /** Whether nothing should be claimed for now, because recording lags behind. */
  isHeldUp(): boolean;
  isStopping(): boolean;
  /** Has rows claimed, and starts them. */
  take(claim: () => Promise<L[]>): Promise<void>;
}

export interface SlotTurns<L extends Lease> {
  takeTurn: GroupHandler['takeTurn'];
  /**
   * A row was not worked on, perhaps because its group is off: a turn of the group ends, because only
   * what is due tells whether to go on.
   */
  unworked(group: number): void;
  /** A row is done, and its outcome is still to be recorded. */
  unrecorded(lease: L): void;
  recorded(lease: L): void;
  /**
   * A row has left its slot.
   * @returns whether its group should be announced; undefined where the row was not claimed in a turn.
   */
  finished(lease: L): boolean | undefined;
  /** Has every turn that waits look again. */
  wake(): void;
  /** Forgets groups that have nothing due. */
  forgetExcept(due: ReadonlyMap<number, number>): void;
}

/** Rows that are claimed of one group at once. */
const CLAIM_AT_ONCE = 64;
/**
 * How long a turn waits for a slot of its group: where receivers are quick the turn goes on, and
 * where they are slow the group comes back when a slot empties.
 */
const SLOT_WAIT_MS = 100;
/** The same where the whole node is busy: then another one may take the group. */
const NODE_WAIT_MS = 500;
/** Each claim has a connection of the site's pool, which recording and the site's requests need, too. */
const CLAIMS_AT_ONCE = 4;
/**
 * The least time between a claim of this node and the next one of a turn that has claimed before,
 * unless half of its slots are free: a claim is a transaction, so slots that empty one by one are
 * filled together. A turn's first claim waits for nobody: many turns wait for a slot of a full node.
 */
const GATHER_MS = 10;
/** When a group is looked at again whose cap other nodes have used up: none of them says when it may go on. */
const REST_MS = 250;
/** The same where this node has, and says so as soon as a slot empties. */
const OWN_REST_MS = 2000;

const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/**
 * What a slot worker does in a turn of a group: it claims what fits into free slots, and again when
 * some have emptied. Nothing is claimed ahead, because what is leased counts towards the group's cap
 * on all nodes.
 */
export const createSlotTurns = <L extends Lease>({
  store,
  slots,
  concurrency,
  concurrencyPerGroup,
  isHeldUp,
  isStopping,
  take,
}: SlotTurnsOptions<L>): SlotTurns<L> => {
  /** Groups that have a turn now, each with what wakes it. */
  const turns = new Map<number, Signal>();
  /** Groups that have a turn, and whose rows are not to be worked on. */
  const off = new Set<number>();
  /** Groups whose last turn ended although more of them was due. */
  const unfinished = new Set<number>();
  const ofTurns = new WeakSet<L>();
  /** Rows of each group that are leased and hold no slot any more. */
  const done = new Map<number, Set<number>>();
  const node = createSignal();
  /** Slots that claims under way are about to fill. */
  let reserved = 0;
  let claims = 0;
  /** When rows were claimed last, of whatever group, on a clock that only goes forward. */
  let claimedAt = Number.NEGATIVE_INFINITY;

  const slotsFor = (group: number): number =>
    Math.max(0, Math.min(slots.freeFor(group), concurrency - slots.busy - reserved, CLAIM_AT_ONCE));

  const isNodeBusy = (): boolean =>
    isHeldUp() || claims >= CLAIMS_AT_ONCE || slots.busy + reserved >= concurrency;

  const roomFor = (group: number): number => (isNodeBusy() ? 0 : slotsFor(group));

  const claim = async (
    group: number,
    room: number
  ): Promise<{ isDrained: boolean; isFull: boolean }> => {
    let answer = { isDrained: false, isFull: false };
    reserved += room;
    claims += 1;
    claimedAt = performance.now();
    try {
      await take(async () => {
        const except = [...(done.get(group) ?? [])];
        const cap = { atOnce: concurrencyPerGroup, except };
        const { leases, isFull } = await store.claimWithin(group, room, cap);
        for (const lease of leases) ofTurns.add(lease);
        answer = { isDrained: !isFull && leases.length < room, isFull };
        return leases;
      });
    } finally {
      reserved -= room;
      claims -= 1;
      node.give();
    }
    return answer;
  };

  const gather = async (group: number): Promise<void> => {
    const pause = claimedAt + GATHER_MS - performance.now();
    if (pause > 0 && roomFor(group) < concurrencyPerGroup / 2) await sleep(pause);
  };

  return {
    async takeTurn(group, turn) {
      const signal = createSignal();
      let hasClaimed = false;
      turns.set(group, signal);
      off.delete(group);
      unfinished.add(group);
      try {
        while (!isStopping() && !turn.isOver()) {
          if (hasClaimed) await gather(group);
          const seen = { group: signal.count(), node: node.count() };
          const room = roomFor(group);
          const { isDrained, isFull } =
            room > 0 ? await claim(group, room) : { isDrained: false, isFull: true };
          hasClaimed ||= room > 0;
          if (isDrained || off.has(group)) {
            unfinished.delete(group);
            return null;
          }
          if (!isFull && slotsFor(group) === 0) turn.share();
          if (!isFull) continue;
          // A busy node leaves the group to others at once; a group at its cap is for nobody now.
          if (isNodeBusy()) {
            if (!(await node.since(seen.node, NODE_WAIT_MS))) return store.now();
          } else if (!(await signal.since(seen.group, SLOT_WAIT_MS))) {
            return store.now() + (slots.freeFor(group) > 0 ? REST_MS : OWN_REST_MS);
          }
        }
        return store.now();
      } finally {
        turns.delete(group);
        off.delete(group);
      }
    },

    unworked(group) {
      if (turns.has(group)) off.add(group);
      unfinished.delete(group);
    },

    unrecorded({ group, id }) {
      const ids = done.get(group) ?? new Set();
      done.set(group, ids.add(id));
    },

    recorded({ group, id }) {
      const ids = done.get(group);
      ids?.delete(id);
      if (ids?.size === 0) done.delete(group);
    },

    finished(lease) {
      node.give();
      const turn = turns.get(lease.group);
      turn?.give();
      // A turn that lasts has just heard of it.
      if (turn) return false;
      return ofTurns.has(lease) ? unfinished.has(lease.group) : undefined;
    },

    wake() {
      node.give();
      for (const turn of [...turns.values()]) turn.give();
    },

    forgetExcept(due) {
      for (const group of unfinished) {
        if (!due.has(group) && !turns.has(group)) unfinished.delete(group);
      }
    },
  };
};
