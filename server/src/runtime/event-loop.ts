/** How long one piece of synchronous work may hold the event loop before it lets others go first. */
const SLICE_MS = 10;

/** Resolves in another turn of the event loop. */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/**
 * Says when a loop has worked long enough, and lets the site's own requests in between. SQLite's driver
 * answers within the same turn of the event loop: ten thousand statements would be one long stop.
 */
export class TimeSlice {
  private since = performance.now();

  constructor(private readonly sliceMs = SLICE_MS) {}

  isOver(): boolean {
    return performance.now() - this.since >= this.sliceMs;
  }

  /** Resolves in another turn of the event loop. */
  async next(): Promise<void> {
    await nextTurn();
    this.since = performance.now();
  }
}

/** Work that stops again and again to let others go first, and ends with a value. */
export type Steps<T> = Generator<void, T, void>;

/** Does it in one go. */
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
