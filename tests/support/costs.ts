/** What a test file did that takes time; `file-costs.js` writes it down where that is asked for. */
const costs: Record<string, number> = {};
(globalThis as { switchboardCosts?: typeof costs }).switchboardCosts = costs;

export const count = (name: string, by = 1): void => {
  costs[name] = Math.round(((costs[name] ?? 0) + by) * 1000) / 1000;
};

/** Counts the seconds that `work` takes. */
export const timed = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
  const from = performance.now();
  try {
    return await work();
  } finally {
    count(name, (performance.now() - from) / 1000);
  }
};
