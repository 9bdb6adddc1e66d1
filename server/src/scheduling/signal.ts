export interface Signal {
  /** Wakes everybody who waits now. */
  give(): void;
  /** How often it was given so far. */
  count(): number;
  /**
   * Waits until it was given more often than `seen`, but no longer than that: a signal that came
   * between a look and the wait is not missed.
   * @returns whether it was
   */
  since(seen: number, milliseconds: number): Promise<boolean>;
}

/** What work waits for until something changes: whoever wakes looks for itself at what there is. */
export const createSignal = (): Signal => {
  const waiting = new Set<() => void>();
  let given = 0;
  return {
    give() {
      given += 1;
      for (const wake of [...waiting]) wake();
    },
    count: () => given,
    since: (seen, milliseconds) =>
      new Promise((resolve) => {
        if (given !== seen) {
          resolve(true);
          return;
        }
        const end = (came: boolean): void => {
          clearTimeout(timer);
          waiting.delete(wake);
          resolve(came);
        };
        const wake = () => end(true);
        const timer = setTimeout(end, milliseconds, false);
        waiting.add(wake);
      }),
  };
};
