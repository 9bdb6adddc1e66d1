/** Gives what was made of a filter's text, and makes it where it is not kept. */
export interface FilterCache<Filter, T> {
  get(text: string, filter: Filter): T;
}

/**
 * Keeps what was made of the filters that were asked last. By the text that a webhook's row holds, which is the
 * version of its filter: whoever changes it, and however, the next event goes by the new one, and webhooks with
 * the same filter share one.
 * @param make throws where it cannot be made; nothing is kept then
 * @param most how many are kept; the one that was asked the longest ago is forgotten first
 */
export const createFilterCache = <Filter, T>(
  make: (filter: Filter) => T,
  most: number
): FilterCache<Filter, T> => {
  /** A map remembers the order in which it was filled: the least recently used comes first. */
  const kept = new Map<string, T>();
  return {
    get(text, filter) {
      const made = kept.get(text) ?? make(filter);
      kept.delete(text);
      kept.set(text, made);
      const [oldest] = kept.keys();
      if (kept.size > most && oldest !== undefined) kept.delete(oldest);
      return made;
    },
  };
};
