import { setTimeout as sleep } from 'node:timers/promises';
import type { Core } from '@strapi/strapi';

/** How long one piece of synchronous work may hold the event loop before it lets others go first. */
const SLICE_MS = 10;

/** Resolves in another turn of the event loop. */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/** Ends a long loop's turn for the site's requests: SQLite's driver answers in the same turn of the event loop. */
export class TimeSlice {
  private since = performance.now();

  constructor(private readonly sliceMs = SLICE_MS) {}

  isOver(): boolean {
    return performance.now() - this.since >= this.sliceMs;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.since = performance.now();
  }
}

/** Work that stops again and again to let others go first, and ends with a value. */
export type Steps<T> = Generator<void, T, void>;

export const inOneGo = <T>(steps: Steps<T>): T => {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
};

/** Does it in slices of the event loop, so that the site answers others meanwhile. */
export const inTurns = async <T>(
  steps: Steps<T>,
  slice: Pick<TimeSlice, 'isOver' | 'next'> = new TimeSlice()
): Promise<T> => {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (slice.isOver()) await slice.next();
  }
};

interface Passes {
  /** Runs in a context of its own, not in that of the caller that wakes it. */
  detached: (pass: () => Promise<void>) => Promise<void>;
  /** Works through the pending work, and pauses on request. */
  pass: (isStopped: () => boolean) => Promise<void>;
  /** Called with the error of a pass; its rest is done when it is woken again, or was meanwhile. */
  failed: (error: unknown) => void;
}

export class BackgroundWork {
  private stopped = false;
  private again = false;
  private running: Promise<void> | null = null;

  constructor(private readonly passes: Passes) {}

  /** Begins a pass, or another one after that which is under way. Never throws. */
  wake(): void {
    this.again = true;
    if (this.stopped || this.running) return;
    this.running = this.passes.detached(() => this.run());
  }

  /** Begins no more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.running;
  }

  private async run(): Promise<void> {
    try {
      do {
        this.again = false;
        await this.passes.pass(() => this.stopped).catch(this.passes.failed);
      } while (this.again && !this.stopped);
    } finally {
      // In the turn of the last look at `again`: a wake after that begins the next run.
      this.running = null;
    }
  }
}

interface GatheringOptions {
  /** The most of one batch; no limit by default. */
  limit?: number;
  /** Gives the work a context of its own; by default it has the first caller's. */
  detached?: (start: () => void) => void;
  /** True if an error concerns the whole batch; otherwise each input is worked on separately. */
  isShared?: (error: unknown) => boolean;
}

interface Gathered<In, Out> {
  one: In;
  done: (output: Out) => void;
  failed: (error: unknown) => void;
}

/**
 * Gathers inputs of one turn of the event loop, and those that come during work, into batches; none waits for others.
 * @param work gives the outputs in the order of the batch, or none
 * @returns a function that resolves with the output of its input, or rejects with the error of the work
 */
export const createGathering = <In, Out = void>(
  work: (batch: readonly In[]) => Promise<readonly Out[] | void>,
  { limit = Infinity, detached = (start) => start(), isShared = () => true }: GatheringOptions = {}
): ((one: In) => Promise<Out>) => {
  const waiting: Gathered<In, Out>[] = [];
  let working = false;

  const workOn = async (batch: readonly Gathered<In, Out>[]): Promise<void> => {
    try {
      const outputs = await work(batch.map(({ one }) => one));
      for (const [at, { done }] of batch.entries()) done(outputs?.[at] as Out);
    } catch (error) {
      const isOfAll = batch.length === 1 || isShared(error);
      for (const one of batch) {
        if (isOfAll) one.failed(error);
        else {
          await nextTurn();
          await workOn([one]);
        }
      }
    }
  };

  const workOnAll = async (): Promise<void> => {
    while (waiting.length > 0) await workOn(waiting.splice(0, limit));
    working = false;
  };

  return (one) =>
    new Promise((done, failed) => {
      waiting.push({ one, done, failed });
      if (working) return;
      working = true;
      detached(() => setImmediate(() => void workOnAll()));
    });
};

/** Runs tasks by the clock, each by its rule in the notation of cron. */
export const byClock = (
  { cron }: Core.Strapi,
  tasks: Readonly<Record<string, readonly [rule: string, task: () => unknown]>>
): void => {
  for (const [name, [rule, task]] of Object.entries(tasks)) {
    cron.add({ [name]: { task: async () => void (await task()), options: { rule } } });
  }
};

const LOOK_EVERY_MS = 20;

/** Calls `start` once the whole site has started, with its hooks. @returns what ends the wait */
export const whenLoaded = (strapi: Core.Strapi, start: () => void): (() => void) => {
  const timer = setInterval(() => {
    if (!strapi.isLoaded) return;
    clearInterval(timer);
    start();
  }, LOOK_EVERY_MS);
  return () => clearInterval(timer);
};

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

  /** Waits for more signals than `seen`, up to a time; signals between a look and the wait count. True if signalled. */
  since(seen: number, milliseconds: number): Promise<boolean> {
    if (this.given !== seen) return Promise.resolve(true);
    return new Promise((resolve) => {
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

/** Waits for `ending`, but no longer than that: a database that does not answer must not keep the process alive. */
export const stopWithin = async (milliseconds: number, ending: Promise<void>): Promise<void> => {
  const ended = new AbortController();
  const deadline = sleep(milliseconds, undefined, { signal: ended.signal }).catch(() => {});
  await Promise.race([ending, deadline]).finally(() => ended.abort());
};

const IDLE_LOOK_MS = 10;

/** Waits until nothing is under way. Keeps no process alive. */
export const whenIdle = async (isBusy: () => boolean): Promise<void> => {
  while (isBusy()) await sleep(IDLE_LOOK_MS, undefined, { ref: false });
};
