import { setTimeout as sleep } from 'node:timers/promises';
import type { Detached } from '../database/connection';
import { createFaultLog } from '../database/retry';
import { BackgroundWork, nextTurn } from '../runtime/event-loop';
import type { GroupHandler, Scheduler, WorkerLog } from './types';

const RETRY_AFTER_ERROR_MS = 1000;
/** After a look that took longer than this the next one waits as long as it took, but no longer than that. */
const LONG_LOOK_MS = 50;
const LONGEST_REST_MS = 250;

/** Looks for due groups of a kind: when announced (named ones at once) or due, and every `pollMs` while work waits. */
export class Loop {
  private readonly looks: BackgroundWork;
  private stopped = false;
  private timer: NodeJS.Timeout | undefined;
  private wakesAt = Number.POSITIVE_INFINITY;
  /** Groups that were announced by name since the last look; null: any may have work. */
  private announced: Set<number> | null = new Set();

  constructor(
    name: string,
    private readonly handler: Omit<GroupHandler, 'turns' | 'takeTurn'>,
    log: WorkerLog,
    detached: Detached
  ) {
    const logFault = createFaultLog(log);
    this.looks = new BackgroundWork({
      detached,
      pass: () => this.lookAtAnnounced(),
      failed: (error) => {
        // The host may have closed the database by then.
        if (this.stopped) return;
        logFault(`${name}: polling for work failed`, error);
        this.sleepUntil(handler.now() + RETRY_AFTER_ERROR_MS);
      },
    });
  }

  /** @param group the one that may have work; any by default */
  announce(at: number, group: number | null = null): void {
    if (at <= this.handler.now()) this.look(group);
    else if (at < this.wakesAt) this.sleepUntil(at);
  }

  stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    // A look that hangs in the database does not delay the stop.
    void this.looks.stop();
    return this.handler.stop();
  }

  private look(group: number | null): void {
    if (group === null) {
      this.wakesAt = Number.POSITIVE_INFINITY;
      this.announced = null;
    } else this.announced?.add(group);
    this.looks.wake();
  }

  private async lookAtAnnounced(): Promise<void> {
    // So that many announcements of one tick are one look.
    await nextTurn();
    const { announced } = this;
    if (announced?.size === 0) return;
    this.announced = new Set();
    const started = performance.now();
    // Work that was just committed is in the groups that were announced: nothing else has to be asked for.
    if (announced) await this.handler.work([...announced]);
    else await this.lookAtAll();
    const took = performance.now() - started;
    const isMore = this.announced === null || this.announced.size > 0;
    // A look over thousands of groups is expensive: half of the time is left to what was claimed.
    if (isMore && took > LONG_LOOK_MS) await sleep(Math.min(took, LONGEST_REST_MS));
  }

  private async lookAtAll(): Promise<void> {
    const { handler } = this;
    const due = await handler.dueTimes();
    const at = handler.now();
    // The group that has waited longest first, so that what a node can do at once is shared in turn.
    const inOrder = [...due].sort((a, b) => a[1] - b[1]);
    const dueNow = inOrder.filter(([, time]) => time <= at).map(([group]) => group);
    if (dueNow.length > 0) await handler.work(dueNow);
    const [, later = Number.POSITIVE_INFINITY] = inOrder[dueNow.length] ?? [];
    if (later < this.wakesAt) this.sleepUntil(later);
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
 * The in-process engine: timers and the stores' due times. Any number of nodes may run it, as the store leases rows.
 * @param detached gives a look its own asynchronous context, outside of the announcer's
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
    // Timers end with `stop`.
    close: async () => {},
  };
};
