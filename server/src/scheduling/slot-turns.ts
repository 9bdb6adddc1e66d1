import type { GroupSlots } from './group-slots';
import { createSignal, type Signal } from './recorder';
import type { CappedWorkStore, GroupHandler } from './types';
import type { Lease } from '../queue/lease';

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
  /** Whether rows of a group may be claimed in advance where nobody else holds any. */
  mayClaimAhead(group: number): boolean;
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
  /** A row that was claimed was given back without being worked on. */
  givenBack(lease: L): void;
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
/** Claims of this node under way at once: stores make several of them together. */
const CLAIMS_AT_ONCE = 16;
/** What a turn claims first of a group, at least: whether it has more than that, nobody knows before. */
const FIRST_CLAIM = 2;
/**
 * The least time between a claim of this node and the next one of a turn that has claimed before,
 * unless half of its slots are free: a claim is a transaction, so slots that empty one by one are
 * filled together. A turn's first claim waits for nobody: many turns wait for a slot of a full node.
 */
const GATHER_MS = 10;
/** Where claims take longer than that, twice as much passes as the last one took, up to this. */
const LONGEST_GATHER_MS = 50;
/** So much of a node is filled with rows that are claimed ahead; what is left is for other groups. */
const FILLED_AHEAD = 0.75;
/** When a group is looked at again whose cap other nodes have used up: none of them says when it may go on. */
const REST_MS = 250;
/** The same where this node has, and says so as soon as a slot empties. */
const OWN_REST_MS = 2000;

/** Rows of each group, by their ids. */
type RowsOfGroups = Map<number, Set<number>>;

const note = (rows: RowsOfGroups, { group, id }: Lease): void => {
  const ids = rows.get(group) ?? new Set();
  rows.set(group, ids.add(id));
};

const forget = (rows: RowsOfGroups, { group, id }: Lease): void => {
  const ids = rows.get(group);
  ids?.delete(id);
  if (ids?.size === 0) rows.delete(group);
};

interface Claimed {
  /** Nothing more of the group is due. */
  isDrained: boolean;
  isFull: boolean;
  /** Nobody else held any of it. */
  isAlone: boolean;
}

const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/**
 * What a slot worker does in a turn of a group: it claims what fits into free slots, and again when
 * some have emptied. What is leased counts towards the group's cap on all nodes, so it claims ahead
 * only while no other node holds any of the group, and only where its rows are quick: with slower ones
 * there is time to claim, and other nodes should get some.
 */
export const createSlotTurns = <L extends Lease>({
  store,
  slots,
  concurrency,
  concurrencyPerGroup,
  isHeldUp,
  isStopping,
  mayClaimAhead,
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
  const done: RowsOfGroups = new Map();
  const node = createSignal();
  /** Rows of each group that were claimed in turns and hold a slot, or wait for one. */
  const held: RowsOfGroups = new Map();
  /** Slots that claims under way are about to fill. */
  let reserved = 0;
  let claims = 0;
  /** When rows were claimed last, of whatever group, on a clock that only goes forward. */
  let claimedAt = Number.NEGATIVE_INFINITY;
  /** How long the last claim took, in milliseconds. */
  let tookMs = 0;

  const slotsFor = (group: number): number =>
    Math.max(0, Math.min(slots.freeFor(group), concurrency - slots.busy - reserved, CLAIM_AT_ONCE));

  const isNodeBusy = (): boolean =>
    isHeldUp() || claims >= CLAIMS_AT_ONCE || slots.busy + reserved >= concurrency;

  const roomFor = (group: number): number => (isNodeBusy() ? 0 : slotsFor(group));

  /** A first claim, beside others of groups that have a turn as well: most have little to do. */
  const firstRoomFor = (group: number): number =>
    Math.min(roomFor(group), Math.max(FIRST_CLAIM, Math.ceil((2 * concurrency) / turns.size)));

  /** How many to claim where nobody else holds any, with some that wait for a slot. */
  const roomAhead = (group: number): number => {
    if (isHeldUp() || claims >= CLAIMS_AT_ONCE) return 0;
    if (!mayClaimAhead(group) || !slots.isQuick(group)) return 0;
    const left = Math.floor(concurrency * FILLED_AHEAD) - slots.busy - reserved;
    return Math.max(0, Math.min(CLAIM_AT_ONCE, slots.roomFor(group, reserved), left));
  };

  const claim = async (group: number, room: number, ahead: number): Promise<Claimed> => {
    let answer: Claimed = { isDrained: false, isFull: false, isAlone: false };
    const asked = Math.max(room, ahead);
    reserved += asked;
    claims += 1;
    const begun = performance.now();
    claimedAt = begun;
    try {
      await take(async () => {
        const own = [...(held.get(group) ?? [])];
        const {
          leases,
          isFull,
          isAlone = false,
        } = await store.claimWithin(group, room, {
          atOnce: concurrencyPerGroup,
          except: [...(done.get(group) ?? [])],
          ahead: { own, limit: ahead },
        });
        for (const lease of leases) {
          ofTurns.add(lease);
          note(held, lease);
        }
        answer = {
          isDrained: !isFull && leases.length < (isAlone ? asked : room),
          isFull,
          isAlone,
        };
        return leases;
      });
    } finally {
      reserved -= asked;
      claims -= 1;
      tookMs = performance.now() - begun;
      node.give();
    }
    return answer;
  };

  const gather = async (group: number): Promise<void> => {
    const rest = Math.min(Math.max(GATHER_MS, 2 * tookMs), LONGEST_GATHER_MS);
    const pause = claimedAt + rest - performance.now();
    if (pause > 0 && roomFor(group) < concurrencyPerGroup / 2) await sleep(pause);
  };

  return {
    async takeTurn(group, turn) {
      const signal = createSignal();
      let hasClaimed = false;
      let isAlone = true;
      turns.set(group, signal);
      off.delete(group);
      unfinished.add(group);
      try {
        while (!isStopping() && !turn.isOver()) {
          if (hasClaimed) await gather(group);
          const seen = { group: signal.count(), node: node.count() };
          const room: number = hasClaimed ? roomFor(group) : firstRoomFor(group);
          const mayBeAhead = isAlone && (hasClaimed || turns.size === 1);
          const ahead: number = mayBeAhead ? roomAhead(group) : 0;
          const isAsked = room > 0 || ahead > 0;
          const claimed = isAsked ? await claim(group, room, ahead) : null;
          const { isDrained, isFull } = claimed ?? { isDrained: false, isFull: true };
          hasClaimed ||= isAsked;
          if (claimed) isAlone = claimed.isAlone;
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

    unrecorded: (lease) => note(done, lease),

    recorded: (lease) => forget(done, lease),

    givenBack: (lease) => forget(held, lease),

    finished(lease) {
      forget(held, lease);
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
