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
