import { setTimeout as sleep } from 'node:timers/promises';
import { isInfrastructureFault } from '../database/retry';

const RECORD_AT_ONCE = 200;
const FULL = 1000;
/**
 * An outcome that waits longer than this says that recording lags behind. Rows that are claimed meanwhile
 * would lose their leases before they are recorded, and be done again.
 */
const LAG_MS = 2000;
/**
 * The least time between two recordings. A commit is the most expensive part of a row; a busy node pays
 * it once for all outcomes of that time. The first outcome after a pause is recorded at once.
 */
const GATHER_MS = 50;
/**
 * If recording takes long, because the database or this process is busy, as much time passes before the
 * next one, up to this: fewer and larger ones reduce the load.
 */
const LONGEST_REST_MS = 100;
/** Pauses between tries while the database is away. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4000;
/** How often a worker that is to stop tries to record to a database that is away. */
const TRIES_IN_A_HURRY = 3;

interface RecorderOptions<Outcome> {
  name: string;
  record(outcomes: readonly Outcome[]): Promise<void>;
  /** How long outcomes are kept while the database is away, in milliseconds; for ever by default. */
  keepMs?: number;
  logFault(what: string, error: unknown): void;
  /** Everything is recorded; whether somebody was told meanwhile that the recorder was full. */
  onDone(wasFull: boolean): void;
  /** Milliseconds of a clock that only goes forward. */
  now?: () => number;
}

/** Gathers what came of rows and has it recorded in batches, one after the other. */
export class Recorder<Outcome> {
  private readonly backlog: { outcome: Outcome; since: number }[] = [];
  /** Since when the batch that is being recorded has waited. */
  private batchSince: number | null = null;
  private recording = false;
  private wasFull = false;
  private hurrying = false;
  private isAwaited = false;
  private isLast = false;
  /** The pause in which outcomes gather. */
  private pause = new AbortController();
  /** When the next recording may begin. */
  private next = Number.NEGATIVE_INFINITY;
  private readonly now: () => number;

  constructor(private readonly options: RecorderOptions<Outcome>) {
    this.now = options.now ?? (() => performance.now());
  }

  /** @param awaited whether other work waits for it to be recorded */
  add(outcome: Outcome, awaited = false): void {
    this.backlog.push({ outcome, since: this.now() });
    this.isAwaited ||= awaited;
  }

  /** Nothing is under way that could keep an outcome company: what is awaited is recorded at once. */
  expectNoMore(): void {
    if (!this.isAwaited) return;
    this.isLast = true;
    this.pause.abort();
  }

  /** Starts recording what has gathered, if it does not already. */
  start(): void {
    if (!this.recording && this.backlog.length > 0) void this.recordAll();
  }

  isBusy(): boolean {
    return this.recording || this.backlog.length > 0;
  }

  /** So much waits, or for so long, that no more work should be started; `onDone` tells when it may. */
  isFull(): boolean {
    const oldest = this.batchSince ?? this.backlog[0]?.since ?? Number.POSITIVE_INFINITY;
    const full = this.backlog.length >= FULL || this.now() - oldest > LAG_MS;
    this.wasFull ||= full;
    return full;
  }

  /** The worker is to stop: no waiting for company, and not long for a database that is away. */
  hurry(): void {
    this.hurrying = true;
  }

  private async gather(): Promise<void> {
    const waited = this.now() - (this.backlog[0]?.since ?? this.now());
    const pause = waited > LAG_MS / 2 ? 0 : this.next - this.now();
    const isEnough = this.backlog.length >= RECORD_AT_ONCE || this.hurrying || this.isLast;
    if (pause > 0 && !isEnough) {
      this.pause = new AbortController();
      await sleep(pause, undefined, { signal: this.pause.signal }).catch(() => {});
    }
    this.isAwaited = false;
    this.isLast = false;
  }

  /**
   * While the database is away the outcomes are kept and tried again: to forget them would be to send
   * again what receivers have. An outcome that cannot be recorded for another reason keeps its lease and
   * comes back by itself: at least once.
   */
  private async recordBatch(batch: readonly Outcome[]): Promise<void> {
    const { name, keepMs = Number.POSITIVE_INFINITY, logFault, record } = this.options;
    const keepUntil = this.now() + keepMs;
    let hurriedTries = 0;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        await record(batch);
        return;
      } catch (error) {
        logFault(`${name}: ${batch.length} outcomes could not be recorded`, error);
        if (!isInfrastructureFault(error) || this.now() > keepUntil) return;
        if (this.hurrying) hurriedTries += 1;
        if (hurriedTries >= TRIES_IN_A_HURRY) return;
      }
      await sleep(this.hurrying ? FIRST_PAUSE_MS : pause);
    }
  }

  private async recordAll(): Promise<void> {
    this.recording = true;
    while (this.backlog.length > 0) {
      await this.gather();
      const batch = this.backlog.splice(0, RECORD_AT_ONCE);
      this.batchSince = batch[0]?.since ?? null;
      const begun = this.now();
      await this.recordBatch(batch.map(({ outcome }) => outcome));
      const took = this.now() - begun;
      this.next = begun + Math.max(GATHER_MS, took + Math.min(took, LONGEST_REST_MS));
      this.batchSince = null;
    }
    this.recording = false;
    const full = this.wasFull;
    this.wasFull = false;
    this.options.onDone(full);
  }
}

/** Work waits for it until something changes, then checks the state itself. */
export class Signal {
  private readonly waiting = new Set<() => void>();
  private given = 0;

  /** Wakes everybody who waits now. */
  give(): void {
    this.given += 1;
    for (const wake of [...this.waiting]) wake();
  }

  /** How often it was given so far. */
  count(): number {
    return this.given;
  }

  /**
   * Waits until it was given more often than `seen`, but no longer than that: a signal that came
   * between a look and the wait is not missed.
   * @returns whether it was
   */
  since(seen: number, milliseconds: number): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.given !== seen) {
        resolve(true);
        return;
      }
      const end = (came: boolean): void => {
        clearTimeout(timer);
        this.waiting.delete(wake);
        resolve(came);
      };
      const wake = () => end(true);
      const timer = setTimeout(end, milliseconds, false);
      this.waiting.add(wake);
    });
  }
}

/**
 * Waits for `ending`, but no longer than that: a database that does not answer must not keep the
 * process alive.
 */
export const stopWithin = async (milliseconds: number, ending: Promise<void>): Promise<void> => {
  const ended = new AbortController();
  const deadline = sleep(milliseconds, undefined, { signal: ended.signal }).catch(() => {});
  await Promise.race([ending, deadline]).finally(() => ended.abort());
};

/** How long beyond the time of one piece of work a stop may take, in milliseconds. */
export const STOP_MARGIN_MS = 5000;

/** How often a worker that is to stop looks whether all that it had begun is done, in milliseconds. */
export const IDLE_LOOK_MS = 10;
