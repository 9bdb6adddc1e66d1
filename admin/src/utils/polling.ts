import { useSyncExternalStore } from 'react';

const subscribe = (onChange: () => void): (() => void) => {
  document.addEventListener('visibilitychange', onChange);
  return () => document.removeEventListener('visibilitychange', onChange);
};

const isVisible = (): boolean => document.visibilityState === 'visible';

/** A query's `pollingInterval`, in milliseconds; 0, which stops it, while the tab is hidden. */
export const usePolling = (everyMs: number): number =>
  useSyncExternalStore(subscribe, isVisible) ? everyMs : 0;

/** How near its next attempt has to be for a delivery to be watched closely, in milliseconds. */
const SOON_MS = 10_000;

/** True if a delivery is attempted within seconds, or was due seconds ago. */
export const isDueSoon = (nextAttemptAt: string | null, now: number): boolean =>
  nextAttemptAt !== null && Math.abs(Date.parse(nextAttemptAt) - now) < SOON_MS;
