import type { DeliveryFigures, HealthReport } from '../../../shared/contracts/overview';
import type {
  CatalogueEvent,
  EventSummary,
  CursorPage,
  Delivery,
  DeliverySummary,
  FailureCauses,
  FilterPreview,
  FilterPreviewInput,
  JournalPage,
  ManagedWebhook,
  Recovery,
  RecoveryFilter,
  RecoveryPreview,
  WebhookChanges,
  Page,
  TestResult,
  WebhookInput,
  WebhookSummary,
  WebhookWithSecret,
} from '../../../shared/contracts/webhooks';
import { haveMoved } from '../utils/recoveries';
import { api, type One, queryString } from './api';

/** The log's filters as the routes take them; docs/management-api.md#finding-deliveries. */
export interface LogFilter {
  webhook?: number;
  event?: string;
  /** One, or several with commas between them. */
  state?: string;
  cause?: string;
  subject_type?: string;
  subject_id?: string;
  from?: string;
  to?: string;
  q?: string;
  /** Only the deliveries of this recovery. */
  recovery?: number;
}

export interface LogPage extends LogFilter {
  cursor?: string;
  limit?: number;
}

export interface WebhookListFilter {
  q?: string;
  sort?: string;
  page?: number;
  perPage?: number;
}

export interface FiguresFilter {
  webhook?: number;
  from: string;
  to: string;
}

/** The body of a replay; docs/management-api.md#replaying. */
export interface ReplayRange {
  id: number;
  from: string;
  to: string;
  events?: string[];
}

const oneWebhook = (id: number) => ({ type: 'SwitchboardWebhook' as const, id });

const webhooksApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardWebhookPage: build.query<Page<WebhookSummary>, WebhookListFilter>({
      query: ({ perPage, ...filter }) =>
        `/switchboard/webhooks${queryString({ ...filter, per_page: perPage, view: 'summary' })}`,
      providesTags: ['SwitchboardWebhookList'],
    }),
    switchboardWebhook: build.query<ManagedWebhook, number>({
      query: (id) => `/switchboard/webhooks/${id}?secrets=false`,
      transformResponse: ({ data }: One<ManagedWebhook>) => data,
      providesTags: (_result, _error, id) => [oneWebhook(id)],
    }),
    switchboardReveal: build.mutation<WebhookWithSecret, number>({
      query: (id) => `/switchboard/webhooks/${id}`,
      transformResponse: ({ data }: One<WebhookWithSecret>) => data,
    }),
    switchboardCreateWebhook: build.mutation<WebhookWithSecret, WebhookInput>({
      query: (data) => ({ url: '/switchboard/webhooks', method: 'POST', data }),
      transformResponse: ({ data }: One<WebhookWithSecret>) => data,
      invalidatesTags: ['SwitchboardWebhook', 'SwitchboardWebhookList', 'SwitchboardHealth'],
    }),
    switchboardUpdateWebhook: build.mutation<ManagedWebhook, { id: number } & WebhookChanges>({
      query: ({ id, ...data }) => ({ url: `/switchboard/webhooks/${id}`, method: 'PUT', data }),
      transformResponse: ({ data }: One<ManagedWebhook>) => data,
      invalidatesTags: [
        'SwitchboardWebhook',
        'SwitchboardWebhookList',
        'SwitchboardDelivery',
        'SwitchboardHealth',
      ],
    }),
    switchboardDeleteWebhook: build.mutation<unknown, number>({
      query: (id) => ({ url: `/switchboard/webhooks/${id}`, method: 'DELETE' }),
      // Only the lists: a page that still shows the deleted webhook must not load it again.
      invalidatesTags: ['SwitchboardWebhookList', 'SwitchboardHealth'],
    }),
    switchboardRotateSecret: build.mutation<{ secret: string }, { id: number; hours: number }>({
      query: ({ id, hours }) => ({
        url: `/switchboard/webhooks/${id}/secret`,
        method: 'POST',
        data: { overlap_hours: hours },
      }),
      transformResponse: ({ data }: One<{ secret: string }>) => data,
      invalidatesTags: (_result, _error, { id }) => [oneWebhook(id)],
    }),
    switchboardPreviewFilter: build.mutation<FilterPreview, FilterPreviewInput & { id: number }>({
      query: ({ id, ...data }) => ({
        url: `/switchboard/webhooks/${id}/filter/preview`,
        method: 'POST',
        data,
      }),
      transformResponse: ({ data }: One<FilterPreview>) => data,
    }),
    switchboardTestWebhook: build.mutation<TestResult, { id: number; event?: string }>({
      query: ({ id, event }) => ({
        url: `/switchboard/webhooks/${id}/test`,
        method: 'POST',
        data: event ? { event } : {},
      }),
      transformResponse: ({ data }: One<TestResult>) => data,
      invalidatesTags: ['SwitchboardDelivery', 'SwitchboardHealth'],
    }),
    switchboardEventNames: build.query<EventSummary[], void>({
      query: () => '/switchboard/webhooks/events?view=summary',
      transformResponse: ({ data }: One<EventSummary[]>) => data,
      providesTags: ['SwitchboardModules'],
    }),
    switchboardEvents: build.query<CatalogueEvent[], void>({
      query: () => '/switchboard/webhooks/events',
      transformResponse: ({ data }: One<CatalogueEvent[]>) => data,
      providesTags: ['SwitchboardModules'],
    }),
    switchboardLog: build.query<CursorPage<DeliverySummary>, LogPage>({
      query: (page) =>
        `/switchboard/webhook-deliveries${queryString({ ...page, view: 'summary' })}`,
      providesTags: ['SwitchboardDelivery'],
    }),
    switchboardCauses: build.query<FailureCauses, LogFilter>({
      query: (filter) =>
        `/switchboard/webhook-deliveries/causes${queryString({ ...filter, by: 'cause' })}`,
      providesTags: ['SwitchboardDelivery'],
    }),
    switchboardDelivery: build.query<Delivery, number | string>({
      query: (id) => `/switchboard/webhook-deliveries/${id}`,
      transformResponse: ({ data }: One<Delivery>) => data,
      providesTags: ['SwitchboardDelivery'],
    }),
    switchboardRetryDelivery: build.mutation<Delivery, number>({
      query: (id) => ({
        url: `/switchboard/webhook-deliveries/${id}/retry`,
        method: 'POST',
        data: {},
      }),
      transformResponse: ({ data }: One<Delivery>) => data,
      invalidatesTags: [
        'SwitchboardDelivery',
        'SwitchboardHealth',
        'SwitchboardWebhook',
        'SwitchboardWebhookList',
      ],
    }),
    switchboardEndWait: build.mutation<Delivery, { id: number; action: 'skip' | 'release' }>({
      query: ({ id, action }) => ({
        url: `/switchboard/webhook-deliveries/${id}/${action}`,
        method: 'POST',
        data: {},
      }),
      transformResponse: ({ data }: One<Delivery>) => data,
      invalidatesTags: ['SwitchboardDelivery', 'SwitchboardHealth'],
    }),
    switchboardRecoveries: build.query<Page<Recovery>, void>({
      query: () => '/switchboard/webhook-recoveries?per_page=5',
      providesTags: ['SwitchboardRecovery'],
      // The sent deliveries leave the lists of failed ones, which no query on this page has reloaded.
      async onQueryStarted(_none, { dispatch, getCacheEntry, queryFulfilled }) {
        const before = getCacheEntry().data?.data;
        const now = await queryFulfilled.then(
          ({ data }) => data.data,
          () => undefined
        );
        if (before === undefined || now === undefined || !haveMoved(before, now)) return;
        dispatch(
          api.util.invalidateTags([
            'SwitchboardDelivery',
            'SwitchboardHealth',
            'SwitchboardWebhookList',
          ])
        );
      },
    }),
    switchboardPreviewRecovery: build.mutation<RecoveryPreview, RecoveryFilter>({
      query: (filter) => ({
        url: '/switchboard/webhook-recoveries/preview',
        method: 'POST',
        data: { filter },
      }),
      transformResponse: ({ data }: One<RecoveryPreview>) => data,
    }),
    switchboardStartRecovery: build.mutation<Recovery, string>({
      query: (preview_id) => ({
        url: '/switchboard/webhook-recoveries',
        method: 'POST',
        data: { preview_id },
      }),
      transformResponse: ({ data }: One<Recovery>) => data,
      invalidatesTags: ['SwitchboardRecovery', 'SwitchboardDelivery', 'SwitchboardHealth'],
    }),
    switchboardSteerRecovery: build.mutation<
      Recovery,
      { id: number; action: 'pause' | 'resume' | 'cancel' }
    >({
      query: ({ id, action }) => ({
        url: `/switchboard/webhook-recoveries/${id}/${action}`,
        method: 'POST',
        data: {},
      }),
      transformResponse: ({ data }: One<Recovery>) => data,
      invalidatesTags: ['SwitchboardRecovery', 'SwitchboardDelivery', 'SwitchboardHealth'],
    }),
    switchboardJournal: build.query<JournalPage, { after: string; limit: number }>({
      query: (page) => `/switchboard/webhooks/journal${queryString(page)}`,
      providesTags: ['SwitchboardDelivery'],
    }),
    switchboardPreviewReplay: build.mutation<{ matching: number }, ReplayRange>({
      query: ({ id, ...range }) => ({
        url: `/switchboard/webhooks/${id}/replay`,
        method: 'POST',
        data: { ...range, dry_run: true },
      }),
      transformResponse: ({ data }: One<{ matching: number }>) => data,
    }),
    switchboardReplay: build.mutation<Recovery, ReplayRange>({
      query: ({ id, ...data }) => ({
        url: `/switchboard/webhooks/${id}/replay`,
        method: 'POST',
        data,
      }),
      transformResponse: ({ data }: One<Recovery>) => data,
      invalidatesTags: ['SwitchboardRecovery', 'SwitchboardDelivery', 'SwitchboardHealth'],
    }),
    switchboardHealth: build.query<HealthReport, number | void>({
      query: (webhook) =>
        `/switchboard/webhooks-health${queryString({ webhook: webhook ?? undefined })}`,
      transformResponse: ({ data }: One<HealthReport>) => data,
      providesTags: ['SwitchboardHealth'],
    }),
    switchboardFigures: build.query<DeliveryFigures, FiguresFilter>({
      query: (filter) => `/switchboard/delivery-figures${queryString({ ...filter })}`,
      transformResponse: ({ data }: One<DeliveryFigures>) => data,
      providesTags: ['SwitchboardHealth'],
    }),
  }),
});

export const {
  useSwitchboardWebhookPageQuery: useWebhookPage,
  useSwitchboardWebhookQuery: useWebhook,
  useLazySwitchboardWebhookQuery: useLookUpWebhook,
  useSwitchboardRevealMutation: useReveal,
  useSwitchboardCreateWebhookMutation: useCreateWebhook,
  useSwitchboardUpdateWebhookMutation: useUpdateWebhook,
  useSwitchboardDeleteWebhookMutation: useDeleteWebhook,
  useSwitchboardRotateSecretMutation: useRotateSecret,
  useSwitchboardTestWebhookMutation: useTestWebhook,
  useSwitchboardEventNamesQuery: useEventNames,
  useSwitchboardEventsQuery: useCatalogue,
  useSwitchboardLogQuery: useLog,
  useSwitchboardCausesQuery: useCauses,
  useSwitchboardDeliveryQuery: useDelivery,
  useSwitchboardRetryDeliveryMutation: useRetryDelivery,
  useSwitchboardEndWaitMutation: useEndWait,
  useSwitchboardRecoveriesQuery: useRecoveries,
  useSwitchboardPreviewRecoveryMutation: usePreviewRecovery,
  useSwitchboardStartRecoveryMutation: useStartRecovery,
  useSwitchboardSteerRecoveryMutation: useSteerRecovery,
  useSwitchboardJournalQuery: useJournal,
  useSwitchboardPreviewReplayMutation: usePreviewReplay,
  useSwitchboardReplayMutation: useReplay,
  useSwitchboardHealthQuery: useHealth,
  useSwitchboardFiguresQuery: useFigures,
  useSwitchboardPreviewFilterMutation: usePreviewFilter,
} = webhooksApi;
