import { TimeSlice } from './event-loop';

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
