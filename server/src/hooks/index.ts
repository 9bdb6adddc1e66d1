import type { Core } from '@strapi/strapi';
import { createAction, createFilter, type IsolatedHook } from './isolated-hook';
import type { HookTypes } from './types';

export type * from './types';

const ACTIONS = new Set<keyof HookTypes>(['service_crm_webhook', 'service_crm_webhook_delivered']);

const NAMES: readonly (keyof HookTypes)[] = [
  'service_crm_webhook_events',
  'service_crm_webhook',
  'service_crm_webhook_payload',
  'service_crm_webhook_request_args',
  'service_crm_webhook_delivered',
  'service_crm_webhook_allow_local',
  'service_crm_webhook_log_days',
];

/**
 * Puts the seven hooks of specification 1 into the host's registry, so that any plugin can say
 * `strapi.hook('service_crm_webhook_payload').register(handler)` in its `bootstrap()`.
 */
export const registerHooks = (strapi: Core.Strapi): void => {
  for (const name of NAMES) {
    const create = ACTIONS.has(name) ? createAction : createFilter;
    strapi.get('hooks').set(name, create<unknown>(name, strapi.log));
  }
};

/** One of the plugin's hooks, typed. */
export const getHook = <N extends keyof HookTypes>(
  strapi: Core.Strapi,
  name: N
): IsolatedHook<HookTypes[N]['in'], HookTypes[N]['out']> =>
  strapi.get('hooks').get(name) as unknown as IsolatedHook<HookTypes[N]['in'], HookTypes[N]['out']>;
