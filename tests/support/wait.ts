import { count } from './costs';

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

export const sleep = (milliseconds: number): Promise<void> => {
  count('slept', milliseconds / 1000);
  return pause(milliseconds);
};

const POLL_MS = 20;

/**
 * Polls `probe` until it gives something truthy, and resolves with that.
 * An error of the probe counts as "not yet"; the last one is part of the message at the end.
 * @param timeout milliseconds, half a minute by default: it only costs where a test fails.
 */
export const waitFor = async <T>(
  probe: () => T | Promise<T>,
  timeout = 30_000,
  what = 'the condition'
): Promise<NonNullable<T>> => {
  const deadline = Date.now() + timeout;
  let last: unknown;
  for (;;) {
    try {
      last = await probe();
      if (last) return last as NonNullable<T>;
    } catch (error) {
      last = error;
    }
    if (Date.now() >= deadline) {
      const seen = last instanceof Error ? last.message : JSON.stringify(last);
      throw new Error(`Waited ${timeout} ms for ${what}; last seen: ${seen}`);
    }
    count('waited', POLL_MS / 1000);
    await pause(POLL_MS);
  }
};
