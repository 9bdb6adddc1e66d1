export interface CombiningOptions {
  /** How many works may be under way at once. */
  underWay: number;
  /** How many pieces one work takes. */
  together: number;
}

/**
 * Works at once on what comes one by one; what comes while as much is under way as may be waits, and is
 * then worked on together.
 * @param work answers each piece, in their order; it runs in the asynchronous context of whoever began it
 * @returns a function that resolves with the answer to its piece, or rejects with what was thrown
 */
export const createCombining = <T, R>(
  work: (batch: readonly T[]) => Promise<readonly R[]>,
  { underWay, together }: CombiningOptions
): ((one: T) => Promise<R>) => {
  const waiting: { one: T; done: (answer: R) => void; failed: (error: unknown) => void }[] = [];
  let working = 0;

  const workOnSome = async (): Promise<void> => {
    working += 1;
    const batch = waiting.splice(0, together);
    try {
      const answers = await work(batch.map(({ one }) => one));
      batch.forEach(({ done }, at) => done(answers[at] as R));
    } catch (error) {
      for (const { failed } of batch) failed(error);
    }
    working -= 1;
    if (waiting.length > 0) void workOnSome();
  };

  return (one) =>
    new Promise((done, failed) => {
      waiting.push({ one, done, failed });
      if (working < underWay) void workOnSome();
    });
};
