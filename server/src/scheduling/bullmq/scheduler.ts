import { setTimeout as sleep } from 'node:timers/promises';
import type * as BullMQ from 'bullmq';
import type { Queue, Worker } from 'bullmq';
import type * as IORedis from 'ioredis';
import type { Redis, RedisOptions } from 'ioredis';
import type { Detached } from '../../database/connection';
import { createFaultLog } from '../../database/retry';
import { loadOptional } from '../../runtime/optional-package';
import { errorText } from '../../runtime/text';
import { Loop } from '../embedded-scheduler';
import { stopWithin } from '../../runtime/event-loop';
import { STOP_MARGIN_MS } from '../recorder';
import { SlotWorker } from '../slot-worker';
import type { GroupHandler, Scheduler, WorkerLog } from '../types';
import { describeMistyped, isWrongType, queueName, removeMistyped } from './mistyped-keys';
import { SlotTurns } from './slot-turns';
import {
  ANY_GROUP,
  LEFT_OVER_MS,
  LeftOverTickets,
  readTicketId,
  type Ticket,
  Tickets,
} from './tickets';

interface GroupTurnsOptions {
  name: string;
  handler: Pick<GroupHandler, 'now' | 'turns'>;
  taker: Pick<GroupHandler, 'takeTurn'>;
  ask(ticket: Ticket): void;
  /** Looks for due groups after this many milliseconds. */
  look(afterMs: number): void;
  logFault(what: string, error: unknown): void;
}

/** How long a group has its turn while others wait. */
const TURN_MS = 2000;
const RETRY_AFTER_ERROR_MS = 1000;
/** A look that finds a group due so soon after its turn is not trusted: its rows may be in a transaction. */
const QUIET_MS = 100;
/** The least time between two requests of a turn for a second node: the ticket may reach a node at work. */
const SHARE_EVERY_MS = 250;
/** For so long a look asks for no second ticket of a group: most have one, or a turn on another node. */
const TICKET_MS = 500;

interface Turn {
  slot: number;
  /** When the group should have its next turn; undefined while this one lasts. */
  next?: number | null;
}

interface GroupState {
  turn?: Turn;
  /** The group was announced during its turn, when its ticket could not be written. */
  again: boolean;
  /** It is to have a turn at a later time. */
  rest?: { slot: number; timer: NodeJS.Timeout };
  /** When its last turn ended, on a clock that only goes forward. */
  endedAt: number;
  /** When a look asked for it that has had no turn here since, on the same clock. */
  ticketAt: number;
}

/** The turns of a kind's groups on this node. Times wait here: a ticket that waits on Redis uses its writer's clock. */
export class GroupTurns {
  private readonly groups = new Map<number, GroupState>();
  private readonly running = new Set<Promise<void>>();
  /** Groups that wait for a turn without a ticket, the first one first. */
  private readonly queued = new Set<number>();
  private forgotAt = Number.NEGATIVE_INFINITY;
  private stopping = false;

  constructor(private readonly options: GroupTurnsOptions) {}

  announce(group: number): void {
    const state = this.groups.get(group);
    if (state?.rest) this.wake(group, state);
    else if (state?.turn) state.again = true;
    else this.options.ask({ group, slot: 0 });
  }

  /** Notes that a group is due; true if it depends on its ticket: it has no turn here and waits for none. */
  found(group: number): boolean {
    const state = this.stateOf(group);
    if (state.turn || state.rest) return false;
    const now = performance.now();
    const quiet = state.endedAt + QUIET_MS - now;
    if (quiet > 0) this.restFor(group, state, 0, quiet);
    else if (now - state.ticketAt < TICKET_MS) this.options.look(TICKET_MS);
    else {
      state.ticketAt = now;
      this.options.ask({ group, slot: 0 });
    }
    this.forget();
    return true;
  }

  /** Gives a group its turn without a ticket, once fewer groups than the maximum have one. Used while Redis is down. */
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

  /** The ticket is gone from Redis: a ticket with its id can be written only now. */
  gone({ group, slot }: Ticket): void {
    const state = this.groups.get(group);
    if (state?.turn?.slot === slot) this.endTurn(group, state);
  }

  /** As `gone`, for every turn that has ended: Redis has forgotten their tickets, or was away. */
  allGone(): void {
    for (const [group, state] of this.groups) {
      state.ticketAt = Number.NEGATIVE_INFINITY;
      this.endTurn(group, state);
    }
  }

  /** Ends all turns and gives their groups to other nodes. */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const [group, state] of this.groups) this.wake(group, state);
    await Promise.all(this.running);
  }

  private stateOf(group: number): GroupState {
    const never = Number.NEGATIVE_INFINITY;
    const fresh = { again: false, endedAt: never, ticketAt: never };
    const state: GroupState = this.groups.get(group) ?? fresh;
    this.groups.set(group, state);
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
    state.rest = { slot, timer: setTimeout(() => this.wake(group, state), delay).unref() };
  }

  private forget(): void {
    const now = performance.now();
    if (this.groups.size <= 2 * this.options.handler.turns.groups) return;
    if (now - this.forgotAt < TICKET_MS) return;
    this.forgotAt = now;
    for (const [group, { turn, rest, endedAt, ticketAt }] of this.groups) {
      const isKnown = now - endedAt <= QUIET_MS || now - ticketAt <= TICKET_MS;
      if (!turn && !rest && !isKnown) this.groups.delete(group);
    }
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
    const { name, handler, taker, ask, logFault } = this.options;
    const until = performance.now() + TURN_MS;
    let sharedAt = Number.NEGATIVE_INFINITY;
    try {
      const next = await taker.takeTurn?.(group, {
        isOver: () => this.stopping || performance.now() > until,
        share() {
          const now = performance.now();
          if (slot + 1 >= handler.turns.nodes || now - sharedAt < SHARE_EVERY_MS) return;
          sharedAt = now;
          ask({ group, slot: slot + 1 });
        },
      });
      turn.next = next ?? null;
    } catch (error) {
      logFault(`${name}: a turn failed`, error);
      turn.next = handler.now() + RETRY_AFTER_ERROR_MS;
    }
  }

  /** @param ended is called at its end, before another group begins in its place */
  private start(ticket: Ticket, state: GroupState, ended = () => {}): Promise<void> {
    clearTimeout(state.rest?.timer);
    state.rest = undefined;
    state.turn = { slot: ticket.slot };
    state.ticketAt = Number.NEGATIVE_INFINITY;
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
      if (!state.turn) void this.start({ group, slot: 0 }, state, () => this.endTurn(group, state));
    }
  }
}

/** Loads this engine's optional packages; throws an Error that says what to install, which stops the boot. */
export const loadBullmq = async () => {
  const names = ['bullmq', 'ioredis'] as const;
  const [bullmq, ioredis] = await loadOptional('scheduler.engine is "bullmq"', names);
  const { Queue, Worker } = bullmq as typeof BullMQ;
  const { Redis } = ioredis as typeof IORedis;
  return { Queue, Worker, Redis };
};

export type BullmqPackages = Awaited<ReturnType<typeof loadBullmq>>;

type LinkLog = Record<'warn' | 'info', (message: string) => void>;

const CONNECT_TIMEOUT_MS = 2000;
/** Redis counts as hanging if a command takes longer. */
const COMMAND_TIMEOUT_MS = 2000;
const PROBE_EVERY_MS = 1000;
/** A process that cannot tell by then if Redis is up continues without it. */
const KNOWN_AFTER_MS = 3000;
/** The wait is counted in steps: a process that is busy while it boots reads late what Redis answered. */
const STEP_MS = 100;

/** Connects to Redis and watches it. Logs a loss and a recovery once each, however long it takes, and nothing else. */
export class RedisLink {
  /** For what must not wait: while Redis is away, each command fails at once. */
  readonly commands: Redis;
  /** For workers, whose commands wait until Redis is back. */
  readonly workers: Redis;
  /** Resolves when it is known for the first time whether Redis is there. */
  readonly known: Promise<void>;
  private readonly where: string;
  private readonly listeners: (() => void)[] = [];
  private state: 'unknown' | 'there' | 'away' = 'unknown';
  private closed = false;
  private reason: unknown = new Error('no answer');
  private probe: NodeJS.Timeout | undefined;

  /** @param redis a `redis://` URL or connection options, docs/several-nodes.md#redis */
  constructor(
    { Redis: Client }: Pick<BullmqPackages, 'Redis'>,
    redis: string | RedisOptions,
    private readonly prefix: string,
    private readonly log: LinkLog
  ) {
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
    this.commands = connect({ enableOfflineQueue: false, commandTimeout: COMMAND_TIMEOUT_MS });
    this.workers = connect({});
    this.commands.on('ready', () => {
      this.reason = new Error('the connection was closed');
      void this.tryOut();
    });
    this.commands.on('error', (error: unknown) => {
      this.reason = error;
    });
    this.commands.on('close', () => this.change('away'));
    // The other connection has the same to say.
    this.workers.on('error', () => {});
    const { host, port, path } = this.commands.options;
    this.where = path ?? `${host}:${port}`;
    this.known = this.becomeKnown();
  }

  isThere(): boolean {
    return this.state === 'there';
  }

  /** Called when Redis refuses something, even while it is connected. */
  refused(error: unknown): void {
    if (!this.isThere()) return;
    this.reason = error;
    this.change('away');
    this.tryLater();
  }

  /** Calls the listener whenever Redis has gone away or come back. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.probe);
    this.commands.disconnect();
    this.workers.disconnect();
  }

  private async becomeKnown(): Promise<void> {
    const isUnknown = () => this.state === 'unknown' && !this.closed;
    for (let waited = 0; waited < KNOWN_AFTER_MS && isUnknown(); waited += STEP_MS)
      await sleep(STEP_MS, undefined, { ref: false });
    // One that wants a password, for instance, neither becomes ready nor closes the connection.
    if (isUnknown()) this.change('away');
  }

  private change(next: 'there' | 'away'): void {
    if (this.closed || this.state === next) return;
    const isFirst = this.state === 'unknown';
    this.state = next;
    if (next === 'away') {
      this.log.warn(
        `switchboard: Redis at ${this.where} is unreachable (${errorText(this.reason)}). This process continues with the embedded scheduler until Redis is back.`
      );
    } else if (!isFirst) {
      this.log.info(
        `switchboard: Redis at ${this.where} is back, and nodes share their work over it again.`
      );
    }
    for (const listener of this.listeners) listener();
  }

  /** An open connection proves little: Redis may be full or read-only. */
  private async tryOut(): Promise<void> {
    clearTimeout(this.probe);
    if (this.closed) return;
    try {
      await this.commands.set(`${this.prefix}:probe`, '1', 'PX', PROBE_EVERY_MS);
      this.change('there');
    } catch (error) {
      this.reason = error;
      this.change('away');
      // A connection that has closed tells by itself when it is open again.
      if (this.commands.status === 'ready') this.tryLater();
    }
  }

  private tryLater(): void {
    this.probe = setTimeout(() => void this.tryOut(), PROBE_EVERY_MS).unref();
  }
}

interface BullmqSchedulerOptions {
  packages: BullmqPackages;
  redis: string | RedisOptions;
  /** Every key in Redis begins with it. */
  prefix: string;
  /** Distinguishes this database's tickets from others on the same Redis. */
  site(): string;
  log: WorkerLog & LinkLog;
  /** Gives a look an asynchronous context of its own, outside of what announced it. */
  detached: Detached;
}

/** How long a dead node's ticket stays locked, in milliseconds. */
const LOCK_MS = 5000;
const STALLED_EVERY_MS = 2500;
const RETRY_MS = 500;
/** BullMQ keeps a stream of ticket events, which is not used here. */
const EVENTS_KEPT = 100;
/** Tickets that are handed on again and again are no failure of anybody's. */
const NEVER_TOO_OFTEN = 1_000_000;
/** How often the log repeats that a queue is paused, a ticket was left over, or a key was misused. */
const WARN_EVERY_MS = 600_000;
/** Keys that hold something else are looked for no more often than this. */
const REPAIR_EVERY_MS = 1000;
/** A lock that was lost, or a ticket that is gone, is what a flushed Redis looks like: nothing is lost. */
const LOST_TICKET = /lock|missing key/i;

interface Served {
  handler: GroupHandler;
  loop: Loop;
  turns: GroupTurns;
  worker?: Worker;
}

class TicketedWork {
  readonly queue: Queue;
  readonly tickets: Tickets;
  private readonly leftOver: LeftOverTickets;
  /** Null: this node does not work on it, or no longer. */
  private served: Served | null = null;
  /** True if the queue was paused at the last look. */
  private paused = false;
  /** When its keys were looked at last, on a clock that only goes forward. */
  private repairedAt = Number.NEGATIVE_INFINITY;
  /** True if there was nothing to remove then. */
  private isUnrepaired = false;
  /** When each message was logged last, by a monotonic clock. */
  private readonly saidAt = new Map<string, number>();

  constructor(
    private readonly kind: string,
    private readonly options: BullmqSchedulerOptions,
    private readonly link: RedisLink,
    private readonly logFault: (what: string, error: unknown) => void
  ) {
    this.queue = new options.packages.Queue(queueName(kind, options.site()), {
      connection: link.commands,
      prefix: options.prefix,
      skipWaitingForReady: true,
      skipVersionCheck: true,
      streams: { events: { maxLen: EVENTS_KEPT } },
    });
    this.queue.on('error', () => {});
    this.tickets = new Tickets(
      kind,
      this.queue,
      (error, failed) => void this.refused(error, failed)
    );
    this.leftOver = new LeftOverTickets(kind, this.queue, link.commands);
  }

  announce(group: number | null, at: number): void {
    const { link, served, tickets } = this;
    if (!served) {
      if (link.isThere()) tickets.ask({ group: group ?? ANY_GROUP, slot: 0 });
    } else if (group !== null && link.isThere() && at <= served.handler.now()) {
      served.turns.announce(group);
      // True if a worker was given the ticket.
      served.loop.announce(at + LEFT_OVER_MS);
    } else served.loop.announce(at);
  }

  async isPaused(): Promise<boolean> {
    return this.link.isThere() && this.queue.isPaused().catch(() => false);
  }

  serve(handler: GroupHandler): void {
    const { kind, link, logFault, tickets } = this;
    const { detached, log } = this.options;
    const turns = new GroupTurns({
      name: kind,
      handler,
      taker: handler instanceof SlotWorker ? new SlotTurns(handler) : handler,
      // A paused queue gives no ticket to anybody.
      ask: (ticket) => (this.paused ? turns.begin(ticket.group) : tickets.ask(ticket)),
      look: (afterMs) => loop.announce(handler.now() + afterMs),
      logFault,
    });
    const loop = new Loop(
      kind,
      {
        pollMs: handler.pollMs,
        now: () => handler.now(),
        stop: () => handler.stop(),
        dueTimes: async () => {
          this.paused = await this.isPaused();
          return handler.dueTimes();
        },
        work: async (groups) => {
          await link.known;
          if (!link.isThere()) {
            await handler.work(groups);
            return;
          }
          const ticketed = groups.filter((group) => turns.found(group));
          if (this.paused) {
            this.warn(
              'paused',
              `the queue ${this.queue.name} on Redis is paused. This process works on without it, from the database. Resume the queue where it was paused, for example in a dashboard.`
            );
          } else await this.workOnLeftOver(ticketed, served);
        },
      },
      log,
      detached
    );
    const served: Served = { handler, loop, turns };
    this.served = served;
    const useRedis = (): void => {
      if (this.served !== served) return;
      // In a context of its own, because the worker of tickets runs as long as the process.
      if (link.isThere()) served.worker ??= detached(() => this.createWorker(served));
      turns.allGone();
      loop.announce(handler.now());
    };
    link.onChange(useRedis);
    if (link.isThere()) useRedis();
  }

  async stop(): Promise<void> {
    if (!this.served) return;
    const { loop, turns, worker } = this.served;
    await worker?.pause(true);
    await Promise.all([loop.stop(), turns.stop()]);
    // An unreachable Redis does not delay the end of the process.
    await stopWithin(STOP_MARGIN_MS, Promise.resolve(worker?.close(!this.link.isThere())));
    turns.allGone();
    // Work that is announced from now on is for other nodes.
    this.served = null;
    await this.tickets.flush();
  }

  private warn(what: 'left over' | 'paused' | 'mistyped', message: string): void {
    const now = performance.now();
    if (now - (this.saidAt.get(what) ?? Number.NEGATIVE_INFINITY) < WARN_EVERY_MS) return;
    this.saidAt.set(what, now);
    this.options.log.warn(`${this.kind}: ${message}`);
  }

  /** Removes foreign values from the queue's keys, which prevent tickets; true if there were any. */
  private async repair(cause: unknown): Promise<boolean> {
    const { kind, link, logFault } = this;
    const { prefix } = this.options;
    const now = performance.now();
    if (now - this.repairedAt < REPAIR_EVERY_MS) return false;
    this.repairedAt = now;
    try {
      const removed = await removeMistyped(link.commands, prefix, this.queue.name);
      // Another node may have removed it; if it stays, it is reported again.
      if (removed.length === 0 && this.isUnrepaired)
        logFault(`${kind}: a ticket could not be written or given out`, cause);
      this.isUnrepaired = removed.length === 0;
      if (this.isUnrepaired) return false;
      this.warn(
        'mistyped',
        `another program wrote to ${describeMistyped(removed)} on Redis, so no ticket of this queue could be written or read. The keys were removed, and this process worked from the database. Let no other program and no user write keys that begin with "${prefix}:".`
      );
      this.served?.turns.allGone();
      this.served?.loop.announce(this.served.handler.now());
      return true;
    } catch (error) {
      link.refused(error);
      return false;
    }
  }

  /** Redis may have refused tickets: a node that serves their groups works on them now, others write them again. */
  private async refused(error: unknown, failed: readonly Ticket[] = []): Promise<void> {
    if (!isWrongType(error)) {
      this.link.refused(error);
      return;
    }
    const turns = this.served?.turns;
    if (turns) for (const { group, slot } of failed) if (slot === 0) turns.begin(group);
    if ((await this.repair(error)) && !turns) for (const ticket of failed) this.tickets.ask(ticket);
  }

  private async workOnLeftOver(due: readonly number[], { turns, loop, handler }: Served) {
    const { leftOver } = this;
    try {
      for (const group of await leftOver.among(due)) {
        const key = await leftOver.remove(group);
        this.warn(
          'left over',
          `the ticket ${key} was left over on Redis, so its work was not started. The ticket was removed, and this process does the work now. Do not delete single keys in a dashboard, and set maxmemory-policy to noeviction.`
        );
        turns.begin(group);
      }
      if (leftOver.isWatching()) loop.announce(handler.now() + LEFT_OVER_MS);
    } catch (error) {
      await this.refused(error);
    }
  }

  private createWorker({ handler, loop, turns }: Served): Worker {
    const { kind, link } = this;
    const worker = new this.options.packages.Worker(
      this.queue.name,
      async ({ id }) => {
        const ticket = readTicketId(id);
        if (ticket?.group === ANY_GROUP) loop.announce(handler.now());
        else if (ticket) await turns.take(ticket);
      },
      {
        connection: link.workers,
        prefix: this.options.prefix,
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
      if (isWrongType(error)) void this.repair(error);
      else if (link.isThere() && !LOST_TICKET.test(error.message)) {
        this.logFault(`${kind}: a ticket could not be worked on`, error);
      }
    });
    return worker;
  }
}

/**
 * The engine for nodes that share Redis. A ticket names a group that should have a turn, and any free node takes it.
 * Only the database knows due rows: each node's embedded loop looks for them, writes tickets while Redis is up, and
 * works on the groups itself while it is down. No node leads, and a lost or doubled ticket only costs time.
 */
export const createBullmqScheduler = (options: BullmqSchedulerOptions): Scheduler => {
  const { packages, redis, prefix, log } = options;
  const link = new RedisLink(packages, redis, prefix, log);
  const logFault = createFaultLog(log);
  const kinds = new Map<string, TicketedWork>();
  const of = (kind: string): TicketedWork => {
    const known = kinds.get(kind) ?? new TicketedWork(kind, options, link, logFault);
    kinds.set(kind, known);
    return known;
  };
  return {
    announce(kind, group, at) {
      // A queue is opened to write to it.
      if (kinds.has(kind) || link.isThere()) of(kind).announce(group, at);
    },
    async pausedQueues(names) {
      const paused = await Promise.all(names.map((kind) => of(kind).isPaused()));
      return names.filter((_kind, at) => paused[at]).map((kind) => of(kind).queue.name);
    },
    serve: (kind, handler) => of(kind).serve(handler),
    async stop(kind) {
      const ending = kind === undefined ? [...kinds.values()] : [kinds.get(kind)];
      await Promise.all(ending.map((one) => one?.stop()));
    },
    async close() {
      for (const { tickets } of kinds.values()) await tickets.flush();
      link.close();
    },
  };
};
