import { count } from './costs';

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

export const sleep = (milliseconds: number): Promise<void> => {
  count('slept', milliseconds / 1000);
  return pause(milliseconds);
};

/** As the limits of tests in environment.js: a machine that is busy with something else may take as many times longer. */
const PATIENCE = 3;
const POLL_MS = 20;
const LONGEST_POLL_MS = 100;

/** What asks a site costs both processor time: the longer it took so far, the more rarely it is asked. */
const pauseAfter = (askedMs: number): number =>
  Math.min(Math.max(POLL_MS, askedMs / 10), LONGEST_POLL_MS);

/**
 * Polls `probe` until it gives something truthy, and resolves with that. One that is asynchronous is
 * asked ever more rarely, up to ten times a second.
 * An error of the probe counts as "not yet"; the last one is part of the message at the end.
 * @param timeout milliseconds on an idle machine, half a minute by default: it only costs where a test fails.
 */
export const waitFor = async <T>(
  probe: () => T | Promise<T>,
  timeout = 30_000,
  what = 'the condition'
): Promise<NonNullable<T>> => {
  const began = Date.now();
  const deadline = began + PATIENCE * timeout;
  let last: unknown;
  let milliseconds = POLL_MS;
  for (;;) {
    try {
      const given = probe();
      if (given instanceof Promise) milliseconds = pauseAfter(Date.now() - began);
      last = await given;
      if (last) return last as NonNullable<T>;
    } catch (error) {
      last = error;
    }
    if (Date.now() >= deadline) {
      const seen = last instanceof Error ? last.message : JSON.stringify(last);
      throw new Error(`Waited ${PATIENCE * timeout} ms for ${what}; last seen: ${seen}`);
    }
    count('waited', milliseconds / 1000);
    await pause(milliseconds);
  }
};
