import { MODULE_IDS, type ModuleId } from '../../../shared/contracts/modules';
import type { CatalogueEvent, EventSummary } from '../../../shared/contracts/webhooks';
import type { EventMap } from '../hooks';

import type { App } from '../app';
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

const alarm = (label: string, description: string, reason: string) => ({
  label,
  group: 'Webhooks',
  description,
  schema,
  example: {
    webhook: { id: 7, name: 'Newsletter', url: 'https://newsletter.example/hooks' },
    reason,
  },
});

/** Alarms about a webhook; docs/contract-webhooks.md#being-told. */
export type WebhookAlarm = 'failing' | 'recovered' | 'disabled';
export type AlarmEvent = `webhook.${WebhookAlarm}`;

/** Events about the webhooks themselves; none is sent to the one that it is about. */
export const OPERATIONAL_EVENTS = {
  'webhook.failing': alarm(
    'Webhook failing',
    'Another webhook fails for the first time since its last success.',
    'Attempts have failed since 2026-11-22T12:04:00.000+00:00: http_500.'
  ),
  'webhook.recovered': alarm(
    'Webhook recovered',
    'Another webhook that was failing succeeds again.',
    'Attempts succeed again.'
  ),
  'webhook.disabled': alarm(
    'Webhook switched off',
    'Another webhook was switched off because its deliveries fail.',
    'Switched off after 20 failed deliveries in a row.'
  ),
} satisfies EventMap & Record<AlarmEvent, unknown>;

/** Names of events: words in lower case, joined with dots. */
const EVENT_NAME = /^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$/;
export const EVENT_NAME_MAX = 100;

export const isEventName = (name: unknown): name is string =>
  typeof name === 'string' && name.length <= EVENT_NAME_MAX && EVENT_NAME.test(name);

export const PING = 'ping';

/** The event of a test, to which no webhook can subscribe. */
const PING_DECLARATION: EventMap = {
  [PING]: {
    label: 'Test',
    group: 'Test',
    description: 'A test is sent, on the screen or by the API. It cannot be subscribed to.',
    schema: {
      type: 'object',
      required: ['webhook_id', 'message'],
      properties: { webhook_id: { type: 'integer' }, message: { type: 'string' } },
    },
    example: { webhook_id: 1, message: 'This is a test from Switchboard.' },
  },
};

/** The plugins' declarations, unchecked: each subscribed write asks for them. */
export const declarations = (app: App): Promise<EventMap> =>
  app.hooks.get('service_crm_webhook_events').call({
    ...PING_DECLARATION,
    ...OPERATIONAL_EVENTS,
  });

/** Every event that is declared, whether its module is on or not. */
export const declaredEvents = async (app: App): Promise<EventMap> =>
  Object.fromEntries(
    Object.entries(await declarations(app)).filter(
      ([name, declared]) => isEventName(name) && typeof declared === 'object' && declared !== null
    )
  );

const isModuleId = (id: string): id is ModuleId => (MODULE_IDS as readonly string[]).includes(id);

/** The module that keeps an event from being sent while these are on; null: none, or an unknown one. */
export const moduleOff = (declared: EventMap, event: string, enabled: ReadonlySet<ModuleId>) => {
  const module = Object.hasOwn(declared, event) ? declared[event]?.module : undefined;
  return module === undefined || !isModuleId(module) || enabled.has(module) ? null : module;
};

export const summaryOfEvent = ({
  schema: _schema,
  example: _example,
  ...event
}: CatalogueEvent): EventSummary => event;

/** Every event that can be chosen now; the answer of `GET /webhooks/events`. */
export const chooseableEvents = async (app: App): Promise<CatalogueEvent[]> => {
  const [declared, enabled] = [await declaredEvents(app), await app.modules.enabled()];
  return Object.entries(declared)
    .filter(([name]) => name !== PING && moduleOff(declared, name, enabled) === null)
    .map(([event, { label, group, module, description, schema, example }]) => ({
      event,
      label: String(label ?? event),
      group: String(group ?? 'Other'),
      module: module ?? null,
      description: description ?? null,
      schema: schema ?? null,
      example: example ?? null,
    }));
};
