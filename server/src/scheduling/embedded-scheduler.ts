import { setTimeout as sleep } from 'node:timers/promises';
import type { Detached } from '../database/connection';
import { createFaultLog } from '../database/retry';
import type { GroupHandler, Scheduler, WorkerLog } from './types';

const RETRY_AFTER_ERROR_MS = 1000;
/** After a look that took longer than this the next one waits as long as it took, but no longer than that. */
const LONG_LOOK_MS = 50;
const LONGEST_REST_MS = 250;

/**
 * Looks for due groups of one kind: when somebody announces work, when the next known work is due,
 * and every `pollMs` while work waits. A group that is announced by name is worked on at once.
 */
export class Loop {
  private readonly logFault: (what: string, error: unknown) => void;
  private stopped = false;
  private looking = false;
  private lookAgain = false;
  private timer: NodeJS.Timeout | undefined;
  private wakesAt = Number.POSITIVE_INFINITY;
  /** The earliest time that was announced during a look, which may have asked for due times before. */
  private announcedFor = Number.POSITIVE_INFINITY;
  /** Groups that were announced by name since the last look; null: any may have work. */
  private announced: Set<number> | null = new Set();

  constructor(
    private readonly name: string,
    private readonly handler: Omit<GroupHandler, 'turns'>,
    log: WorkerLog,
    private readonly detached: Detached
  ) {
    this.logFault = createFaultLog(log, Date.now);
  }

  /** @param group the one that may have work; any by default */
  announce(at: number, group: number | null = null): void {
    if (at <= this.handler.now()) this.look(group);
    else if (this.looking) this.announcedFor = Math.min(this.announcedFor, at);
    else if (at < this.wakesAt) this.sleepUntil(at);
  }

  stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    return this.handler.stop();
  }

  private look(group: number | null): void {
    if (this.stopped) return;
    if (group === null) {
      this.wakesAt = Number.POSITIVE_INFINITY;
      this.announced = null;
    } else this.announced?.add(group);
    if (this.looking) {
      this.lookAgain = true;
      return;
    }
    this.looking = true;
    // A macrotask later, so that many announcements of one tick are one look.
    this.detached(() => setImmediate(() => void this.lookUntilQuiet()));
  }

  private async lookUntilQuiet(): Promise<void> {
    try {
      do {
        this.lookAgain = false;
        const started = performance.now();
        const next = Math.min(await this.lookOnce(), this.announcedFor);
        this.announcedFor = Number.POSITIVE_INFINITY;
        if (next < this.wakesAt) this.sleepUntil(next);
        const took = performance.now() - started;
        // A look over thousands of groups is expensive: half of the time is left to what was claimed.
        if (this.lookAgain && took > LONG_LOOK_MS) await sleep(Math.min(took, LONGEST_REST_MS));
      } while (this.lookAgain && !this.stopped);
    } catch (error) {
      // The host may have closed the database by then.
      if (this.stopped) return;
      this.logFault(`${this.name}: looking for work failed`, error);
      this.sleepUntil(this.handler.now() + RETRY_AFTER_ERROR_MS);
    } finally {
      this.looking = false;
    }
  }

  /** @returns when to look again */
  private async lookOnce(): Promise<number> {
    const { announced: named, handler } = this;
    this.announced = new Set();
    // Work that was just committed is in the groups that were announced: nothing else has to be asked for.
    if (named) return (await handler.work([...named])) ?? Number.POSITIVE_INFINITY;
    const due = await handler.dueTimes();
    const at = handler.now();
    // The group that has waited longest first, so that what a node can do at once is shared in turn.
    const inOrder = [...due].sort((a, b) => a[1] - b[1]);
    const dueNow = inOrder.filter(([, time]) => time <= at).map(([group]) => group);
    const again = dueNow.length > 0 ? await handler.work(dueNow) : null;
    handler.looked?.(due);
    const [, later] = inOrder[dueNow.length] ?? [];
    return Math.min(later ?? Number.POSITIVE_INFINITY, again ?? Number.POSITIVE_INFINITY);
  }

  private sleepUntil(time: number): void {
    clearTimeout(this.timer);
    if (this.stopped) return;
    const delay = Math.min(Math.max(time - this.handler.now(), 1), this.handler.pollMs);
    this.wakesAt = time;
    this.timer = setTimeout(() => this.look(null), delay).unref();
  }
}

/**
 * The engine within the site's own process: timers and the stores' own due times. Any number of nodes may
 * run it at the same time, because the store leases the rows.
 * @param detached gives a look an asynchronous context of its own, outside of what announced it
 */
export const createEmbeddedScheduler = (log: WorkerLog, detached: Detached): Scheduler => {
  const loops = new Map<string, Loop>();
  return {
    announce: (kind, group, at) => loops.get(kind)?.announce(at, group),
    serve(kind, handler) {
      loops.set(kind, new Loop(kind, handler, log, detached));
    },
    pausedQueues: async () => [],
    async stop(kind) {
      const ending = kind === undefined ? [...loops.keys()] : [kind];
      await Promise.all(ending.map((one) => loops.get(one)?.stop()));
    },
    // There is nothing but timers, which end with `stop`.
    close: async () => {},
  };
};
