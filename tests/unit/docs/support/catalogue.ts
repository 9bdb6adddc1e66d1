import type { Core } from '@strapi/strapi';
import { CRM_EVENTS } from '../../../../server/src/crm/catalogue';
import { sampleEvents } from '../../../../server/src/entries/catalogue';
import { type EventMap, getHook, registerHooks } from '../../../../server/src/hooks';
import { declarePosEvents } from '../../../../server/src/pos/processing/events';
import { declareStockEvents } from '../../../../server/src/stock/events';
import { declaredEvents } from '../../../../server/src/webhooks/catalogue';

/** Every event the plugin declares, by name, through the hook that a site collects them with. */
export const catalogue = (): Promise<EventMap> => {
  const hooks = new Map<string, unknown>();
  const strapi = {
    log: console,
    get: () => hooks,
  } as unknown as Core.Strapi;
  registerHooks(strapi);
  getHook(strapi, 'service_crm_webhook_events').register((map) => ({ ...map, ...CRM_EVENTS }));
  declareStockEvents(strapi);
  declarePosEvents(strapi);
  getHook(strapi, 'service_crm_webhook_events').register((map) => ({ ...map, ...sampleEvents() }));
  return declaredEvents(strapi);
};
