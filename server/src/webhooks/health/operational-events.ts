import type { EventMap } from '../../hooks';

const GROUP = 'Webhooks';

const schema = {
  type: 'object',
  required: ['webhook', 'reason'],
  properties: {
    webhook: {
      type: 'object',
      required: ['id', 'name', 'url'],
      properties: {
        id: { type: 'integer' },
        name: { type: 'string' },
        url: { type: 'string' },
      },
    },
    reason: { type: 'string' },
  },
};

const exampleOf = (reason: string): object => ({
  webhook: { id: 7, name: 'Newsletter', url: 'https://newsletter.example/hooks' },
  reason,
});

/** What is told of a webhook; docs/contract-webhooks.md#being-told. */
export const WEBHOOK_TURNS = ['failing', 'recovered', 'disabled'] as const;
export type WebhookTurn = (typeof WEBHOOK_TURNS)[number];
export type TurnEvent = `webhook.${WebhookTurn}`;

/** Events about the webhooks themselves; none is sent to the one that it is about. */
export const OPERATIONAL_EVENTS = {
  'webhook.failing': {
    label: 'Webhook fails',
    group: GROUP,
    description: 'The first attempt of another webhook after its last success failed.',
    schema,
    example: exampleOf('Attempts fail since 2026-11-22T12:04:00.000+00:00: http_500.'),
  },
  'webhook.recovered': {
    label: 'Webhook recovered',
    group: GROUP,
    description: 'An attempt of another webhook succeeded that had failed before.',
    schema,
    example: exampleOf('Attempts succeed again.'),
  },
  'webhook.disabled': {
    label: 'Webhook switched off',
    group: GROUP,
    description: 'Another webhook was switched off, because its deliveries fail.',
    schema,
    example: exampleOf('Switched off after 20 failed deliveries in a row.'),
  },
} satisfies EventMap & Record<TurnEvent, unknown>;

export const isTurnEvent = (event: string): boolean => Object.hasOwn(OPERATIONAL_EVENTS, event);
