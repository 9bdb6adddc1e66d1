import type { Detached } from '../database/connection';
import { createFaultLog } from '../database/retry';
import type { GroupHandler, Scheduler, WorkerLog } from './types';

const RETRY_AFTER_ERROR_MS = 1000;
/** After a look that took longer than this the next one waits as long as it took, but no longer than that. */
const LONG_LOOK_MS = 50;
const LONGEST_REST_MS = 250;

const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

export interface Loop {
  /** @param group the one that may have work; any by default */
  announce(at: number, group?: number | null): void;
  stop(): Promise<void>;
}

/**
 * Looks for due groups of one kind: when somebody announces work, when the next known work is due,
 * and every `pollMs` while work waits. A group that is announced by name is worked on at once.
 */
export const createLoop = (
  name: string,
  handler: Omit<GroupHandler, 'turns'>,
  log: WorkerLog,
  detached: Detached
): Loop => {
  const logFault = createFaultLog(log, Date.now);
  let stopped = false;
  let looking = false;
  let lookAgain = false;
  let timer: NodeJS.Timeout | undefined;
  let wakesAt = Number.POSITIVE_INFINITY;
  /** The earliest time that was announced during a look, which may have asked for due times before. */
  let announcedFor = Number.POSITIVE_INFINITY;
  /** Groups that were announced by name since the last look; null: any may have work. */
  let announced: Set<number> | null = new Set();

  const sleepUntil = (time: number): void => {
    clearTimeout(timer);
    if (stopped) return;
    const delay = Math.min(Math.max(time - handler.now(), 1), handler.pollMs);
    wakesAt = time;
    timer = setTimeout(() => look(null), delay);
    timer.unref();
  };

  /** Until that time or the earliest that was announced meanwhile, unless it looks before. */
  const sleepUntilAnnounced = (time: number): void => {
    const next = Math.min(time, announcedFor);
    announcedFor = Number.POSITIVE_INFINITY;
    if (next < wakesAt) sleepUntil(next);
  };

  /** The group that has waited longest first, so that what a node can do at once is shared in turn. */
  const workOnDue = async (): Promise<void> => {
    const due = await handler.dueTimes();
    const at = handler.now();
    let next = Number.POSITIVE_INFINITY;
    const inOrder = [...due].sort((a, b) => a[1] - b[1]);
    const first = inOrder.find(([, time]) => time > at);
    if (first) next = first[1];
    const dueNow = inOrder.filter(([, time]) => time <= at).map(([group]) => group);
    const again = dueNow.length > 0 ? await handler.work(dueNow) : null;
    if (again !== null) next = Math.min(next, again);
    handler.looked?.(due);
    sleepUntilAnnounced(next);
  };

  /** Who has just committed work knows where it is: nothing else has to be asked for. */
  const workOnNamed = async (groups: ReadonlySet<number>): Promise<void> => {
    const again = await handler.work([...groups]);
    sleepUntilAnnounced(again ?? Number.POSITIVE_INFINITY);
  };

  const lookUntilQuiet = async (): Promise<void> => {
    try {
      do {
        lookAgain = false;
        const started = performance.now();
        const named = announced;
        announced = new Set();
        await (named ? workOnNamed(named) : workOnDue());
        const took = performance.now() - started;
        // Over thousands of groups a look is dear: half of the time belongs to what was claimed.
        if (lookAgain && took > LONG_LOOK_MS) await sleep(Math.min(took, LONGEST_REST_MS));
      } while (lookAgain && !stopped);
    } catch (error) {
      // The host may have closed the database by then.
      if (stopped) return;
      logFault(`${name}: looking for work failed`, error);
      sleepUntil(handler.now() + RETRY_AFTER_ERROR_MS);
    } finally {
      looking = false;
    }
  };

  function look(group: number | null): void {
    if (stopped) return;
    if (group === null) {
      wakesAt = Number.POSITIVE_INFINITY;
      announced = null;
    } else announced?.add(group);
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    // A macrotask later, so that many announcements of one tick are one look.
    detached(() => setImmediate(() => void lookUntilQuiet()));
  }

  return {
    announce(at, group = null) {
      if (at <= handler.now()) look(group);
      else if (looking) announcedFor = Math.min(announcedFor, at);
      else if (at < wakesAt) sleepUntil(at);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
      return handler.stop();
    },
  };
};

/**
 * The engine within the site's own process: timers and the stores' own due times. Any number of nodes
 * may run it beside each other, because what they work on is leased by the store.
 * @param detached gives a look an asynchronous context of its own, outside of what announced it
 */
export const createEmbeddedScheduler = (log: WorkerLog, detached: Detached): Scheduler => {
  const loops = new Map<string, Loop>();
  return {
    announce: (kind, group, at) => loops.get(kind)?.announce(at, group),
    serve(kind, handler) {
      loops.set(kind, createLoop(kind, handler, log, detached));
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
