import type { Core } from '@strapi/strapi';

interface Passes {
  /** Runs in a context of its own, not in that of the caller that wakes it. */
  detached: (pass: () => Promise<void>) => Promise<void>;
  /** Does what there is to do, and leaves off where it is told to. */
  pass: (isStopped: () => boolean) => Promise<void>;
  /** Called with the error of a pass; its rest is done when it is woken again, or was meanwhile. */
  failed: (error: unknown) => void;
}

/** Background work, one pass at a time. */
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

/**
 * Gathers what comes one by one and works on it together: what comes in one turn of the event loop, and
 * what comes while others are worked on.
 * @returns a function that resolves when that one was worked on, or rejects with what was thrown
 */
export const createGathering = <T>(
  work: (batch: readonly T[]) => Promise<void>
): ((one: T) => Promise<void>) => {
  let waiting: { one: T; done: () => void; failed: (error: unknown) => void }[] = [];
  let working = false;

  const workOnAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        await work(batch.map(({ one }) => one));
        for (const { done } of batch) done();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    working = false;
  };

  return (one) =>
    new Promise((done, failed) => {
      waiting.push({ one, done, failed });
      if (working) return;
      working = true;
      setImmediate(() => void workOnAll());
    });
};

const LOOK_EVERY_MS = 20;

/**
 * Calls `start` once every plugin's `bootstrap` and the site's own have run: their hook handlers are
 * there then. The host has no signal for it, only `isLoaded`.
 * @returns a function that gives the wait up, for a site that is stopped before it has started.
 */
export const whenLoaded = (strapi: Core.Strapi, start: () => void): (() => void) => {
  const timer = setInterval(() => {
    if (!strapi.isLoaded) return;
    clearInterval(timer);
    start();
  }, LOOK_EVERY_MS);
  return () => clearInterval(timer);
};
