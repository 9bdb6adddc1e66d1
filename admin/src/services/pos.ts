import type {
  Connection,
  ConnectionInput,
  ConnectionRefusal,
  ConnectionSummary,
  ConnectionWithSecret,
  LoggedRefusal,
  PosEvent,
  PosEventDetail,
  PosEventKind,
  PosEventState,
  PosEventSummary,
} from '../../../shared/contracts/pos';
import type { Page } from '../../../shared/contracts/webhooks';
import { api, everyPage, type One, queryString } from './api';

export interface EventFilter {
  /** Any of these. */
  states?: readonly PosEventState[];
  /** Sales alone whose customer could not be attached. */
  unattached?: true | undefined;
  kind?: PosEventKind;
  connection?: number;
  externalId?: string;
  /** Part of an id, an SKU or a customer, or an amount. */
  q?: string;
  page?: number;
  perPage?: number;
}

const eventsPath = (
  { states, externalId, perPage, unattached, ...filter }: EventFilter,
  view?: 'summary'
): string =>
  `/switchboard/pos-events${queryString({
    ...filter,
    state: states?.join(','),
    external_id: externalId,
    customer_error: unattached && 'true',
    per_page: perPage,
    view,
  })}`;

const posApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardConnections: build.query<ConnectionSummary[], void>({
      queryFn: (_argument, _api, _extra, baseQuery) =>
        everyPage(baseQuery, '/switchboard/connections', { view: 'summary' }),
      providesTags: ['SwitchboardConnection'],
    }),
    switchboardConnection: build.query<Connection, number>({
      query: (id) => `/switchboard/connections/${id}`,
      transformResponse: ({ data }: One<Connection>) => data,
      providesTags: ['SwitchboardConnection'],
    }),
    switchboardCreateConnection: build.mutation<ConnectionWithSecret, ConnectionInput>({
      query: (data) => ({ url: '/switchboard/connections', method: 'POST', data }),
      transformResponse: ({ data }: One<ConnectionWithSecret>) => data,
      invalidatesTags: ['SwitchboardConnection'],
    }),
    switchboardUpdateConnection: build.mutation<
      Connection,
      { id: number } & Partial<ConnectionInput>
    >({
      query: ({ id, ...data }) => ({ url: `/switchboard/connections/${id}`, method: 'PUT', data }),
      transformResponse: ({ data }: One<Connection>) => data,
      // A location that is mapped now lets waiting records go on.
      invalidatesTags: ['SwitchboardConnection', 'SwitchboardEvent', 'SwitchboardStock'],
    }),
    switchboardDeleteConnection: build.mutation<unknown, number>({
      query: (id) => ({ url: `/switchboard/connections/${id}`, method: 'DELETE' }),
      async onQueryStarted(id, { dispatch, queryFulfilled }) {
        await queryFulfilled.then(
          () =>
            dispatch(
              posApi.util.updateQueryData('switchboardConnections', undefined, (list) =>
                list.filter((connection) => connection.id !== id)
              )
            ),
          () => undefined
        );
      },
    }),
    switchboardRotateConnection: build.mutation<{ secret: string }, number>({
      query: (id) => ({ url: `/switchboard/connections/${id}/secret`, method: 'POST', data: {} }),
      transformResponse: ({ data }: One<{ secret: string }>) => data,
    }),
    switchboardRevokeConnection: build.mutation<unknown, number>({
      query: (id) => ({ url: `/switchboard/connections/${id}/revoke`, method: 'POST', data: {} }),
      invalidatesTags: ['SwitchboardConnection'],
    }),
    switchboardRefusals: build.query<ConnectionRefusal[], number>({
      query: (id) => `/switchboard/connections/${id}/refusals`,
      transformResponse: ({ data }: One<ConnectionRefusal[]>) => data,
      providesTags: ['SwitchboardConnection'],
    }),
    switchboardLoggedRefusals: build.query<
      Page<LoggedRefusal>,
      { connection: number | undefined; page: number; perPage: number }
    >({
      query: ({ perPage, ...filter }) =>
        `/switchboard/pos-refusals${queryString({ ...filter, per_page: perPage })}`,
      providesTags: ['SwitchboardConnection'],
    }),
    switchboardPosEvents: build.query<Page<PosEvent>, EventFilter>({
      query: (filter) => eventsPath(filter),
      providesTags: ['SwitchboardEvent'],
    }),
    switchboardPosEventList: build.query<Page<PosEventSummary>, EventFilter>({
      query: (filter) => eventsPath(filter, 'summary'),
      providesTags: ['SwitchboardEvent'],
    }),
    switchboardPosEvent: build.query<PosEventDetail, number>({
      query: (id) => `/switchboard/pos-events/${id}`,
      transformResponse: ({ data }: One<PosEventDetail>) => data,
      providesTags: ['SwitchboardEvent'],
    }),
    switchboardReprocess: build.mutation<unknown, number>({
      query: (id) => ({ url: `/switchboard/pos-events/${id}/reprocess`, method: 'POST', data: {} }),
      invalidatesTags: ['SwitchboardEvent', 'SwitchboardStock'],
    }),
    /** Applies a held refund without its sale; 409 if it is not held any more. */
    switchboardAcceptWithoutSale: build.mutation<PosEventDetail, number>({
      query: (id) => ({
        url: `/switchboard/pos-events/${id}/accept-without-sale`,
        method: 'POST',
        data: {},
      }),
      transformResponse: ({ data }: One<PosEventDetail>) => data,
      invalidatesTags: ['SwitchboardEvent', 'SwitchboardStock'],
    }),
  }),
});

export const {
  useSwitchboardConnectionsQuery: useConnections,
  useSwitchboardConnectionQuery: useConnection,
  useSwitchboardCreateConnectionMutation: useCreateConnection,
  useSwitchboardUpdateConnectionMutation: useUpdateConnection,
  useSwitchboardDeleteConnectionMutation: useDeleteConnection,
  useSwitchboardRotateConnectionMutation: useRotateConnection,
  useSwitchboardRevokeConnectionMutation: useRevokeConnection,
  useSwitchboardRefusalsQuery: useRefusals,
  useSwitchboardLoggedRefusalsQuery: useLoggedRefusals,
  useSwitchboardPosEventsQuery: usePosEvents,
  useSwitchboardPosEventListQuery: usePosEventList,
  useSwitchboardPosEventQuery: usePosEvent,
  useSwitchboardReprocessMutation: useReprocess,
  useSwitchboardAcceptWithoutSaleMutation: useAcceptWithoutSale,
} = posApi;
