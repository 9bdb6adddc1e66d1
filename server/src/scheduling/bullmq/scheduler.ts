import type { Queue, Worker } from 'bullmq';
import type { RedisOptions } from 'ioredis';
import type { Detached } from '../../database/connection';
import { createFaultLog } from '../../database/errors/fault-log';
import { createLoop, type Loop } from '../embedded-scheduler';
import { STOP_MARGIN_MS, stopWithin } from '../stop-within';
import type { GroupHandler, Scheduler, WorkerLog } from '../types';
import { createGroupTurns, type GroupTurns } from './group-turns';
import type { BullmqPackages } from './packages';
import { createLeftOverTickets, LEFT_OVER_MS, type LeftOverTickets } from './left-over-tickets';
import { describeMistyped, isWrongType, removeMistyped } from './mistyped-keys';
import { queueName } from './queue-keys';
import { connectRedis, type LinkLog } from './redis-link';
import { ANY_GROUP, createTickets, readTicketId, type Ticket, type Tickets } from './tickets';

export interface BullmqSchedulerOptions {
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

/** How long a dead node's ticket is in nobody's hands, in milliseconds. */
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
const MEND_EVERY_MS = 1000;
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
  mendedAt: number;
  /** Whether there was nothing to remove then. */
  isUnmended: boolean;
}

/**
 * The engine that nodes share over Redis. A ticket there says which group should have a turn, and
 * whichever node is free takes it. What is due is known to the database alone: each node looks for it
 * with the loop of the embedded engine, which writes tickets while Redis is there and works on the
 * groups itself while it is away. So no node leads, and a ticket that is lost or doubled costs time.
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
        tickets: createTickets(kind, queue, (error, asked) => void refused(kind, error, asked)),
        leftOver: createLeftOverTickets(kind, queue, link.commands),
        mendedAt: Number.NEGATIVE_INFINITY,
        isUnmended: false,
      };
      queues.set(kind, known);
    }
    return known;
  };

  /**
   * Removes from a queue's keys what somebody else wrote there, which keeps tickets from being written.
   * @returns whether there was anything
   */
  const mend = async (name: string, cause: unknown): Promise<boolean> => {
    const known = queueOf(name);
    const now = performance.now();
    if (now - known.mendedAt < MEND_EVERY_MS) return false;
    known.mendedAt = now;
    try {
      const removed = await removeMistyped(link.commands, prefix, known.queue.name);
      if (removed.length === 0) {
        // Another node may have removed it; one that stays says so again.
        if (known.isUnmended)
          logFault(`${name}: a ticket could not be written or given out`, cause);
        known.isUnmended = true;
        return false;
      }
      known.isUnmended = false;
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
    asked: readonly Ticket[] = []
  ): Promise<void> => {
    if (!isWrongType(error)) {
      link.refused(error);
      return;
    }
    const { turns } = served.get(kind) ?? {};
    if (turns) for (const { group, slot } of asked) if (slot === 0) turns.begin(group);
    if ((await mend(kind, error)) && !turns)
      for (const ticket of asked) queueOf(kind).tickets.ask(ticket);
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
      if (isWrongType(error)) void mend(name, error);
      else if (link.isThere() && !LOST_TICKET.test(error.message)) {
        logFault(`${name}: a ticket could not be worked on`, error);
      }
    });
    return worker;
  };

  const open = (kind: string, handler: GroupHandler): void => {
    const { queue, tickets, leftOver } = queueOf(kind);
    const look = (afterMs: number) => loop.announce(handler.now() + afterMs);
    let paused = false;
    const turns = createGroupTurns({
      name: kind,
      handler,
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
    const loop = createLoop(
      kind,
      {
        ...handler,
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
    // What is announced from now on is for other nodes.
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
        // Whether somebody was given the ticket.
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
