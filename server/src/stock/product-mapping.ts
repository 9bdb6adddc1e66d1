import { AsyncLocalStorage } from 'node:async_hooks';
import { findInChunks } from '../database/matching-documents';
import { defaultLocation } from './locations';
import { fitting, isCurrencyCode, lockProducts, mappingOf, wholePieces } from './products';
import { type ItemRow, ITEMS_TABLE, type LevelRow, LEVELS_TABLE } from './tables';
import type { App } from '../app';
import type { Tx } from '../database/db';

const NUMERIC = new Set(['integer', 'biginteger', 'float', 'decimal']);

/**
 * Checks the `stock` option against the site's content types.
 * @throws Error that names the wrong part and what it may be; the host then refuses to boot.
 */
export const checkProductMapping = (app: App): void => {
  const mapping = mappingOf(app);
  if (!mapping) return;
  const type = app.strapi.contentTypes[mapping.contentType];
  if (!type) {
    const possible = Object.keys(app.strapi.contentTypes).filter((uid) => uid.startsWith('api::'));
    throw new Error(
      `The options of the plugin switchboard (config/plugins) are wrong:\n  switchboard.stock.contentType: ` +
        `there is no content type ${mapping.contentType}. Possible: ${possible.join(', ') || 'none'}.`
    );
  }
  const options = app.options.stock;
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

const own = new AsyncLocalStorage<true>();

/** Whether the write to a product that is under way is the ledger's. */
export const isOwnWrite = (): boolean => own.getStore() === true;

/**
 * Writes a number into products, past what looks at the site's own writes. The site's lifecycles see it.
 */
export const setProductNumbers = async (
  app: App,
  rows: readonly number[],
  value: number
): Promise<void> => {
  const mapping = mappingOf(app);
  const quantity = mapping?.quantity;
  if (!mapping || quantity === undefined || rows.length === 0) return;
  await own.run(true, () =>
    app.strapi.db.query(mapping.contentType).updateMany({
      where: { id: { $in: [...rows] } },
      data: { [quantity]: value },
    })
  );
};

type Named = Pick<ItemRow, 'id' | 'sku'>;

const itemsOf = (tx: Tx, ids: readonly number[], { lock }: { lock: boolean }): Promise<Named[]> =>
  findInChunks<Named>(ids, (some) => {
    const query = tx.table(ITEMS_TABLE).select('id', 'sku').whereIn('id', some).orderBy('id');
    return lock ? query.forUpdate() : query;
  });

/** What items were called when the transaction began to read, and what they are called now. */
const skusOf = (before: readonly Named[], now: readonly Named[]): string[] => [
  ...new Set([...before, ...now].map(({ sku }) => sku)),
];

/** What items have, all locations together; of locked items. */
const totalsOf = async (tx: Tx, items: readonly number[]): Promise<Map<number, number>> => {
  const totals = new Map<number, number>();
  // Added up here: MySQL locks no rows that are grouped.
  const rows = await findInChunks<Pick<LevelRow, 'item_id' | 'quantity'>>(items, (some) =>
    tx.latest(tx.table(LEVELS_TABLE).select('item_id', 'quantity').whereIn('item_id', some))
  );
  for (const { item_id: id, quantity } of rows) {
    totals.set(Number(id), (totals.get(Number(id)) ?? 0) + Number(quantity));
  }
  return totals;
};

/** Locks the products of SKUs whose stock is written through: before their items are locked. */
export const lockMappedNames = async (tx: Tx, app: App, skus: readonly string[]): Promise<void> => {
  if (mappingOf(app)?.quantity) await lockProducts(tx, app, skus);
};

/** What the site wrote into an item's product past the ledger. */
export interface Drift {
  item: number;
  /** The default one. */
  location: number;
  /** What the product has more than the ledger knows of. */
  quantity: number;
}

/**
 * Locks items whose stock is written through, and their products before them: products, items, levels
 * is the order in which everybody locks. Two transactions must not add up one item's locations at once,
 * because each would miss what the other changed.
 * @returns what their products say otherwise than the ledger
 */
export const lockMappedItems = async (
  tx: Tx,
  app: App,
  items: readonly number[]
): Promise<Drift[]> => {
  if (!mappingOf(app)?.quantity || items.length === 0) return [];
  const ids = [...new Set(items)].sort((a, b) => a - b);
  const before = await itemsOf(tx, ids, { lock: false });
  const skus = new Set(before.map(({ sku }) => sku));
  const first = await lockProducts(tx, app, [...skus]);
  const locked = await itemsOf(tx, ids, { lock: true });
  const isRenamed = locked.some(({ sku }) => !skus.has(sku));
  const products = isRenamed ? await lockProducts(tx, app, skusOf(before, locked)) : first;
  const asked = locked.filter(({ sku }) => products.has(sku)).map(({ id }) => Number(id));
  const totals = await totalsOf(tx, asked);
  const drifts = locked.flatMap(({ id, sku }) => {
    const total = totals.get(Number(id));
    // An item without a level has nothing that a product could differ from.
    if (total === undefined) return [];
    const expected = fitting(app, total);
    const numbers = (products.get(sku) ?? []).flatMap(({ quantity }) =>
      quantity === null ? [] : [wholePieces(quantity)]
    );
    const other = numbers.find((number) => number !== expected);
    return other === undefined ? [] : [{ item: Number(id), quantity: other - expected }];
  });
  if (drifts.length === 0) return [];
  const location = Number((await defaultLocation(tx)).id);
  return drifts.map((drift) => ({ ...drift, location }));
};

/**
 * Writes the quantities of items, all locations together, into the site's own products, in the
 * transaction of the movements. Drafts and languages of one product have the same.
 */
export const writeThrough = async (
  tx: Tx,
  app: App,
  changes: readonly { item: number }[]
): Promise<void> => {
  if (!mappingOf(app)?.quantity || changes.length === 0) return;
  const ids = [...new Set(changes.map(({ item }) => item))].sort((a, b) => a - b);
  const before = await itemsOf(tx, ids, { lock: false });
  const items = await itemsOf(tx, ids, { lock: true });
  const totals = await totalsOf(tx, ids);
  const products = await lockProducts(tx, app, skusOf(before, items));
  for (const { id, sku } of items) {
    const value = fitting(app, totals.get(Number(id)) ?? 0);
    const rows = (products.get(sku) ?? []).flatMap((product) => product.rows);
    await setProductNumbers(
      app,
      rows.filter(({ quantity }) => quantity !== value).map((row) => row.id),
      value
    );
  }
};
