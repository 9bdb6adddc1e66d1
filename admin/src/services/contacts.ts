import { useFetchClient } from '@strapi/strapi/admin';
import { useCallback } from 'react';
import { api, type One } from './api';

export type Entry = Readonly<Record<string, unknown>>;

export interface Merge {
  model: string;
  keep: string;
  remove: string;
  /** When both were changed last, as they were shown. */
  seen: { keep: string; remove: string };
}

interface RelatedTo {
  model: string;
  id: string;
  field: string;
}

const EXPLORER = '/content-manager/collection-types';

const contactsApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardContact: build.query<Entry, { model: string; id: string }>({
      query: ({ model, id }) => `${EXPLORER}/${model}/${id}`,
      transformResponse: ({ data }: One<Entry>) => data,
      keepUnusedDataFor: 0,
    }),
    switchboardRelated: build.query<Entry[], RelatedTo>({
      query: ({ model, id, field }) =>
        `/content-manager/relations/${model}/${id}/${field}?page=1&pageSize=10`,
      transformResponse: ({ results }: { results: Entry[] }) => results,
      keepUnusedDataFor: 0,
    }),
    switchboardMerge: build.mutation<unknown, Merge>({
      query: ({ keep, remove, seen }) => ({
        url: '/switchboard/contacts/merge',
        method: 'POST',
        data: { keep, remove, seen },
      }),
      // The content manager's own tags.
      invalidatesTags: ['Document', 'Relations'],
    }),
  }),
});

export const {
  useSwitchboardContactQuery: useContact,
  useSwitchboardRelatedQuery: useRelated,
  useSwitchboardMergeMutation: useMerge,
} = contactsApi;

const pairsOf = (value: unknown, name = ''): [string, string][] => {
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object') return [[name, String(value)]];
  return Object.entries(value).flatMap(([key, inner]) =>
    pairsOf(inner, name === '' ? key : `${name}[${key}]`)
  );
};

/** Some contacts as a file: chosen ones, or those that filters and a search find. */
export const useContactFile = () => {
  const { get } = useFetchClient();
  return useCallback(
    async (wanted: { ids?: string; filters?: unknown; _q?: unknown }) => {
      try {
        const params = new URLSearchParams(pairsOf(wanted)).toString();
        const options = { params, responseType: 'blob' as const };
        const { data } = await get<Blob>('/switchboard/contacts/export', options);
        return { data };
      } catch (error) {
        return { error };
      }
    },
    [get]
  );
};
