import type { Detached } from '../../database/connection';

interface Waiting<In, Out> {
  input: In;
  resolve(output: Out): void;
  reject(error: unknown): void;
}

/** One input's own result: it fails or succeeds by itself, whoever it travelled with. */
export type Settled<Out> = { ok: true; value: Out } | { ok: false; error: unknown };

/**
 * Gathers what is waiting at the same moment into one piece of work: while one batch is under way,
 * the next one fills up. Nobody waits for company: a lone input starts at once.
 */
export const createBatcher = <In, Out>(
  detached: Detached,
  limit: number,
  work: (inputs: readonly In[]) => Promise<Settled<Out>[]>
): ((input: In) => Promise<Out>) => {
  const waiting: Waiting<In, Out>[] = [];
  let running = false;

  const settle = (
    { resolve, reject }: Waiting<In, Out>,
    result: Settled<Out> | undefined
  ): void => {
    if (result === undefined) reject(new Error('The batch gave no result for this input.'));
    else if (result.ok) resolve(result.value);
    else reject(result.error);
  };

  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, limit);
      try {
        const results = await work(batch.map(({ input }) => input));
        batch.forEach((one, index) => settle(one, results[index]));
      } catch (error) {
        for (const one of batch) one.reject(error);
      }
    }
    running = false;
  };

  return (input) =>
    new Promise<Out>((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      if (running) return;
      running = true;
      // A macrotask later: what arrived in this tick of the event loop goes along.
      detached(() => setImmediate(() => void run()));
    });
};
