import type { Core } from '@strapi/strapi';

/** Work that goes on beside requests, one pass at a time. */
export interface BackgroundWork {
  /** Has a pass begin, or another one follow that which is under way. Never throws. */
  wake(): void;
  /** Begins no more; resolves when what is under way has ended. */
  stop(): Promise<void>;
}

interface Passes {
  /** Runs in a context of its own, not in that of whoever wakes it. */
  detached: (pass: () => Promise<void>) => Promise<void>;
  /** Does what there is to do, and leaves off where it is told to. */
  pass: (isStopped: () => boolean) => Promise<void>;
  /** Hears of a pass that failed; what it left is done when it is woken again. */
  failed: (error: unknown) => void;
}

export const createBackgroundWork = ({ detached, pass, failed }: Passes): BackgroundWork => {
  let stopped = false;
  let again = false;
  let running: Promise<void> | null = null;
  const passes = async (): Promise<void> => {
    do {
      again = false;
      await pass(() => stopped);
    } while (again && !stopped);
  };
  return {
    wake() {
      again = true;
      if (stopped || running) return;
      running = detached(passes)
        .catch(failed)
        .finally(() => {
          running = null;
        });
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
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
