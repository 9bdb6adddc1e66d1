import type { Core } from '@strapi/strapi';
import type { CatalogueAnswer } from '../../../../shared/contracts/till-answers';
import { currentExecutor } from '../../database/connection';
import { type CatalogueAsked, readCatalogue } from '../../stock/catalogue';
import { digestOf } from '../../stock/digest';
import { defaultLocation } from '../../stock/locations';
import { productFieldsText } from '../../stock/product-facts';
import type { CatalogueRequest } from '../rules/envelopes';
import { type ConnectionRow, mappedLocations } from '../tables';
import { schemaInvalid } from './answers';

/** A location as the catalogue names it; the single store has no name for its own. */
interface Shelf {
  ref: string | null;
  location: number;
}

const shelvesOf = async (strapi: Core.Strapi, connection: ConnectionRow): Promise<Shelf[]> => {
  const mapped = mappedLocations(connection);
  if (mapped.length > 0) return mapped;
  const { id } = await defaultLocation(strapi, await currentExecutor(strapi));
  return [{ ref: null, location: Number(id) }];
};

/** `<number of the last change>.<what the answers were made of><the epoch of the number>` */
const CURSOR = /^(\d{1,15})\.([0-9a-f]{8})([0-9a-f]{8})$/;

/** Cursors of other locations, or of other fields of the site's products, start anew. */
const originOf = (strapi: Core.Strapi, id: number, shelves: readonly Shelf[]): string =>
  digestOf(JSON.stringify([id, shelves, productFieldsText(strapi)])).slice(0, 8);

const readCursor = (cursor: string | null, origin: string): CatalogueAsked['after'] => {
  if (cursor === null) return null;
  const [, number, made, epoch] = CURSOR.exec(cursor) ?? [];
  if (number === undefined || epoch === undefined) {
    const message = 'cursor must be the cursor of an answer, as it came, or be left out';
    throw schemaInvalid('catalogue', { field: 'cursor', message });
  }
  return made === origin ? { number: Number(number), epoch } : null;
};

/** Entries of stock in one answer: what a connection of hundreds of locations gets has fewer items. */
const ENTRIES = 20_000;

/**
 * A page of the catalogue (docs/tills.md#the-catalogue).
 * @throws Refusal where the cursor is none
 */
export const answerCatalogue = async (
  strapi: Core.Strapi,
  connection: ConnectionRow,
  { cursor, limit }: CatalogueRequest
): Promise<CatalogueAnswer> => {
  const shelves = await shelvesOf(strapi, connection);
  const origin = originOf(strapi, Number(connection.id), shelves);
  const page = await readCatalogue(strapi, {
    after: readCursor(cursor, origin),
    limit: Math.min(limit, Math.max(1, Math.floor(ENTRIES / shelves.length))),
    locations: [...new Set(shelves.map(({ location }) => location))],
  });
  return {
    ok: true,
    items: page.items.map(({ quantities, ...item }) => ({
      sku: item.sku,
      gtin: item.gtin,
      name: item.name,
      price: item.price,
      currency: item.currency,
      stock: shelves.map(({ ref, location }) => ({
        location_ref: ref,
        quantity: quantities.get(location) ?? 0,
      })),
      deleted: item.deleted,
    })),
    cursor: `${page.last}.${origin}${page.epoch}`,
    has_more: page.hasMore,
  };
};
