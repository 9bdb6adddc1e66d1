import { useSyncExternalStore } from 'react';

const NARROW = '(max-width: 767px)';

const subscribe = (onChange: () => void): (() => void) => {
  const query = window.matchMedia(NARROW);
  query.addEventListener('change', onChange);
  return () => query.removeEventListener('change', onChange);
};

/** True on a screen as narrow as a phone: drawings that are scaled to it need larger texts. */
export const useIsNarrow = (): boolean =>
  useSyncExternalStore(subscribe, () => window.matchMedia(NARROW).matches);
