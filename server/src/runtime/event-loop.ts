/** How long one piece of synchronous work may hold the event loop before it lets others go first. */
const SLICE_MS = 10;

/** Resolves in another turn of the event loop. */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/** Says when a loop has worked long enough, and lets the site's own requests in between. */
export interface TimeSlice {
  isOver(): boolean;
  /** Resolves in another turn of the event loop. */
  next(): Promise<void>;
}

/**
 * For loops whose awaits need not leave the event loop: a driver that works synchronously (SQLite's)
 * answers within the same turn, so ten thousand of its statements would be one long stop.
 */
export const createTimeSlice = (sliceMs = SLICE_MS): TimeSlice => {
  let since = performance.now();
  return {
    isOver: () => performance.now() - since >= sliceMs,
    async next() {
      await nextTurn();
      since = performance.now();
    },
  };
};
