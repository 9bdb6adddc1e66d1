import type { Core } from '@strapi/strapi';
import { createEventHook, type EventHook, type OwnEventHook } from './event-hook';
import { daysRules, eventsRules, payloadRules, requestRules } from './filter-rules';
import { createAction, createFilter, type IsolatedHook, REST_INSIDE_WRITES } from './isolated-hook';
import type { EventMap, HookTypes, PayloadFilterValue, RequestFilterValue } from './types';

export type * from './types';
export type { ToldEvent } from './event-hook';

const eventHooks = new WeakMap<Core.Strapi, OwnEventHook>();

/**
 * Puts the seven hooks of docs/contract-webhooks.md#hooks into the host's registry, so that any plugin can say
 * `strapi.hook('service_crm_webhook_payload').register(handler)` in its `bootstrap()`.
 *
 * @param send  what calling `service_crm_webhook` does; nothing for who wants the catalogue alone
 */
export const registerHooks = (
  strapi: Core.Strapi,
  send: (event: unknown, data: unknown) => Promise<void> = async () => undefined
): void => {
  const { log } = strapi;
  const eventHook = createEventHook('service_crm_webhook', log, send);
  eventHooks.set(strapi, eventHook);
  const named = <N extends keyof HookTypes>(name: N, create: (name: N) => unknown): void => {
    strapi.get('hooks').set(name, create(name) as never);
  };
  named('service_crm_webhook_events', (name) =>
    createFilter<EventMap>(name, log, undefined, eventsRules as never, REST_INSIDE_WRITES)
  );
  named('service_crm_webhook', () => eventHook);
  named('service_crm_webhook_payload', (name) =>
    createFilter<PayloadFilterValue | null>(name, log, undefined, payloadRules, REST_INSIDE_WRITES)
  );
  named('service_crm_webhook_request_args', (name) =>
    createFilter<RequestFilterValue>(name, log, undefined, requestRules)
  );
  named('service_crm_webhook_delivered', (name) => createAction(name, log));
  named('service_crm_webhook_allow_local', (name) =>
    createFilter<boolean>(name, log, undefined, undefined, REST_INSIDE_WRITES)
  );
  named('service_crm_webhook_log_days', (name) =>
    createFilter<number>(name, log, undefined, daysRules)
  );
};

/** One of the plugin's hooks, typed. */
export const getHook = <N extends keyof HookTypes>(
  strapi: Core.Strapi,
  name: N
): N extends 'service_crm_webhook'
  ? EventHook
  : IsolatedHook<HookTypes[N]['in'], HookTypes[N]['out']> => strapi.get('hooks').get(name) as never;

/** The one that tells its handlers, whatever another plugin put into the registry in its place. */
export const getEventHook = (strapi: Core.Strapi): OwnEventHook => {
  const hook = eventHooks.get(strapi);
  if (!hook) throw new Error('The hooks of the plugin switchboard are not registered.');
  return hook;
};
