import { isInfrastructureFault } from '../database/retry';

const RECORD_AT_ONCE = 200;
const FULL = 1000;
/**
 * An outcome that waits longer than this says that recording lags behind. What is claimed meanwhile
 * would wait behind it, its lease would end before it is recorded, and it would be done again.
 */
const LAG_MS = 2000;
/**
 * The least time between two recordings. A commit is the dearest part of a row; a busy node pays it
 * for all that ended meanwhile together. The first outcome after a pause is recorded at once.
 */
const GATHER_MS = 50;
/**
 * Where recording takes long, because the database or this process is busy, so much passes between the
 * end of one and the next as it took, up to this: fewer and larger ones are what takes the load off.
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
interface Recorder<Outcome> {
  /** @param awaited whether other work waits for it to be recorded */
  add(outcome: Outcome, awaited?: boolean): void;
  /** Starts recording what has gathered, if it does not already. */
  start(): void;
  /** Nothing is under way that could keep an outcome company: what is awaited is recorded at once. */
  expectNoMore(): void;
  isBusy(): boolean;
  /** So much waits, or for so long, that no more work should be started; `onDone` tells when it may. */
  isFull(): boolean;
  /** The worker is to stop: no waiting for company, and not long for a database that is away. */
  hurry(): void;
}

const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

export const createRecorder = <Outcome>({
  name,
  record,
  keepMs = Number.POSITIVE_INFINITY,
  logFault,
  onDone,
  now = () => performance.now(),
}: RecorderOptions<Outcome>): Recorder<Outcome> => {
  const backlog: { outcome: Outcome; since: number }[] = [];
  /** Since when the batch that is being recorded has waited. */
  let batchSince: number | null = null;
  let recording = false;
  let wasFull = false;
  let hurrying = false;
  let isAwaited = false;
  /** Ends the pause in which outcomes gather. */
  let endPause: (() => void) | null = null;
  let isAlone = false;
  /** When the next recording may begin. */
  let next = Number.NEGATIVE_INFINITY;

  const gather = async (): Promise<void> => {
    const waited = now() - (backlog[0]?.since ?? now());
    const pause = waited > LAG_MS / 2 ? 0 : next - now();
    if (pause > 0 && backlog.length < RECORD_AT_ONCE && !hurrying && !isAlone) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        endPause = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      endPause = null;
    }
    isAwaited = false;
    isAlone = false;
  };

  /**
   * While the database is away the outcomes are kept and tried again: to forget them would be to
   * send again what receivers have. What cannot be recorded for another reason keeps its lease and
   * comes back by itself: at least once.
   */
  const recordBatch = async (batch: readonly Outcome[]): Promise<void> => {
    const keepUntil = now() + keepMs;
    let hurriedTries = 0;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        await record(batch);
        return;
      } catch (error) {
        logFault(`${name}: ${batch.length} outcomes could not be recorded`, error);
        if (!isInfrastructureFault(error) || now() > keepUntil) return;
        if (hurrying) hurriedTries += 1;
        if (hurriedTries >= TRIES_IN_A_HURRY) return;
      }
      await sleep(hurrying ? FIRST_PAUSE_MS : pause);
    }
  };

  const recordAll = async (): Promise<void> => {
    recording = true;
    while (backlog.length > 0) {
      await gather();
      const batch = backlog.splice(0, RECORD_AT_ONCE);
      batchSince = batch[0]?.since ?? null;
      const begun = now();
      await recordBatch(batch.map(({ outcome }) => outcome));
      const took = now() - begun;
      next = begun + Math.max(GATHER_MS, took + Math.min(took, LONGEST_REST_MS));
      batchSince = null;
    }
    recording = false;
    const full = wasFull;
    wasFull = false;
    onDone(full);
  };

  return {
    add(outcome, awaited = false) {
      backlog.push({ outcome, since: now() });
      isAwaited ||= awaited;
    },
    expectNoMore() {
      if (!isAwaited) return;
      isAlone = true;
      endPause?.();
    },
    start() {
      if (!recording && backlog.length > 0) void recordAll();
    },
    isBusy: () => recording || backlog.length > 0,
    isFull() {
      const oldest = batchSince ?? backlog[0]?.since ?? Number.POSITIVE_INFINITY;
      const full = backlog.length >= FULL || now() - oldest > LAG_MS;
      wasFull ||= full;
      return full;
    },
    hurry() {
      hurrying = true;
    },
  };
};

export interface Signal {
  /** Wakes everybody who waits now. */
  give(): void;
  /** How often it was given so far. */
  count(): number;
  /**
   * Waits until it was given more often than `seen`, but no longer than that: a signal that came
   * between a look and the wait is not missed.
   * @returns whether it was
   */
  since(seen: number, milliseconds: number): Promise<boolean>;
}

/** What work waits for until something changes: whoever wakes looks for itself at what there is. */
export const createSignal = (): Signal => {
  const waiting = new Set<() => void>();
  let given = 0;
  return {
    give() {
      given += 1;
      for (const wake of [...waiting]) wake();
    },
    count: () => given,
    since: (seen, milliseconds) =>
      new Promise((resolve) => {
        if (given !== seen) {
          resolve(true);
          return;
        }
        const end = (came: boolean): void => {
          clearTimeout(timer);
          waiting.delete(wake);
          resolve(came);
        };
        const wake = () => end(true);
        const timer = setTimeout(end, milliseconds, false);
        waiting.add(wake);
      }),
  };
};

/**
 * Waits for `ending`, but no longer than that: a database that does not answer must not keep the
 * process alive.
 */
export const stopWithin = async (milliseconds: number, ending: Promise<void>): Promise<void> => {
  let timeout: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timeout = setTimeout(resolve, milliseconds);
  });
  await Promise.race([ending, deadline]);
  clearTimeout(timeout);
};

/** How long beyond the time of one piece of work a stop may take, in milliseconds. */
export const STOP_MARGIN_MS = 5000;
