import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../database/connection';
import { type EventMap, getHook } from '../hooks';
import { getPublisher } from '../webhooks/publisher';
import type { LevelChange } from './ledger';
import { type ItemRow, ITEMS_TABLE, type LocationRow, LOCATIONS_TABLE } from './tables';

const GROUP = 'Point of sale';

const levelSchema = {
  type: 'object',
  required: ['item', 'location', 'quantity', 'previous_quantity'],
  properties: {
    item: {
      type: 'object',
      properties: {
        id: { type: 'integer' },
        sku: { type: 'string' },
        gtin: { type: ['string', 'null'] },
        name: { type: ['string', 'null'] },
      },
    },
    location: {
      type: 'object',
      properties: {
        id: { type: 'integer' },
        code: { type: 'string' },
        name: { type: 'string' },
      },
    },
    quantity: { type: 'integer' },
    previous_quantity: { type: 'integer' },
    low_at: { type: 'integer' },
  },
};

const example = {
  item: { id: 7, sku: 'MUG-BLUE', gtin: '4006381333931', name: 'Blue mug' },
  location: { id: 1, code: 'main', name: 'Main store' },
  quantity: 12,
  previous_quantity: 14,
};

const STOCK_EVENTS: EventMap = {
  'stock.changed': {
    label: 'Stock changed',
    group: GROUP,
    description:
      'A level is another one than before. Movements that are applied together are one event.',
    schema: levelSchema,
    example,
  },
  'stock.low': {
    label: 'Stock is low',
    group: GROUP,
    description: 'A level fell to the item’s threshold (0 where none is set) or below it.',
    schema: levelSchema,
    example: { ...example, quantity: 0, previous_quantity: 2, low_at: 0 },
  },
};

/** Declares events in the catalogue, as any other plugin would. */
export const declareEvents = (strapi: Core.Strapi, declared: EventMap): void => {
  getHook(strapi, 'service_crm_webhook_events').register(function declarePointOfSale(map) {
    return { ...map, ...declared };
  });
};

export const declareStockEvents = (strapi: Core.Strapi): void => {
  declareEvents(strapi, STOCK_EVENTS);
};

/**
 * Which of these events anybody would hear: a webhook asked, or another plugin listens to the hook.
 * Building payloads that nobody hears would slow every sale down.
 */
export const heardEvents = async (
  strapi: Core.Strapi,
  names: readonly string[]
): Promise<ReadonlySet<string>> => {
  // One handler is the publisher itself.
  if (getHook(strapi, 'service_crm_webhook').getHandlers().length > 1) return new Set(names);
  return getPublisher(strapi).wanted(names);
};

/** Publishes through the public hook, in the transaction of what happened. */
export const publishEvent = (strapi: Core.Strapi, event: string, data: unknown): Promise<void> =>
  getHook(strapi, 'service_crm_webhook').call({ event, data });

/** Tells what a transaction did to the shelves. */
export const publishStockChanges = async (
  strapi: Core.Strapi,
  trx: Executor,
  changes: readonly LevelChange[]
): Promise<void> => {
  if (changes.length === 0) return;
  const heard = await heardEvents(strapi, Object.keys(STOCK_EVENTS));
  if (heard.size === 0) return;
  const items = (await table(strapi, trx, ITEMS_TABLE)
    .select('*')
    .whereIn('id', [...new Set(changes.map(({ item }) => item))])) as ItemRow[];
  const locations = (await table(strapi, trx, LOCATIONS_TABLE).select('*')) as LocationRow[];
  for (const { item: itemId, location: locationId, before, after } of changes) {
    const item = items.find(({ id }) => Number(id) === itemId);
    const location = locations.find(({ id }) => Number(id) === locationId);
    if (!item || !location) continue;
    const data = {
      item: { id: Number(item.id), sku: item.sku, gtin: item.gtin, name: item.name },
      location: { id: Number(location.id), code: location.code, name: location.name },
      quantity: after,
      previous_quantity: before,
    };
    const lowAt = Number(item.low_at ?? 0);
    if (heard.has('stock.changed')) await publishEvent(strapi, 'stock.changed', data);
    if (heard.has('stock.low') && after <= lowAt && before > lowAt) {
      await publishEvent(strapi, 'stock.low', { ...data, low_at: lowAt });
    }
  }
};
