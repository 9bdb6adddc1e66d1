import { findInChunks } from '../database/matching-documents';
import type { EventMap } from '../hooks';
import { type EventToPublish, getPublisher } from '../webhooks/publish';
import type { LevelChange } from './ledger';
import {
  type ItemRow,
  ITEMS_TABLE,
  type LevelRow,
  LEVELS_TABLE,
  type LocationRow,
  LOCATIONS_TABLE,
} from './tables';
import type { App } from '../app';
import type { Tx } from '../database/db';

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

const STOCK_EVENT_NAMES = Object.keys(STOCK_EVENTS);

/** Declares events in the catalogue, as any other plugin would. */
export const declareEvents = (app: App, declared: EventMap): void => {
  app.hooks.get('service_crm_webhook_events').register(function declarePointOfSale(map) {
    return { ...map, ...declared };
  });
};

export const declareStockEvents = (app: App): void => {
  declareEvents(app, STOCK_EVENTS);
};

/**
 * What a transaction did to the shelves, as the events that somebody hears; they are published with
 * everything else the transaction has to tell.
 */
export const stockChangeEvents = async (
  tx: Tx,
  app: App,
  changes: readonly LevelChange[]
): Promise<EventToPublish[]> => {
  if (changes.length === 0) return [];
  const heard = await getPublisher(app).subscribed(STOCK_EVENT_NAMES);
  if (heard.size === 0) return [];
  const byId = <Row extends { id: number }>(rows: readonly Row[]) =>
    new Map(rows.map((row) => [Number(row.id), row]));
  const items = byId(
    await findInChunks<ItemRow>(
      changes.map(({ item }) => item),
      (some) => tx.table(ITEMS_TABLE).whereIn('id', some)
    )
  );
  const marked = byId(
    await findInChunks<LevelRow>(
      changes.map(({ levelId }) => levelId),
      (some) => tx.table(LEVELS_TABLE).whereNotNull('low_at').whereIn('id', some)
    )
  );
  const locations = byId((await tx.table(LOCATIONS_TABLE)) as LocationRow[]);
  return changes.flatMap(({ item: itemId, location: locationId, levelId, before, after }) => {
    const item = items.get(itemId);
    const location = locations.get(locationId);
    if (!item || !location) return [];
    const data = {
      item: { id: Number(item.id), sku: item.sku, gtin: item.gtin, name: item.name },
      location: { id: Number(location.id), code: location.code, name: location.name },
      quantity: after,
      previous_quantity: before,
    };
    const lowAt = Number(marked.get(Number(levelId))?.low_at ?? item.low_at ?? 0);
    const events: EventToPublish[] = [];
    if (heard.has('stock.changed')) events.push({ event: 'stock.changed', data });
    if (heard.has('stock.low') && after <= lowAt && before > lowAt) {
      events.push({ event: 'stock.low', data: { ...data, low_at: lowAt } });
    }
    return events;
  });
};
