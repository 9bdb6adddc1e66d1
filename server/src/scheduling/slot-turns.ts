import type { GroupSlots } from './group-slots';
import { createSignal, type Signal } from './signal';
import type { CappedWorkStore, GroupHandler, Lease } from './types';

export interface SlotTurnsOptions<L extends Lease> {
  store: CappedWorkStore<L>;
  slots: GroupSlots<L>;
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
/** Each claim has a connection of the site's pool, which recording and the site's requests need, too. */
const CLAIMS_AT_ONCE = 4;
/**
 * The least time between a claim of this node and the next one of a turn that has claimed before,
 * unless half of its slots are free: a claim is a transaction, so slots that empty one by one are
 * filled together. A turn's first claim waits for nobody: many turns wait for a slot of a full node.
 */
const GATHER_MS = 10;
/**
 * Rows that take less are claimed ahead within the cap of their group: what waits here, and could be
 * under way elsewhere, waits no longer than that.
 */
const STEADY_MS = 250;
/** Rows that take less are claimed ahead beyond it, too: a claim for each would come late. */
const QUICK_MS = 40;
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
 * What a slot worker does in a turn of a group: it claims for free slots and some rows ahead, and again
 * when half of those are gone: a claim is a transaction, so one for a row or two would cost more than
 * the rows. What is leased counts towards the group's cap on all nodes. Beyond the cap it claims only
 * while no other node holds any of the group, and only where its rows are quick.
 */
export const createSlotTurns = <L extends Lease>({
  store,
  slots,
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
  /** Groups that have a turn, no row here, and wait for a slot of the node. */
  const newcomers = new Set<number>();
  let claims = 0;
  /** When rows were claimed last, of whatever group, on a clock that only goes forward. */
  let claimedAt = Number.NEGATIVE_INFINITY;

  /** Whether this node can do all that the group's cap allows, and a claim for each row would come late. */
  const isOwn = (group: number): boolean =>
    slots.reachesCap(group) && slots.turnsOver(group, QUICK_MS);

  /**
   * Whether rows are claimed that have to wait. Where the group is the only one here, what waits could be
   * under way on another node, unless this one does all that the cap allows. A group that has no row here
   * and waits for a slot comes first.
   */
  const isAhead = (group: number): boolean =>
    mayClaimAhead(group) &&
    newcomers.size === 0 &&
    (turns.size > 1 ? slots.turnsOver(group, STEADY_MS) : isOwn(group));

  /** Whether nothing is claimed of a group for now: every slot has its row, and enough of them wait. */
  const isNodeBusy = (group: number): boolean =>
    isHeldUp() ||
    claims >= CLAIMS_AT_ONCE ||
    (slots.free === 0 && !(isAhead(group) && slots.hasMuchRoom));

  /** How many to claim of a group within its cap: for its free slots, and some ahead. */
  const roomFor = (group: number): number => {
    if (isNodeBusy(group)) return 0;
    if (isAhead(group)) return Math.min(CLAIM_AT_ONCE, slots.roomFor(group));
    const isShared = turns.size > 1 && mayClaimAhead(group);
    const inTurn = isShared ? slots.inTurn(group, STEADY_MS) : 1;
    return Math.min(CLAIM_AT_ONCE, slots.freeFor(group), slots.free * inTurn);
  };

  /** The same beyond its cap, where nobody else holds any. */
  const roomAhead = (group: number): number =>
    isAhead(group) && isOwn(group) ? roomFor(group) : 0;

  const claim = async (group: number, room: number, ahead: number): Promise<Claimed> => {
    let answer: Claimed = { isDrained: false, isFull: false, isAlone: false };
    const asked = Math.max(room, ahead);
    slots.reserve(asked);
    claims += 1;
    claimedAt = performance.now();
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
      slots.reserve(-asked);
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
      let isAlone = true;
      turns.set(group, signal);
      off.delete(group);
      unfinished.add(group);
      try {
        while (!isStopping() && !turn.isOver()) {
          if (hasClaimed) await gather(group);
          const seen = { group: signal.count(), node: node.count() };
          const room = roomFor(group);
          const ahead: number = isAlone ? roomAhead(group) : 0;
          const isAsked = room > 0 || ahead > 0;
          if (isAsked) newcomers.delete(group);
          const claimed = isAsked ? await claim(group, room, ahead) : null;
          const { isDrained, isFull } = claimed ?? { isDrained: false, isFull: true };
          hasClaimed ||= isAsked;
          if (claimed) isAlone = claimed.isAlone;
          if (isDrained || off.has(group)) {
            unfinished.delete(group);
            return null;
          }
          if (!isFull && roomFor(group) === 0) turn.share();
          if (!isFull) continue;
          // A busy node leaves the group to others at once; a group at its cap is for nobody now.
          if (isNodeBusy(group)) {
            if (!held.has(group)) newcomers.add(group);
            if (!(await node.since(seen.node, NODE_WAIT_MS))) return store.now();
          } else if (!(await signal.since(seen.group, SLOT_WAIT_MS))) {
            return store.now() + (slots.freeFor(group) > 0 ? REST_MS : OWN_REST_MS);
          }
        }
        return store.now();
      } finally {
        for (const known of [turns, off, newcomers]) known.delete(group);
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
