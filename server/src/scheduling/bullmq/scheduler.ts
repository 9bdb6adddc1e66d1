import type * as BullMQ from 'bullmq';
import type { Queue, Worker } from 'bullmq';
import type * as IORedis from 'ioredis';
import type { Redis, RedisOptions } from 'ioredis';
import type { Detached } from '../../database/connection';
import { createFaultLog } from '../../database/retry';
import { loadOptional } from '../../runtime/optional-package';
import { errorText } from '../../runtime/text';
import { Loop } from '../embedded-scheduler';
import { STOP_MARGIN_MS, stopWithin } from '../recorder';
import { SlotWorker } from '../slot-worker';
import type { GroupHandler, Scheduler, ServedHandler, TurnTaker, WorkerLog } from '../types';
import { SlotTurns } from './slot-turns';
import { describeMistyped, isWrongType, queueName, removeMistyped } from './mistyped-keys';
import {
  ANY_GROUP,
  LEFT_OVER_MS,
  LeftOverTickets,
  readTicketId,
  type Ticket,
  Tickets,
} from './tickets';

interface GroupTurnsOptions {
  /** The work's name in the log. */
  name: string;
  handler: Pick<GroupHandler, 'now' | 'turns'> & TurnTaker;
  /** Asks for a ticket. */
  ask(ticket: Ticket): void;
  /** Looks for due groups, so many milliseconds from now. */
  look(afterMs: number): void;
  logFault(what: string, error: unknown): void;
}

/** How long a group has its turn while others wait. */
const TURN_MS = 2000;
const RETRY_AFTER_ERROR_MS = 1000;
/**
 * A look that finds a group due whose turn has just ended comes too early to be trusted: its rows may
 * be in somebody's transaction, and turns in which nothing can be claimed would follow one another.
 */
const QUIET_MS = 100;
/** The least time between two requests of a turn for a second node: the ticket may reach a node at work. */
const SHARE_EVERY_MS = 250;

/**
 * For so long a look asks for no ticket of a group that another one has asked for: all due groups are found
 * again and again, and most have a ticket that waits, or a turn on another node.
 */
const TICKET_MS = 500;

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
export class GroupTurns {
  private readonly groups = new Map<number, GroupState>();
  private readonly running = new Set<Promise<void>>();
  /** When a look asked for groups that have had no turn here since, on a clock that only goes forward. */
  private readonly ticketAt = new Map<number, number>();
  /** Groups that wait for a turn without a ticket, the first one first. */
  private readonly queued = new Set<number>();
  private forgotAt = Number.NEGATIVE_INFINITY;
  private stopping = false;

  constructor(private readonly options: GroupTurnsOptions) {}

  /** More of a group may be due now. */
  announce(group: number): void {
    const state = this.groups.get(group);
    if (state?.rest) this.wake(group, state);
    else if (state?.turn) state.again = true;
    else this.options.ask({ group, slot: 0 });
  }

  /**
   * A look has found that a group is due.
   * @returns whether it depends on its ticket: it has no turn here, and waits for none
   */
  found(group: number): boolean {
    const state = this.groups.get(group);
    if (state?.turn || state?.rest) return false;
    const now = performance.now();
    const quiet = state ? state.endedAt + QUIET_MS - now : 0;
    const hasTicket = now - (this.ticketAt.get(group) ?? Number.NEGATIVE_INFINITY) < TICKET_MS;
    if (state && quiet > 0) this.restFor(group, state, 0, quiet);
    else if (hasTicket) this.options.look(TICKET_MS);
    else {
      this.ticketAt.set(group, now);
      this.options.ask({ group, slot: 0 });
    }
    this.forget();
    return true;
  }

  /** Gives a group its turn without a ticket, once fewer groups have one than may: nobody gives tickets out. */
  begin(group: number): void {
    this.queued.add(group);
    this.startNext();
  }

  /** Gives a group its turn; resolves when the ticket may be given back. */
  async take(ticket: Ticket): Promise<void> {
    const state = this.stateOf(ticket.group);
    // Another ticket of the group was given to the node that works on it.
    if (state.turn) state.again ||= ticket.slot === 0;
    else await this.start(ticket, state);
  }

  /** The ticket is gone from Redis: only now can another one of its id be written. */
  gone({ group, slot }: Ticket): void {
    const state = this.groups.get(group);
    if (state?.turn?.slot === slot) this.endTurn(group, state);
  }

  /** As `gone`, for every turn that has ended: Redis has forgotten their tickets, or was away. */
  allGone(): void {
    this.ticketAt.clear();
    for (const [group, state] of this.groups) this.endTurn(group, state);
  }

  /** Ends all turns and gives their groups to other nodes. */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const [group, state] of this.groups) this.wake(group, state);
    await Promise.all(this.running);
  }

  private stateOf(group: number): GroupState {
    let state = this.groups.get(group);
    if (!state) {
      state = { again: false, endedAt: Number.NEGATIVE_INFINITY };
      this.groups.set(group, state);
    }
    return state;
  }

  private wake(group: number, state: GroupState): void {
    if (!state.rest) return;
    clearTimeout(state.rest.timer);
    const { slot } = state.rest;
    state.rest = undefined;
    this.options.ask({ group, slot });
  }

  private restFor(group: number, state: GroupState, slot: number, delay: number): void {
    const timer = setTimeout(() => this.wake(group, state), delay);
    timer.unref();
    state.rest = { slot, timer };
  }

  private forget(): void {
    const { groups, ticketAt } = this;
    const now = performance.now();
    if (Math.max(groups.size, ticketAt.size) <= 2 * this.options.handler.turns.groups) return;
    if (now - this.forgotAt < TICKET_MS) return;
    this.forgotAt = now;
    for (const [group, { turn, rest, endedAt }] of groups) {
      if (!turn && !rest && now - endedAt > QUIET_MS) groups.delete(group);
    }
    for (const [group, at] of ticketAt) if (now - at > TICKET_MS) ticketAt.delete(group);
  }

  private endTurn(group: number, state: GroupState): void {
    const { turn, again } = state;
    if (turn?.next === undefined) return;
    state.turn = undefined;
    state.again = false;
    state.endedAt = performance.now();
    const { ask, look, handler } = this.options;
    const delay = turn.next === null ? null : turn.next - handler.now();
    if (again || (delay !== null && (delay <= 0 || this.stopping))) ask({ group, slot: turn.slot });
    else if (delay !== null) this.restFor(group, state, turn.slot, delay);
    // Work that was committed at the very end of the turn found a ticket that was about to go.
    else look(0);
  }

  private async work({ group, slot }: Ticket, turn: Turn): Promise<void> {
    const { name, handler, ask, logFault } = this.options;
    const until = performance.now() + TURN_MS;
    let sharedAt = Number.NEGATIVE_INFINITY;
    try {
      turn.next = await handler.takeTurn(group, {
        isOver: () => this.stopping || performance.now() > until,
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
  }

  /** @param ended is called at its end, before another group begins in its place */
  private start(ticket: Ticket, state: GroupState, ended = () => {}): Promise<void> {
    if (state.rest) clearTimeout(state.rest.timer);
    state.rest = undefined;
    state.turn = { slot: ticket.slot };
    this.ticketAt.delete(ticket.group);
    const done: Promise<void> = this.work(ticket, state.turn).finally(() => {
      this.running.delete(done);
      ended();
      this.startNext();
    });
    this.running.add(done);
    return done;
  }

  private startNext(): void {
    for (const group of this.queued) {
      if (this.stopping || this.running.size >= this.options.handler.turns.groups) return;
      this.queued.delete(group);
      const state = this.stateOf(group);
      if (!state.turn) {
        void this.start({ group, slot: 0 }, state, () => this.endTurn(group, state));
      }
    }
  }
}

/** The optional packages that the engine `bullmq` is made of. */
export interface BullmqPackages {
  Queue: typeof BullMQ.Queue;
  Worker: typeof BullMQ.Worker;
  Redis: typeof IORedis.Redis;
}

/**
 * Loads the packages, which a site installs only for this engine.
 * @throws Error that says what to install; the host then refuses to boot.
 */
export const loadBullmq = async (): Promise<BullmqPackages> => {
  const names = ['bullmq', 'ioredis'] as const;
  const [bullmq, ioredis] = await loadOptional('scheduler.engine is "bullmq"', names);
  const { Queue, Worker } = bullmq as typeof BullMQ;
  const { Redis } = ioredis as typeof IORedis;
  return { Queue, Worker, Redis };
};

interface LinkLog {
  warn(message: string): void;
  info(message: string): void;
}

export interface RedisLink {
  /** For what must not wait: while Redis is away, each command fails at once. */
  readonly commands: Redis;
  /** For workers, whose commands wait until Redis is back. */
  readonly workers: Redis;
  /** True if tickets can be written now. */
  isThere(): boolean;
  /** Resolves when it is known for the first time whether Redis is there. */
  readonly known: Promise<void>;
  /** To be told what Redis refused, although the connection to it may stand. */
  refused(error: unknown): void;
  /** Calls the listener whenever Redis has gone away or come back. */
  onChange(listener: (isThere: boolean) => void): void;
  close(): void;
}

const CONNECT_TIMEOUT_MS = 2000;
/** A command that takes longer says that Redis hangs. */
const COMMAND_TIMEOUT_MS = 2000;
const PROBE_EVERY_MS = 1000;
/** A process that does not know by then if Redis is there goes on without it for now. */
const KNOWN_AFTER_MS = 3000;
/** The wait is counted in steps: a process that is busy while it boots reads late what Redis answered. */
const STEP_MS = 100;

/**
 * Connects to Redis and watches it. Says once that it is away and once that it is back, however long
 * that takes; nothing else is said of its connections.
 * @param redis a `redis://` URL or connection options, docs/operations.md#redis
 */
export const connectRedis = (
  { Redis: Client }: Pick<BullmqPackages, 'Redis'>,
  { redis, prefix }: { redis: string | RedisOptions; prefix: string },
  log: LinkLog
): RedisLink => {
  const connect = (settings: RedisOptions): Redis => {
    const common: RedisOptions = {
      connectTimeout: CONNECT_TIMEOUT_MS,
      retryStrategy: (times) => Math.min(times * 50, PROBE_EVERY_MS),
      // BullMQ refuses anything else: its workers wait for Redis as long as it takes.
      maxRetriesPerRequest: null,
      ...settings,
    };
    return typeof redis === 'string'
      ? new Client(redis, common)
      : new Client({ ...redis, ...common });
  };
  const commands = connect({ enableOfflineQueue: false, commandTimeout: COMMAND_TIMEOUT_MS });
  const workers = connect({});
  const { host, port, path } = commands.options;
  const where = path ?? `${host}:${port}`;
  const listeners: ((isThere: boolean) => void)[] = [];
  let state: 'unknown' | 'there' | 'away' = 'unknown';
  let closed = false;
  let reason: unknown = new Error('no answer');
  let probe: NodeJS.Timeout | undefined;
  let becomeKnown: () => void;
  const known = new Promise<void>((resolve) => {
    becomeKnown = resolve;
  });

  const change = (next: 'there' | 'away'): void => {
    if (closed || state === next) return;
    const isFirst = state === 'unknown';
    state = next;
    if (next === 'away') {
      log.warn(
        `switchboard: Redis at ${where} is away (${errorText(reason)}). This process goes on with the embedded scheduler until it is back.`
      );
    } else if (!isFirst) {
      log.info(`switchboard: Redis at ${where} is back, and nodes share their work over it again.`);
    }
    becomeKnown();
    for (const listener of listeners) listener(next === 'there');
  };

  /** A connection that stands says little: Redis may be full, or only be read from. */
  const tryOut = async (): Promise<void> => {
    clearTimeout(probe);
    if (closed) return;
    try {
      await commands.set(`${prefix}:probe`, '1', 'PX', PROBE_EVERY_MS);
      change('there');
    } catch (error) {
      reason = error;
      change('away');
      // A connection that has closed tells by itself when it is open again.
      if (commands.status !== 'ready') return;
      probe = setTimeout(() => void tryOut(), PROBE_EVERY_MS);
      probe.unref();
    }
  };

  // One that wants a password, for instance, neither becomes ready nor closes the connection.
  let stepsLeft = KNOWN_AFTER_MS / STEP_MS;
  const waiting = setInterval(() => {
    stepsLeft -= 1;
    if (state === 'unknown' && stepsLeft <= 0) change('away');
    if (state !== 'unknown') clearInterval(waiting);
  }, STEP_MS);
  waiting.unref();

  commands.on('ready', () => {
    reason = new Error('the connection was closed');
    void tryOut();
  });
  commands.on('error', (error: unknown) => {
    reason = error;
  });
  commands.on('close', () => change('away'));
  // The other connection has the same to say.
  workers.on('error', () => {});

  return {
    commands,
    workers,
    known,
    isThere: () => state === 'there',
    refused(error) {
      if (state !== 'there') return;
      reason = error;
      change('away');
      probe = setTimeout(() => void tryOut(), PROBE_EVERY_MS);
      probe.unref();
    },
    onChange: (listener) => void listeners.push(listener),
    close() {
      closed = true;
      clearTimeout(probe);
      clearInterval(waiting);
      commands.disconnect();
      workers.disconnect();
    },
  };
};

interface BullmqSchedulerOptions {
  packages: BullmqPackages;
  redis: string | RedisOptions;
  /** Every key in Redis begins with it. */
  prefix: string;
  /** Tells this database's tickets from those of another one on the same Redis. */
  site(): string;
  log: WorkerLog & LinkLog;
  /** Gives a look an asynchronous context of its own, outside of what announced it. */
  detached: Detached;
}

/** How long a dead node's ticket stays locked, in milliseconds. */
const LOCK_MS = 5000;
const STALLED_EVERY_MS = 2500;
const RETRY_MS = 500;
/** BullMQ keeps a stream of what happens to tickets, which nobody here reads. */
const EVENTS_KEPT = 100;
/** Tickets that are handed on again and again are no failure of anybody's. */
const NEVER_TOO_OFTEN = 1_000_000;
/** How often it is said that a queue is paused, that a ticket was left over, or that a key was misused. */
const WARN_EVERY_MS = 600_000;
/** Keys that hold something else are looked for no more often than this. */
const REPAIR_EVERY_MS = 1000;
/** A lock that was lost, or a ticket that is gone, is what a flushed Redis looks like: nothing is lost. */
const LOST_TICKET = /lock|missing key/i;

/** A kind of work that this node works on. */
interface Served {
  handler: GroupHandler;
  loop: Loop;
  turns: GroupTurns;
  worker?: Worker;
}

interface KnownQueue {
  queue: Queue;
  tickets: Tickets;
  leftOver: LeftOverTickets;
  /** When its keys were looked at last, on a clock that only goes forward. */
  repairedAt: number;
  /** True if there was nothing to remove then. */
  isUnrepaired: boolean;
}

/**
 * The engine that nodes share over Redis. A ticket there says which group should have a turn, and
 * whichever node is free takes it. Only the database knows which rows are due: each node looks for them
 * with the loop of the embedded engine, which writes tickets while Redis is there and works on the groups
 * itself while it is away. So no node leads, and a ticket that is lost or doubled costs time.
 */
export const createBullmqScheduler = ({
  packages,
  redis,
  prefix,
  site,
  log,
  detached,
}: BullmqSchedulerOptions): Scheduler => {
  const link = connectRedis(packages, { redis, prefix }, log);
  const logFault = createFaultLog(log, Date.now);
  const served = new Map<string, Served>();
  const queues = new Map<string, KnownQueue>();

  /** When each thing was said last, on a clock that only goes forward. */
  const saidAt = new Map<string, number>();

  const warn = (name: string, what: 'left over' | 'paused' | 'mistyped', message: string): void => {
    const now = performance.now();
    const said = `${name} ${what}`;
    if (now - (saidAt.get(said) ?? Number.NEGATIVE_INFINITY) < WARN_EVERY_MS) return;
    saidAt.set(said, now);
    log.warn(`${name}: ${message}`);
  };

  const queueOf = (kind: string): KnownQueue => {
    let known = queues.get(kind);
    if (!known) {
      const queue = new packages.Queue(queueName(kind, site()), {
        connection: link.commands,
        prefix,
        skipWaitingForReady: true,
        skipVersionCheck: true,
        streams: { events: { maxLen: EVENTS_KEPT } },
      });
      queue.on('error', () => {});
      known = {
        queue,
        tickets: new Tickets(kind, queue, (error, failed) => void refused(kind, error, failed)),
        leftOver: new LeftOverTickets(kind, queue, link.commands),
        repairedAt: Number.NEGATIVE_INFINITY,
        isUnrepaired: false,
      };
      queues.set(kind, known);
    }
    return known;
  };

  /**
   * Removes from a queue's keys what somebody else wrote there, which keeps tickets from being written.
   * @returns whether there was anything
   */
  const repair = async (name: string, cause: unknown): Promise<boolean> => {
    const known = queueOf(name);
    const now = performance.now();
    if (now - known.repairedAt < REPAIR_EVERY_MS) return false;
    known.repairedAt = now;
    try {
      const removed = await removeMistyped(link.commands, prefix, known.queue.name);
      if (removed.length === 0) {
        // Another node may have removed it; one that stays says so again.
        if (known.isUnrepaired)
          logFault(`${name}: a ticket could not be written or given out`, cause);
        known.isUnrepaired = true;
        return false;
      }
      known.isUnrepaired = false;
      warn(
        name,
        'mistyped',
        `on Redis something else was written to ${describeMistyped(removed)}, so no ticket of this queue could be written or given out. It was removed, and this process did the work from the database meanwhile. Let no other program, and nobody by hand, write keys that begin with "${prefix}:".`
      );
      const { turns, loop, handler } = served.get(name) ?? {};
      turns?.allGone();
      if (handler) loop?.announce(handler.now());
      return true;
    } catch (error) {
      link.refused(error);
      return false;
    }
  };

  /** Redis may not have taken tickets: a node that works on their groups does so now, another one asks again. */
  const refused = async (
    kind: string,
    error: unknown,
    failed: readonly Ticket[] = []
  ): Promise<void> => {
    if (!isWrongType(error)) {
      link.refused(error);
      return;
    }
    const { turns } = served.get(kind) ?? {};
    if (turns) for (const { group, slot } of failed) if (slot === 0) turns.begin(group);
    if ((await repair(kind, error)) && !turns)
      for (const ticket of failed) queueOf(kind).tickets.ask(ticket);
  };

  const isPaused = async (kind: string): Promise<boolean> => {
    const { queue } = queueOf(kind);
    try {
      return link.isThere() && (await queue.isPaused());
    } catch {
      return false;
    }
  };

  const createWorker = (name: string, { handler, loop, turns }: Served): Worker => {
    const worker = new packages.Worker(
      queueName(name, site()),
      async ({ id }) => {
        const ticket = readTicketId(id);
        if (ticket?.group === ANY_GROUP) loop.announce(handler.now());
        else if (ticket) await turns.take(ticket);
      },
      {
        connection: link.workers,
        prefix,
        skipVersionCheck: true,
        concurrency: handler.turns.groups,
        lockDuration: LOCK_MS,
        stalledInterval: STALLED_EVERY_MS,
        maxStalledCount: NEVER_TOO_OFTEN,
        runRetryDelay: RETRY_MS,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      }
    );
    const gone = (id: string | undefined): void => {
      const ticket = readTicketId(id);
      if (ticket) turns.gone(ticket);
    };
    worker.on('completed', ({ id }) => gone(id));
    worker.on('failed', (job) => gone(job?.id));
    worker.on('error', (error) => {
      turns.allGone();
      if (isWrongType(error)) void repair(name, error);
      else if (link.isThere() && !LOST_TICKET.test(error.message)) {
        logFault(`${name}: a ticket could not be worked on`, error);
      }
    });
    return worker;
  };

  const open = (kind: string, handler: ServedHandler): void => {
    const taker = handler instanceof SlotWorker ? new SlotTurns(handler) : handler;
    const { queue, tickets, leftOver } = queueOf(kind);
    const look = (afterMs: number) => loop.announce(handler.now() + afterMs);
    let paused = false;
    const turns = new GroupTurns({
      name: kind,
      handler: {
        turns: handler.turns,
        now: () => handler.now(),
        takeTurn: (group, turn) => taker.takeTurn(group, turn),
      },
      // A paused queue gives no ticket to anybody.
      ask: (ticket: Ticket) => (paused ? turns.begin(ticket.group) : tickets.ask(ticket)),
      look,
      logFault,
    });
    const workOnLeftOver = async (due: readonly number[]): Promise<void> => {
      try {
        for (const group of await leftOver.among(due)) {
          const key = await leftOver.remove(group);
          warn(
            kind,
            'left over',
            `the ticket ${key} was left over on Redis, so nobody was told of the work that it stands for. It was removed, and this process does that work now. Delete no single keys in a dashboard, and set maxmemory-policy to noeviction, so that Redis deletes none.`
          );
          turns.begin(group);
        }
        if (leftOver.isWatching()) look(LEFT_OVER_MS);
      } catch (error) {
        await refused(kind, error);
      }
    };
    const loop = new Loop(
      kind,
      {
        pollMs: handler.pollMs,
        now: () => handler.now(),
        looked: (due) => handler.looked?.(due),
        stop: () => handler.stop(),
        async dueTimes() {
          paused = await isPaused(kind);
          return handler.dueTimes();
        },
        async work(groups) {
          await link.known;
          if (!link.isThere()) return handler.work(groups);
          if (paused) {
            warn(
              kind,
              'paused',
              `the queue ${queue.name} on Redis is paused. This process works on without it, from the database. Resume the queue where it was paused, for example in a dashboard.`
            );
          }
          const ticketed = groups.filter((group) => turns.found(group));
          if (!paused) await workOnLeftOver(ticketed);
          return null;
        },
      },
      log,
      detached
    );
    const all: Served = { handler, loop, turns };
    served.set(kind, all);
    const useRedis = (): void => {
      if (served.get(kind) !== all) return;
      // In a context of its own: what takes tickets goes on for as long as the process.
      if (link.isThere()) all.worker ??= detached(() => createWorker(kind, all));
      turns.allGone();
      look(0);
    };
    link.onChange(useRedis);
    if (link.isThere()) useRedis();
  };

  const stop = async (kind: string): Promise<void> => {
    const all = served.get(kind);
    if (!all) return;
    const { loop, turns, worker } = all;
    await worker?.pause(true);
    await Promise.all([loop.stop(), turns.stop()]);
    // A Redis that is away keeps nobody from ending.
    const ending = Promise.resolve(worker?.close(!link.isThere()));
    await stopWithin(STOP_MARGIN_MS, ending);
    turns.allGone();
    // Work that is announced from now on is for other nodes.
    served.delete(kind);
    await queues.get(kind)?.tickets.flush();
  };

  return {
    announce(kind, group, at) {
      const { handler, loop, turns } = served.get(kind) ?? {};
      if (!handler || !loop || !turns) {
        if (link.isThere()) queueOf(kind).tickets.ask({ group: group ?? ANY_GROUP, slot: 0 });
      } else if (group !== null && link.isThere() && at <= handler.now()) {
        turns.announce(group);
        // True if a worker was given the ticket.
        loop.announce(at + LEFT_OVER_MS);
      } else loop.announce(at);
    },
    async pausedQueues(kinds) {
      const paused = await Promise.all(kinds.map(isPaused));
      return kinds.filter((_kind, at) => paused[at]).map((kind) => queueOf(kind).queue.name);
    },
    serve: open,
    async stop(kind) {
      await Promise.all((kind === undefined ? [...served.keys()] : [kind]).map(stop));
    },
    async close() {
      for (const { tickets } of queues.values()) await tickets.flush();
      link.close();
    },
  };
};
