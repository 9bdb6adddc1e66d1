import type { Core } from '@strapi/strapi';
import { CRM_EVENTS } from '../../../../server/src/crm/catalogue';
import * as entries from '../../../../server/src/entries/catalogue';
import { ENTRY_EVENTS } from '../../../../server/src/entries/rules';
import { createDescriber } from '../../../../server/src/entries/types';
import type { App } from '../../../../server/src/app';
import { type EventMap, Hooks } from '../../../../server/src/hooks';
import { declarePosEvents } from '../../../../server/src/pos/processing/events';
import { declareStockEvents } from '../../../../server/src/stock/ledger';
import { declaredEvents } from '../../../../server/src/webhooks/catalogue';

/** Every event the plugin declares, by name, through the hook that a site collects them with. */
export const catalogue = async (): Promise<EventMap> => {
  const { sampleEvents } = await import('../../../../scripts/lib/sample-events.mjs');
  const registry = new Map<string, unknown>();
  const strapi = { log: console, get: () => registry } as unknown as Core.Strapi;
  const hooks = new Hooks(strapi);
  const app = { strapi, hooks } as unknown as App;
  hooks.register();
  hooks.get('service_crm_webhook_events').register((map) => ({ ...map, ...CRM_EVENTS }));
  declareStockEvents(app);
  declarePosEvents(app);
  hooks.get('service_crm_webhook_events').register((map) => ({
    ...map,
    ...sampleEvents({ ...entries, createDescriber, ENTRY_EVENTS }),
  }));
  return declaredEvents(app);
};
