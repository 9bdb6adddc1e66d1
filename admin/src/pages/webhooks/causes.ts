import { useMemo } from 'react';
import { keyFor, useText } from '../../utils/text';

/** A status that explains itself is told in its own words; the others by their class. */
const statusKey = (status: number) =>
  keyFor('cause.http', String(status)) ??
  (status >= 500 ? ('cause.http.5xx' as const) : ('cause.http.other' as const));

export interface CauseTexts {
  /** A few words, for a cell of a table. */
  short(cause: string): string;
  /** The cause and its remedy. */
  long(cause: string): string;
}

/** The server's causes (`timeout`, `http_500`, …) in plain words. */
export const useCause = (): CauseTexts => {
  const text = useText();
  return useMemo(() => {
    const named = (prefix: string, cause: string): string => {
      const status = /^http_(\d{3})$/.exec(cause)?.[1];
      if (status && prefix === 'cause.short') return text('cause.short.http', { status });
      if (status) return text(statusKey(Number(status)), { status });
      const key = keyFor(prefix, cause);
      return key ? text(key) : cause;
    };
    return {
      short: (cause) => named('cause.short', cause),
      long: (cause) => named('cause.long', cause),
    };
  }, [text]);
};
