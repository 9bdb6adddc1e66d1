import type {
  Mapping,
  MappingKind,
  Resolved,
  ResolveInput,
  UnknownValue,
} from '../../../shared/contracts/pos-mapping';
import type { Page } from '../../../shared/contracts/webhooks';
import { api, type One, queryString } from './api';

export interface InboxFilter {
  kind?: MappingKind;
  search?: string;
  page?: number;
  perPage?: number;
}

const mappingApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardMappingInbox: build.query<Page<UnknownValue>, InboxFilter>({
      query: ({ perPage, ...filter }) =>
        `/switchboard/mapping-inbox${queryString({ ...filter, per_page: perPage })}`,
      // Waiting values depend on records and items.
      providesTags: ['SwitchboardEvent', 'SwitchboardStock'],
    }),
    switchboardMappings: build.query<Page<Mapping>, { page: number; perPage: number }>({
      query: ({ page, perPage }) =>
        `/switchboard/mapping-inbox/resolved${queryString({ page, per_page: perPage })}`,
      providesTags: ['SwitchboardEvent'],
    }),
    /** Previews a mapping; stores nothing, so it is no mutation. */
    switchboardPreviewMapping: build.query<Resolved, Omit<ResolveInput, 'preview'>>({
      query: (input) => ({
        url: '/switchboard/mapping-inbox/resolve',
        method: 'POST',
        data: { ...input, preview: true },
      }),
      transformResponse: ({ data }: One<Resolved>) => data,
      keepUnusedDataFor: 0,
    }),
    switchboardResolve: build.mutation<Resolved, Omit<ResolveInput, 'preview'>>({
      query: (data) => ({ url: '/switchboard/mapping-inbox/resolve', method: 'POST', data }),
      transformResponse: ({ data }: One<Resolved>) => data,
      invalidatesTags: ['SwitchboardEvent', 'SwitchboardStock'],
    }),
    switchboardUndoMapping: build.mutation<{ id: number; records: number }, number>({
      query: (id) => ({ url: '/switchboard/mapping-inbox/undo', method: 'POST', data: { id } }),
      transformResponse: ({ data }: One<{ id: number; records: number }>) => data,
      invalidatesTags: ['SwitchboardEvent', 'SwitchboardStock'],
    }),
  }),
});

export const {
  useSwitchboardMappingInboxQuery: useMappingInbox,
  useSwitchboardMappingsQuery: useMappings,
  useLazySwitchboardPreviewMappingQuery: usePreviewMapping,
  useSwitchboardResolveMutation: useResolve,
  useSwitchboardUndoMappingMutation: useUndoMapping,
} = mappingApi;
