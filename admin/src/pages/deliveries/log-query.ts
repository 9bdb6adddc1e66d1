import { useCallback, useMemo } from 'react';
import { useSearchParams } from 'react-router-dom';
import { FILTER_KEYS, type FilterKey, filterOf, narrowed } from './log-filter';

const withValue = (params: URLSearchParams, key: string, value: string | undefined) => {
  const next = new URLSearchParams(params);
  if (value === undefined) next.delete(key);
  else next.set(key, value);
  return next;
};

/** The log's filters, page and open delivery, kept in the address: a link to them can be shared. */
export const useLogQuery = (webhook?: number) => {
  const [params, setParams] = useSearchParams();
  const filter = useMemo(() => filterOf(params, webhook), [params, webhook]);
  const set = useCallback(
    (key: string, value: string | undefined) =>
      setParams((before) => withValue(before, key, value)),
    [setParams]
  );
  return {
    filter,
    cursor: params.get('cursor') ?? undefined,
    delivery: params.get('delivery') ?? undefined,
    value: (key: FilterKey) => params.get(key) ?? undefined,
    isFiltered: FILTER_KEYS.some((key) => params.has(key)),
    narrow: (changes: Partial<Record<FilterKey, string | undefined>>) =>
      setParams((before) => narrowed(before, changes)),
    clear: () =>
      setParams((before) =>
        narrowed(before, Object.fromEntries(FILTER_KEYS.map((key) => [key, undefined])))
      ),
    toPage: (cursor: string | undefined) => set('cursor', cursor),
    open: (id: number | string | undefined) =>
      set('delivery', id === undefined ? undefined : String(id)),
    /** The address of a delivery that is shown over this log. */
    addressOf: (id: number) => ({ search: `?${withValue(params, 'delivery', String(id))}` }),
  };
};

export type LogQuery = ReturnType<typeof useLogQuery>;
