import type { HealthReport } from '../../../shared/contracts/overview';
import type {
  CatalogueEvent,
  Delivery,
  DeliveryStatus,
  Page,
  TestResult,
  Webhook,
  WebhookInput,
  WebhookWithSecret,
} from '../../../shared/contracts/webhooks';
import { api, everyPage, type One, queryString } from './api';

export interface DeliveryFilter {
  webhookId: number;
  status?: DeliveryStatus;
  event?: string;
  page?: number;
  perPage?: number;
}

const oneWebhook = (id: number) => ({ type: 'SwitchboardWebhook' as const, id });

const webhooksApi = api.injectEndpoints({
  endpoints: (build) => ({
    switchboardWebhooks: build.query<Webhook[], void>({
      queryFn: (_argument, _api, _extra, baseQuery) =>
        everyPage(baseQuery, '/switchboard/webhooks'),
      providesTags: ['SwitchboardWebhook'],
    }),
    switchboardWebhook: build.query<WebhookWithSecret, number>({
      query: (id) => `/switchboard/webhooks/${id}`,
      transformResponse: ({ data }: One<WebhookWithSecret>) => data,
      providesTags: (_result, _error, id) => [oneWebhook(id)],
    }),
    switchboardCreateWebhook: build.mutation<WebhookWithSecret, WebhookInput>({
      query: (data) => ({ url: '/switchboard/webhooks', method: 'POST', data }),
      transformResponse: ({ data }: One<WebhookWithSecret>) => data,
      invalidatesTags: ['SwitchboardWebhook', 'SwitchboardHealth'],
    }),
    switchboardUpdateWebhook: build.mutation<Webhook, { id: number } & Partial<WebhookInput>>({
      query: ({ id, ...data }) => ({ url: `/switchboard/webhooks/${id}`, method: 'PUT', data }),
      transformResponse: ({ data }: One<Webhook>) => data,
      invalidatesTags: ['SwitchboardWebhook', 'SwitchboardDelivery', 'SwitchboardHealth'],
    }),
    switchboardDeleteWebhook: build.mutation<unknown, number>({
      query: (id) => ({ url: `/switchboard/webhooks/${id}`, method: 'DELETE' }),
      invalidatesTags: ['SwitchboardHealth'],
      // The list alone: whoever still shows the deleted one must not ask for it again.
      async onQueryStarted(id, { dispatch, queryFulfilled }) {
        await queryFulfilled.catch(() => undefined);
        dispatch(
          webhooksApi.util.updateQueryData('switchboardWebhooks', undefined, (list) =>
            list.filter((webhook) => webhook.id !== id)
          )
        );
      },
    }),
    switchboardRotateSecret: build.mutation<{ secret: string }, number>({
      query: (id) => ({ url: `/switchboard/webhooks/${id}/secret`, method: 'POST', data: {} }),
      transformResponse: ({ data }: One<{ secret: string }>) => data,
      invalidatesTags: (_result, _error, id) => [oneWebhook(id)],
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
    switchboardEvents: build.query<CatalogueEvent[], void>({
      query: () => '/switchboard/webhooks/events',
      transformResponse: ({ data }: One<CatalogueEvent[]>) => data,
      providesTags: ['SwitchboardModules'],
    }),
    switchboardDeliveries: build.query<Page<Delivery>, DeliveryFilter>({
      query: ({ webhookId, status, event, page = 1, perPage = 50 }) =>
        `/switchboard/webhooks/${webhookId}/deliveries${queryString({
          status,
          event,
          page,
          per_page: perPage,
        })}`,
      providesTags: ['SwitchboardDelivery'],
    }),
    switchboardDelivery: build.query<Delivery, number>({
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
      invalidatesTags: ['SwitchboardDelivery', 'SwitchboardHealth', 'SwitchboardWebhook'],
    }),
    switchboardHealth: build.query<HealthReport, void>({
      query: () => '/switchboard/webhooks-health',
      transformResponse: ({ data }: One<HealthReport>) => data,
      providesTags: ['SwitchboardHealth'],
    }),
  }),
});

export const {
  useSwitchboardWebhooksQuery: useWebhooks,
  useSwitchboardWebhookQuery: useWebhook,
  useSwitchboardCreateWebhookMutation: useCreateWebhook,
  useSwitchboardUpdateWebhookMutation: useUpdateWebhook,
  useSwitchboardDeleteWebhookMutation: useDeleteWebhook,
  useSwitchboardRotateSecretMutation: useRotateSecret,
  useSwitchboardTestWebhookMutation: useTestWebhook,
  useSwitchboardEventsQuery: useCatalogue,
  useSwitchboardDeliveriesQuery: useDeliveries,
  useSwitchboardDeliveryQuery: useDelivery,
  useSwitchboardRetryDeliveryMutation: useRetryDelivery,
  useSwitchboardHealthQuery: useHealth,
} = webhooksApi;
