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
