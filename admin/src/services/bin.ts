import { api } from './api';

interface BinChange {
  /** The content type's uid. */
  model: string;
  ids: readonly string[];
  inBin: boolean;
}

/** The Content Manager's own cache of lists and entries. */
const binApi = api.enhanceEndpoints({ addTagTypes: ['Document'] }).injectEndpoints({
  endpoints: (build) => ({
    switchboardSetBin: build.mutation<null, BinChange>({
      async queryFn({ model, ids, inBin }, _api, _options, request) {
        const data = { trashed_at: inBin ? new Date().toISOString() : null };
        for (const id of ids) {
          const url = `/content-manager/collection-types/${model}/${id}`;
          const { error } = await request({ url, method: 'PUT', data });
          if (error) return { error };
        }
        return { data: null };
      },
      invalidatesTags: (_result, _error, { model, ids }) =>
        [`${model}_LIST`, ...ids.map((one) => `${model}_${one}`)].map((id) => ({
          type: 'Document' as const,
          id,
        })),
    }),
  }),
});

export const { useSwitchboardSetBinMutation: useSetBin } = binApi;
