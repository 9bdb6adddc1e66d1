import { errorText } from '../error-text';
import type { Detached } from '../database/connection';
import { GroupSlots } from './group-slots';
import type { Claimed, WorkQueue } from './types';

export interface WorkerLog {
  error(message: string): void;
}

export interface WorkerOptions<Outcome> {
  name: string;
  queue: WorkQueue;
  log: WorkerLog;
  detached: Detached;
  /** Rows under way at once on this node. */
  concurrency: number;
  /** Rows under way at once of one group on this node. */
  concurrencyPerGroup: number;
  /** How much of a lease must be left for a row to be started; else it is left to lapse. */
  reserveMs: number;
  /** Look for work at least this often while a timer for due work is set. */
  maxSleepMs: number;
  /** Does the work of one row. `null`: nothing to record, the row is left to its lease. */
  perform(claimed: Claimed): Promise<Outcome | null>;
  /** Whether an outcome speaks for its group: a failing group gets fewer slots until it recovers. */
  healthy(outcome: Outcome): boolean;
  /** Records outcomes, in one transaction. Called with what has gathered since the last call. */
  record(outcomes: readonly Outcome[]): Promise<void>;
  now?: () => number;
}

export interface Worker {
  /** Says that there may be work. Cheap, never throws, never waits; safe inside a transaction's commit. */
  wake(): void;
  /** Takes no more work and resolves when what is under way has been done and recorded. */
  stop(): Promise<void>;
}

const RECORD_AT_ONCE = 200;
const BACKLOG_LIMIT = 1000;
/**
 * The least time between two recordings. A commit is the dearest part of a row; a busy node pays it
 * for all that ended meanwhile together. The first outcome after a pause is recorded at once.
 */
const GATHER_MS = 25;
const RETRY_AFTER_ERROR_MS = 1000;

/**
 * Keeps a node's hands full: claims due rows group by group, performs them side by side, records
 * their outcomes in batches. One instance a kind of work.
 */
export const createWorker = <Outcome>(options: WorkerOptions<Outcome>): Worker => {
  const { queue, log, detached, now = Date.now } = options;
  const slots = new GroupSlots(options.concurrency, options.concurrencyPerGroup);
  const backlog: Outcome[] = [];
  const idle: (() => void)[] = [];
  /** Leased, but given back by `stop`: they would otherwise sit through their leases. */
  const unstarted: Claimed[] = [];
  let stopping = false;
  let looking = false;
  let lookAgain = false;
  let recording = false;
  let pressed = false;
  let timer: NodeJS.Timeout | undefined;
  let lastRecording = Number.NEGATIVE_INFINITY;
  let startedThisTurn = false;

  const sleepUntil = (time: number): void => {
    clearTimeout(timer);
    if (stopping) return;
    const delay = Math.min(Math.max(time - now(), 1), options.maxSleepMs);
    timer = setTimeout(wake, delay);
    timer.unref();
  };

  const settleIdle = (): void => {
    if (slots.busy > 0 || looking || recording || backlog.length > 0) return;
    for (const resolve of idle.splice(0)) resolve();
  };

  const gather = async (): Promise<void> => {
    const pause = lastRecording + GATHER_MS - performance.now();
    if (pause > 0 && backlog.length < RECORD_AT_ONCE && !stopping) {
      await new Promise((resolve) => {
        setTimeout(resolve, pause);
      });
    }
    lastRecording = performance.now();
  };

  const recordBacklog = async (): Promise<void> => {
    if (recording) return;
    recording = true;
    try {
      while (backlog.length > 0) {
        await gather();
        const batch = backlog.splice(0, RECORD_AT_ONCE);
        try {
          await options.record(batch);
        } catch (error) {
          // The rows keep their leases and come back by themselves: at least once.
          log.error(
            `${options.name}: ${batch.length} outcomes could not be recorded: ${errorText(error)}`
          );
        }
      }
    } finally {
      recording = false;
      if (pressed) {
        pressed = false;
        wake();
      }
      settleIdle();
    }
  };

  const run = async (claimed: Claimed): Promise<void> => {
    let healthy: boolean | null = null;
    try {
      const outcome = await options.perform(claimed);
      if (outcome !== null) {
        healthy = options.healthy(outcome);
        backlog.push(outcome);
      }
    } catch (error) {
      healthy = false;
      log.error(`${options.name}: row ${claimed.id} could not be worked on: ${errorText(error)}`);
    }
    slots.finish(claimed.group, healthy);
    start();
    void recordBacklog();
    if (slots.wantsMore(claimed.group)) wake();
    settleIdle();
  };

  const nextTurn = (): void => {
    startedThisTurn = false;
    start();
  };

  /**
   * Starts what is claimed and has a slot, one row a turn of the event loop, so that the site's own
   * requests are served in between. Goes on until nothing more can start: a row that waited through
   * its lease gives its slot back at once, and nobody else would offer it to the next one.
   */
  const start = (): void => {
    while (!stopping && !startedThisTurn) {
      const claimed = slots.takeNext();
      if (!claimed) return;
      if (claimed.leaseUntil - now() < options.reserveMs) {
        slots.finish(claimed.group, null);
        continue;
      }
      startedThisTurn = true;
      setImmediate(nextTurn);
      void run(claimed);
    }
  };

  const claimDue = async (): Promise<void> => {
    const due = await queue.dueTimes();
    const at = now();
    let next = Number.POSITIVE_INFINITY;
    // The group that has waited longest first, so that the node's cap is shared in turn.
    for (const [group, time] of [...due].sort((a, b) => a[1] - b[1])) {
      if (stopping) return;
      if (time > at) {
        next = Math.min(next, time);
        continue;
      }
      const room = slots.roomFor(group);
      if (backlog.length >= BACKLOG_LIMIT) {
        pressed = true;
        break;
      }
      if (room <= 0) continue;
      const claimed = await queue.claim(group, room);
      if (stopping) {
        unstarted.push(...claimed);
        return;
      }
      slots.add(claimed);
      start();
    }
    slots.forgetExcept(due);
    if (next !== Number.POSITIVE_INFINITY) sleepUntil(next);
  };

  const look = async (): Promise<void> => {
    looking = true;
    try {
      do {
        lookAgain = false;
        await claimDue();
      } while (lookAgain && !stopping);
    } catch (error) {
      log.error(`${options.name}: looking for work failed: ${errorText(error)}`);
      sleepUntil(now() + RETRY_AFTER_ERROR_MS);
    } finally {
      looking = false;
      settleIdle();
    }
  };

  function wake(): void {
    if (stopping) return;
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    // A macrotask later, so that many wakes of one tick are one look.
    detached(() => setImmediate(() => void look()));
  }

  return {
    wake,
    async stop() {
      stopping = true;
      clearTimeout(timer);
      unstarted.push(...slots.dropWaiting());
      await new Promise<void>((resolve) => {
        idle.push(resolve);
        settleIdle();
      });
      await queue.release(unstarted);
    },
  };
};
