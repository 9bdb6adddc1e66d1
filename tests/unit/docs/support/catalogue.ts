import type { Core } from '@strapi/strapi';
import { CRM_EVENTS } from '../../../../server/src/crm/catalogue';
import { sampleEvents } from '../../../../server/src/entries/catalogue';
import type { App } from '../../../../server/src/app';
import { type EventMap, Hooks } from '../../../../server/src/hooks';
import { declarePosEvents } from '../../../../server/src/pos/processing/events';
import { declareStockEvents } from '../../../../server/src/stock/ledger';
import { declaredEvents } from '../../../../server/src/webhooks/catalogue';

/** Every event the plugin declares, by name, through the hook that a site collects them with. */
export const catalogue = (): Promise<EventMap> => {
  const registry = new Map<string, unknown>();
  const strapi = { log: console, get: () => registry } as unknown as Core.Strapi;
  const hooks = new Hooks(strapi);
  const app = { strapi, hooks } as unknown as App;
  hooks.register();
  hooks.get('service_crm_webhook_events').register((map) => ({ ...map, ...CRM_EVENTS }));
  declareStockEvents(app);
  declarePosEvents(app);
  hooks.get('service_crm_webhook_events').register((map) => ({ ...map, ...sampleEvents() }));
  return declaredEvents(app);
};
