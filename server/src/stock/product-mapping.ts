import type { Core, UID } from '@strapi/strapi';
import { getOptions } from '../config';
import { type Executor, table } from '../database/connection';
import { readLatest } from '../database/latest';
import type { LevelChange } from './levels';
import { isCurrencyCode } from './product-facts';
import { type ItemRow, ITEMS_TABLE, LEVELS_TABLE } from './tables';

/** A product of the site's own, as the `stock` option maps it. */
export interface MappedProduct {
  sku: string;
  gtin: string | null;
  /** What the site says it has now; 0 where the option names no attribute. */
  quantity: number;
}

type Entry = Record<string, unknown> & { id: number | string };

interface Mapping {
  contentType: UID.ContentType;
  sku: string;
  gtin: string | undefined;
  quantity: string | undefined;
}

const mappingOf = (strapi: Core.Strapi): Mapping | null => {
  const mapping = getOptions(strapi).stock;
  if (!mapping) return null;
  const { contentType, sku, gtin, quantity } = mapping;
  return { contentType: contentType as UID.ContentType, sku, gtin, quantity };
};

const NUMERIC = new Set(['integer', 'biginteger', 'float', 'decimal']);

/**
 * Checks the `stock` option against the site's content types.
 * @throws Error that names the wrong part and what it may be; the host then refuses to boot.
 */
export const checkProductMapping = (strapi: Core.Strapi): void => {
  const mapping = mappingOf(strapi);
  if (!mapping) return;
  const type = strapi.contentTypes[mapping.contentType];
  if (!type) {
    const possible = Object.keys(strapi.contentTypes).filter((uid) => uid.startsWith('api::'));
    throw new Error(
      `The options of the plugin switchboard (config/plugins) are wrong:\n  switchboard.stock.contentType: ` +
        `there is no content type ${mapping.contentType}. Possible: ${possible.join(', ') || 'none'}.`
    );
  }
  const options = getOptions(strapi).stock;
  for (const part of ['sku', 'gtin', 'quantity', 'name', 'price', 'currency'] as const) {
    const name = options?.[part];
    if (name === undefined) continue;
    const attribute = type.attributes[name];
    if (part === 'currency' && !attribute && isCurrencyCode(name)) continue;
    const isNumber = part === 'quantity' || part === 'price';
    const fits = attribute && (!isNumber || NUMERIC.has(attribute.type));
    if (fits) continue;
    throw new Error(
      `The options of the plugin switchboard (config/plugins) are wrong:\n  switchboard.stock.${part}: ` +
        `${mapping.contentType} has no ${isNumber ? 'numeric ' : ''}attribute ${name}. ` +
        `Possible: ${Object.keys(type.attributes).join(', ')}.`
    );
  }
};

const text = (value: unknown): string | null =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : null;

const productOf = (mapping: Mapping, entry: Entry): MappedProduct | null => {
  const sku = text(entry[mapping.sku]);
  if (!sku) return null;
  return {
    sku,
    gtin: mapping.gtin ? text(entry[mapping.gtin]) || null : null,
    quantity: mapping.quantity ? Math.trunc(Number(entry[mapping.quantity]) || 0) : 0,
  };
};

/** Products by SKU or GTIN, in the current transaction. Compared byte for byte. */
export const findProducts = async (
  strapi: Core.Strapi,
  skus: readonly string[],
  gtins: readonly string[]
): Promise<MappedProduct[]> => {
  const mapping = mappingOf(strapi);
  if (!mapping) return [];
  const conditions: Record<string, unknown>[] = [];
  if (skus.length > 0) conditions.push({ [mapping.sku]: { $in: skus } });
  if (mapping.gtin && gtins.length > 0) conditions.push({ [mapping.gtin]: { $in: gtins } });
  if (conditions.length === 0) return [];
  const entries = (await strapi.db
    .query(mapping.contentType)
    .findMany({ where: { $or: conditions }, orderBy: { id: 'asc' } })) as Entry[];
  const wanted = new Set([...skus, ...gtins]);
  const products = new Map<string, MappedProduct>();
  for (const entry of entries) {
    const product = productOf(mapping, entry);
    if (!product || products.has(product.sku)) continue;
    if (wanted.has(product.sku) || (product.gtin !== null && wanted.has(product.gtin))) {
      products.set(product.sku, product);
    }
  }
  return [...products.values()];
};

/**
 * Where products are written through, two transactions must not add up one item's locations at once:
 * each would miss what the other changed. Comes before the locks of levels, in the order of ids.
 */
export const lockMappedItems = async (
  strapi: Core.Strapi,
  trx: Executor,
  items: readonly number[]
): Promise<void> => {
  if (!mappingOf(strapi)?.quantity || items.length === 0) return;
  await table(strapi, trx, ITEMS_TABLE)
    .select('id')
    .whereIn('id', [...new Set(items)])
    .orderBy('id')
    .forUpdate();
};

/**
 * Writes the new quantities, all locations together, into the site's own products, in the
 * transaction of the movements. Drafts and locales of one SKU are one product.
 */
export const writeThrough = async (
  strapi: Core.Strapi,
  trx: Executor,
  changes: readonly LevelChange[]
): Promise<void> => {
  const mapping = mappingOf(strapi);
  if (!mapping?.quantity || changes.length === 0) return;
  const ids = [...new Set(changes.map(({ item }) => item))];
  const items = (await table(strapi, trx, ITEMS_TABLE)
    .select('id', 'sku')
    .whereIn('id', ids)) as Pick<ItemRow, 'id' | 'sku'>[];
  const sums = (await readLatest(
    strapi,
    table(strapi, trx, LEVELS_TABLE)
      .select('item_id')
      .sum({ total: 'quantity' })
      .whereIn('item_id', ids)
      .groupBy('item_id')
  )) as { item_id: number; total: number | string }[];
  const totals = new Map(sums.map(({ item_id: id, total }) => [Number(id), Number(total)]));
  const entries = (await strapi.db.query(mapping.contentType).findMany({
    where: { [mapping.sku]: { $in: items.map(({ sku }) => sku) } },
    select: ['id', mapping.sku],
  })) as Entry[];
  for (const { id, sku } of items) {
    const own = entries.filter((entry) => text(entry[mapping.sku]) === sku);
    if (own.length === 0) continue;
    await strapi.db.query(mapping.contentType).updateMany({
      where: { id: { $in: own.map((entry) => entry.id) } },
      data: { [mapping.quantity]: totals.get(Number(id)) ?? 0 },
    });
  }
};

/** Calls `learn` with the SKU and GTIN of each product that is created or changed, after the write. */
export const watchProducts = (
  strapi: Core.Strapi,
  learn: (products: readonly { sku: string; gtin: string | null }[]) => Promise<void>
): void => {
  const mapping = mappingOf(strapi);
  if (!mapping) return;
  const tell = async (event: { result?: unknown }): Promise<void> => {
    const product = productOf(mapping, (event.result ?? {}) as Entry);
    if (product) await learn([product]);
  };
  strapi.db.lifecycles.subscribe({
    models: [mapping.contentType],
    afterCreate: tell,
    afterUpdate: tell,
    async afterCreateMany(event) {
      const { data } = event.params as { data?: Entry[] };
      const products = (data ?? []).flatMap((entry) => productOf(mapping, entry) ?? []);
      await learn(products);
    },
  });
};
