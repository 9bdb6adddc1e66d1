import { useCallback } from 'react';
import { type TextKey, useText } from '../utils/text';

/** What the server keeps as the reason that something was switched off, which is English. */
const KNOWN: readonly [RegExp, TextKey][] = [
  [/after (\d+) failed deliver/, 'banner.reason'],
  [/answered 410/, 'reason.gone'],
  [/no attempt succeeded for ([\d.]+) hour/, 'reason.silent'],
  [/^It came from another site/, 'reason.elsewhere'],
];

/** Whether it is off because an import or a transfer brought it, not because anything failed. */
export const cameFromElsewhere = (reason: string): boolean =>
  reason.startsWith('It came from another site');

/** The text for a reason and the number in it; undefined for one that the server does not give. */
export const knownReason = (reason: string): { key: TextKey; n: number } | undefined => {
  for (const [pattern, key] of KNOWN) {
    const found = pattern.exec(reason);
    if (found) return { key, n: Number(found[1] ?? 0) };
  }
  return undefined;
};

/** Says such a reason in the reader's language, without a full stop at its end. */
export const useReason = (): ((reason: string) => string) => {
  const text = useText();
  return useCallback(
    (reason) => {
      const known = knownReason(reason);
      return known ? text(known.key, { n: known.n }) : reason.replace(/\.$/, '');
    },
    [text]
  );
};
