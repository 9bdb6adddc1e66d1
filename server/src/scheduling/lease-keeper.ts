import type { Lease } from './types';

export interface LeaseKeeperOptions<L extends Lease> {
  /** How often leases are prolonged, in milliseconds. */
  everyMs: number;
  /** What is worked on, as the log calls it. */
  name: string;
  renew(leases: readonly L[]): Promise<void>;
  logFault(what: string, error: unknown): void;
}

/**
 * Prolongs the leases of what a process works on, so that none need last as long as the longest work:
 * what a killed process held is somebody else's soon, however long an attempt may take.
 */
export interface LeaseKeeper<L extends Lease> {
  keep(lease: L): void;
  /** As `keep`, of one that has not been prolonged for some time: it is the next time. */
  keepAgain(lease: L): void;
  /** What is recorded at this moment must not be prolonged: the two would wait for each other's rows. */
  drop(lease: L): void;
  /** Prolongs nothing more. */
  stop(): void;
}

export const createLeaseKeeper = <L extends Lease>({
  everyMs,
  name,
  renew,
  logFault,
}: LeaseKeeperOptions<L>): LeaseKeeper<L> => {
  /** Since when each lease is as long as it is, on a clock that only goes forward. */
  const kept = new Map<L, number>();
  let timer: NodeJS.Timeout | undefined;

  const schedule = (): void => {
    timer = setTimeout(() => void renewOld(), everyMs);
    timer.unref();
  };

  const renewOld = async (): Promise<void> => {
    const at = performance.now();
    const old = [...kept].filter(([, since]) => at - since >= everyMs / 2).map(([lease]) => lease);
    for (const lease of old) kept.set(lease, at);
    try {
      if (old.length > 0) await renew(old);
    } catch (error) {
      // What cannot be prolonged now is tried again while there is something left of its lease.
      logFault(`${name}: ${old.length} leases could not be prolonged`, error);
    }
    timer = undefined;
    if (kept.size > 0) schedule();
  };

  const keepSince = (lease: L, since: number): void => {
    kept.set(lease, since);
    if (!timer) schedule();
  };

  return {
    keep: (lease) => keepSince(lease, performance.now()),
    keepAgain: (lease) => keepSince(lease, Number.NEGATIVE_INFINITY),
    drop: (lease) => void kept.delete(lease),
    stop() {
      kept.clear();
      clearTimeout(timer);
      timer = undefined;
    },
  };
};
