import type { GroupHandler } from '../types';
import type { Ticket } from './tickets';

export interface GroupTurnsOptions {
  /** What the work is called in the log. */
  name: string;
  handler: GroupHandler;
  /** Asks for a ticket. */
  ask(ticket: Ticket): void;
  /** Has due groups looked for, so many milliseconds from now. */
  look(afterMs: number): void;
  logFault(what: string, error: unknown): void;
}

export interface GroupTurns {
  /** More of a group may be due now. */
  announce(group: number): void;
  /**
   * A look has found that a group is due.
   * @returns whether it depends on its ticket: it has no turn here, and waits for none
   */
  found(group: number): boolean;
  /** Gives a group its turn; resolves when the ticket may be given back. */
  take(ticket: Ticket): Promise<void>;
  /** Gives a group its turn without a ticket, once fewer groups have one than may: nobody gives tickets out. */
  begin(group: number): void;
  /** The ticket is gone from Redis: only now can another one of its id be written. */
  gone(ticket: Ticket): void;
  /** As `gone`, for every turn that has ended: Redis has forgotten their tickets, or was away. */
  allGone(): void;
  /** Ends all turns and gives their groups to other nodes. */
  stop(): Promise<void>;
}

/** How long a group has its turn while others wait. */
const TURN_MS = 2000;
const RETRY_AFTER_ERROR_MS = 1000;
/**
 * A look that finds a group due whose turn has just ended comes too early to be trusted: its rows may
 * be in somebody's transaction, and turns in which nothing can be claimed would follow one another.
 */
const QUIET_MS = 100;
/** A turn asks for another node beside it no more often than this: the ticket may come to one that works on the group. */
const SHARE_EVERY_MS = 250;

/**
 * For so long a look asks for no ticket of a group that another one has asked for: all due groups are found
 * again and again, and most have a ticket that waits, or a turn on another node.
 */
const ASKED_MS = 500;

interface Turn {
  slot: number;
  /** When the group should have its next turn; undefined while this one lasts. */
  next?: number | null;
}

interface GroupState {
  turn?: Turn;
  /** Somebody asked for the group during its turn, when no ticket of it could be written. */
  again: boolean;
  /** It is to have a turn at a later time. */
  rest?: { slot: number; timer: NodeJS.Timeout };
  /** When its last turn ended, on a clock that only goes forward. */
  endedAt: number;
}

/**
 * The turns that groups of one kind have on this node. Times wait in this process and never in Redis:
 * a ticket that waits there goes by the clock of the node that wrote it.
 */
export const createGroupTurns = ({
  name,
  handler,
  ask,
  look,
  logFault,
}: GroupTurnsOptions): GroupTurns => {
  const groups = new Map<number, GroupState>();
  const running = new Set<Promise<void>>();
  /** When a look asked for groups that have had no turn here since, on a clock that only goes forward. */
  const asked = new Map<number, number>();
  /** Groups that wait for a turn without a ticket, the first one first. */
  const line = new Set<number>();
  let forgotAt = Number.NEGATIVE_INFINITY;
  let stopping = false;

  const stateOf = (group: number): GroupState => {
    let state = groups.get(group);
    if (!state) {
      state = { again: false, endedAt: Number.NEGATIVE_INFINITY };
      groups.set(group, state);
    }
    return state;
  };

  const wake = (group: number, state: GroupState): void => {
    if (!state.rest) return;
    clearTimeout(state.rest.timer);
    const { slot } = state.rest;
    state.rest = undefined;
    ask({ group, slot });
  };

  const restFor = (group: number, state: GroupState, slot: number, delay: number): void => {
    const timer = setTimeout(() => wake(group, state), delay);
    timer.unref();
    state.rest = { slot, timer };
  };

  const forget = (): void => {
    const now = performance.now();
    if (Math.max(groups.size, asked.size) <= 2 * handler.turns.groups) return;
    if (now - forgotAt < ASKED_MS) return;
    forgotAt = now;
    for (const [group, { turn, rest, endedAt }] of groups) {
      if (!turn && !rest && now - endedAt > QUIET_MS) groups.delete(group);
    }
    for (const [group, at] of asked) if (now - at > ASKED_MS) asked.delete(group);
  };

  const endTurn = (group: number, state: GroupState): void => {
    const { turn, again } = state;
    if (turn?.next === undefined) return;
    state.turn = undefined;
    state.again = false;
    state.endedAt = performance.now();
    const delay = turn.next === null ? null : turn.next - handler.now();
    if (again || (delay !== null && (delay <= 0 || stopping))) ask({ group, slot: turn.slot });
    else if (delay !== null) restFor(group, state, turn.slot, delay);
    // What was committed at the very end of the turn found a ticket that was about to go.
    else look(0);
  };

  const work = async ({ group, slot }: Ticket, turn: Turn): Promise<void> => {
    const until = performance.now() + TURN_MS;
    let sharedAt = Number.NEGATIVE_INFINITY;
    try {
      turn.next = await handler.takeTurn(group, {
        isOver: () => stopping || performance.now() > until,
        share() {
          const now = performance.now();
          if (slot + 1 >= handler.turns.nodes || now - sharedAt < SHARE_EVERY_MS) return;
          sharedAt = now;
          ask({ group, slot: slot + 1 });
        },
      });
    } catch (error) {
      logFault(`${name}: a turn failed`, error);
      turn.next = handler.now() + RETRY_AFTER_ERROR_MS;
    }
  };

  /** @param ended hears of its end, before another group begins in its place */
  const start = (ticket: Ticket, state: GroupState, ended = () => {}): Promise<void> => {
    if (state.rest) clearTimeout(state.rest.timer);
    state.rest = undefined;
    state.turn = { slot: ticket.slot };
    asked.delete(ticket.group);
    const done: Promise<void> = work(ticket, state.turn).finally(() => {
      running.delete(done);
      ended();
      startNext();
    });
    running.add(done);
    return done;
  };

  const startNext = (): void => {
    for (const group of line) {
      if (stopping || running.size >= handler.turns.groups) return;
      line.delete(group);
      const state = stateOf(group);
      if (!state.turn) void start({ group, slot: 0 }, state, () => endTurn(group, state));
    }
  };

  return {
    announce(group) {
      const state = groups.get(group);
      if (state?.rest) wake(group, state);
      else if (state?.turn) state.again = true;
      else ask({ group, slot: 0 });
    },

    found(group) {
      const state = groups.get(group);
      if (state?.turn || state?.rest) return false;
      const now = performance.now();
      const quiet = state ? state.endedAt + QUIET_MS - now : 0;
      if (state && quiet > 0) restFor(group, state, 0, quiet);
      else if (now - (asked.get(group) ?? Number.NEGATIVE_INFINITY) < ASKED_MS) look(ASKED_MS);
      else {
        asked.set(group, now);
        ask({ group, slot: 0 });
      }
      forget();
      return true;
    },

    begin(group) {
      line.add(group);
      startNext();
    },

    async take(ticket) {
      const state = stateOf(ticket.group);
      if (state.turn) {
        // Another ticket of the group was given to the node that works on it.
        state.again ||= ticket.slot === 0;
        return;
      }
      await start(ticket, state);
    },

    gone({ group, slot }) {
      const state = groups.get(group);
      if (state?.turn?.slot === slot) endTurn(group, state);
    },

    allGone() {
      asked.clear();
      for (const [group, state] of groups) endTurn(group, state);
    },

    async stop() {
      stopping = true;
      for (const [group, state] of groups) wake(group, state);
      await Promise.all(running);
    },
  };
};
