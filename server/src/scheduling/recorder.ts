import { setTimeout as sleep } from 'node:timers/promises';
import { isInfrastructureFault } from '../database/retry';

const RECORD_AT_ONCE = 200;
/** This many are worth a commit of their own if no more are under way. */
const WORTHWHILE = 50;
const FULL = 1000;
/** If an outcome waits longer, rows that are claimed meanwhile would lose their leases before they are recorded. */
const LAG_MS = 2000;
/** Least time between recordings: a commit is the most expensive part. The first after a pause is recorded at once. */
const GATHER_MS = 50;
/** If recording takes long, as much time passes before the next one, up to this: that reduces the load. */
const LONGEST_REST_MS = 100;
/** When to look whether something of a group is due, of which fewer rows were brought than asked for. */
export const LOOK_AGAIN_MS = 100;
/** How long beyond the time of one piece of work a stop may take, in milliseconds. */
export const STOP_MARGIN_MS = 5000;
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
  /** Called once everything is recorded; `wasFull`: the recorder was reported full meanwhile. */
  onDone(wasFull: boolean): void;
  /** Milliseconds of a clock that only goes forward. */
  now?: () => number;
}

/** Gathers the outcomes of rows and has them recorded in batches, one after the other. */
export class Recorder<Outcome> {
  /** The batch that is being recorded comes first. */
  private readonly backlog: { outcome: Outcome; since: number }[] = [];
  private recording = false;
  private wasFull = false;
  private hurrying = false;
  private isAwaited = false;
  private isResting = false;
  /** Ends the pause in which outcomes gather. */
  private noMore = new AbortController();
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
    if (this.isResting && this.backlog.length >= RECORD_AT_ONCE) this.noMore.abort();
  }

  /** Nothing is under way that could keep outcomes company: many, or an awaited one, are recorded at once. */
  expectNoMore(): void {
    if (this.isAwaited || this.backlog.length >= WORTHWHILE) this.noMore.abort();
  }

  /** Starts recording what has gathered, if it does not already. */
  start(): void {
    if (!this.recording && this.backlog.length > 0) void this.recordAll();
  }

  isBusy(): boolean {
    return this.recording || this.backlog.length > 0;
  }

  /** True if so much waits, or waits so long, that no more work should start; `onDone` reports when it may. */
  isFull(): boolean {
    const { backlog } = this;
    const oldest = backlog[0]?.since ?? Number.POSITIVE_INFINITY;
    const full = backlog.length >= FULL || this.now() - oldest > LAG_MS;
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
    const isEnough = this.backlog.length >= RECORD_AT_ONCE || this.hurrying;
    const { signal } = this.noMore;
    this.isResting = true;
    if (pause > 0 && !isEnough) await sleep(pause, undefined, { signal }).catch(() => {});
    this.isResting = false;
    this.isAwaited = false;
    if (signal.aborted) this.noMore = new AbortController();
  }

  /**
   * While the database is unreachable, outcomes are kept and retried, because losing them would send deliveries twice.
   * On other errors an outcome's lease expires and it is redone: at least once.
   */
  private async recordBatch(batch: readonly Outcome[]): Promise<void> {
    const { name, keepMs = Number.POSITIVE_INFINITY, logFault, record } = this.options;
    const keepUntil = this.now() + keepMs;
    let hurriedTries = 0;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        return await record(batch);
      } catch (error) {
        logFault(`${name}: ${batch.length} outcomes could not be recorded`, error);
        if (this.hurrying) hurriedTries += 1;
        const isGivenUp = this.now() > keepUntil || hurriedTries >= TRIES_IN_A_HURRY;
        if (isGivenUp || !isInfrastructureFault(error)) return;
      }
      await sleep(this.hurrying ? FIRST_PAUSE_MS : pause);
    }
  }

  private async recordAll(): Promise<void> {
    this.recording = true;
    while (this.backlog.length > 0) {
      await this.gather();
      const batch = this.backlog.slice(0, RECORD_AT_ONCE);
      const begun = this.now();
      await this.recordBatch(batch.map(({ outcome }) => outcome));
      this.backlog.splice(0, batch.length);
      const took = this.now() - begun;
      this.next = begun + Math.max(GATHER_MS, took + Math.min(took, LONGEST_REST_MS));
    }
    this.recording = false;
    const full = this.wasFull;
    this.wasFull = false;
    this.options.onDone(full);
  }
}
