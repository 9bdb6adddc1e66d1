import type { App } from '../app';
import type { Db, Tx } from '../database/db';
import { findInChunks } from '../database/written-rows';
import { fieldError, LARGEST_ID } from '../http/validation';
import { refusal } from '../runtime/refusal';
import { claimSkus, markChanged } from './catalogue';
import { openLevels } from './ledger';
import { defaultLocation } from './locations';
import { findProducts, fullGtin, isSameGtin, type Product, wholePieces } from './products';
import { digestOf, type ItemRow, ITEMS_TABLE, skuDigest } from './tables';

/** GTIN-8, -12, -13 and -14 of one article differ in leading zeros only. */
export const gtinDigest = (gtin: string): string =>
  digestOf(`gtin:${/^\d{8,14}$/.test(gtin) ? gtin.padStart(14, '0') : gtin}`);

export { skuDigest };

export const gtinColumns = (gtin: string | null) => ({
  gtin,
  gtin_digest: gtin === null ? null : gtinDigest(gtin),
});

export const newItem = ({
  sku,
  gtin,
  ...columns
}: Pick<ItemRow, 'sku' | 'gtin' | 'name' | 'low_at'>) => {
  const at = Date.now();
  const named = { sku, sku_digest: skuDigest(sku), ...gtinColumns(gtin) };
  return { ...named, ...columns, created_at: at, updated_at: at };
};

/**
 * The item that a client names by id or by SKU, archived ones too.
 * @throws ValidationError (400) that names the field if there is no such item
 */
export const itemFromInput = async (
  db: Db,
  named: number | string,
  field: string
): Promise<ItemRow> => {
  const where = typeof named === 'number' ? { id: named } : { sku_digest: skuDigest(named) };
  const row = (await db.table(ITEMS_TABLE).where(where).first()) as ItemRow | undefined;
  if (!row)
    throw fieldError(field, refusal(`there is no item ${named}`, 'no_item', { name: named }));
  return row;
};

/** The names on a line: at least one of the two. */
export interface ItemName {
  sku: string | null;
  gtin: string | null;
}

/** Finds an item's id by what a line names; the SKU is looked up first. null: not known, or archived. */
export type ItemLookup = (name: ItemName) => number | null;

const rowsByDigest = (db: Db, column: 'sku_digest' | 'gtin_digest', digests: readonly string[]) =>
  findInChunks<ItemRow, string>(digests, (some) =>
    db.table(ITEMS_TABLE).select('*').whereIn(column, some).whereNull('archived_at')
  );

/**
 * An item for a product of the site's own, with what the site says it has as the opening.
 * @returns null if the item was archived: its product does not bring it back
 */
const adopt = async (db: Tx, product: Product): Promise<number | null> => {
  const { sku, gtin, quantity } = product;
  const made = newItem({ sku, gtin: fullGtin(gtin), name: null, low_at: 0 });
  await db.table(ITEMS_TABLE).insert(made).onConflict('sku_digest').ignore();
  // Somebody else may have made it since this transaction began to read.
  const item = (await db.latest(
    db.table(ITEMS_TABLE).where({ sku_digest: made.sku_digest }).first()
  )) as unknown as ItemRow;
  if (item.archived_at !== null) return null;
  const id = Number(item.id);
  const location = Number((await defaultLocation(db)).id);
  await openLevels(db, [{ item: id, location, opening: wholePieces(quantity) }]);
  await claimSkus(db, [sku]);
  await markChanged(db, [id]);
  return id;
};

/** Stands for an item that there is not: the same for a SKU at any time, and no item's id. */
const trialItemId = (sku: string): number =>
  -1 - (Number.parseInt(skuDigest(sku).slice(0, 8), 16) % LARGEST_ID);

/** The item of a product, or what stands for the one that it would become; null if it was archived. */
const standIn = ({ sku }: Product, item: ItemRow | undefined): number | null => {
  if (!item) return trialItemId(sku);
  return item.archived_at === null ? Number(item.id) : null;
};

type NamedItem = Pick<ItemRow, 'id' | 'sku' | 'name'>;

/** Items by their ids, archived ones too. */
export const namedItems = async (db: Db, ids: readonly number[]) => {
  const rows = await findInChunks<NamedItem>(ids, (some) =>
    db.table(ITEMS_TABLE).select('id', 'sku', 'name').whereIn('id', some)
  );
  return new Map(rows.map((row) => [Number(row.id), row]));
};

export interface FoundItems {
  lookup: ItemLookup;
  /** Products that stand for an item, by the id that the lookup gives; none unless that is asked for. */
  products: ReadonlyMap<number, Product>;
}

/**
 * Looks items up for many lines at once.
 * @param products  what becomes of the site's own products that are named and have no item yet:
 *   `leave` them, `adopt` them (an item is made of each), or, in test mode, which leaves nothing
 *   behind, have them `stand in` for the item that they would become
 */
export const lookUpItems = async (
  db: Tx,
  app: App,
  names: readonly ItemName[],
  products: 'leave' | 'adopt' | 'stand in'
): Promise<FoundItems> => {
  const skus = [...new Set(names.flatMap(({ sku }) => sku ?? []))];
  const gtins = [...new Set(names.flatMap(({ gtin }) => gtin ?? []))];
  const bySku = new Map<string, number>();
  const byGtin = new Map<string, number>();
  const load = async (): Promise<void> => {
    for (const row of await rowsByDigest(db, 'sku_digest', skus.map(skuDigest))) {
      bySku.set(row.sku_digest, Number(row.id));
    }
    for (const row of await rowsByDigest(db, 'gtin_digest', gtins.map(gtinDigest))) {
      if (row.gtin_digest) byGtin.set(row.gtin_digest, Number(row.id));
    }
  };
  const lookup: ItemLookup = ({ sku, gtin }) =>
    (sku === null ? undefined : bySku.get(skuDigest(sku))) ??
    (gtin === null ? undefined : byGtin.get(gtinDigest(gtin))) ??
    null;

  const standIns = new Map<number, Product>();
  await load();
  const unknown = products === 'leave' ? [] : names.filter((name) => lookup(name) === null);
  if (unknown.length === 0) return { lookup, products: standIns };
  const adopting = products === 'adopt';
  // Locked: a number that is written meanwhile is neither missed by the opening nor taken twice. All
  // that are named, so that they are locked in one order.
  const found = await findProducts(db, app, skus, gtins, { lock: adopting });
  if (found.length > 0 && adopting) await load();
  const digests = adopting ? [] : found.map(({ sku }) => skuDigest(sku));
  const rows = await findInChunks<ItemRow, string>(digests, (some) =>
    db.table(ITEMS_TABLE).whereIn('sku_digest', some)
  );
  const items = new Map(rows.map((row) => [row.sku_digest, row]));
  for (const product of found) {
    const isGtin = (gtin: string | null): gtin is string =>
      gtin !== null && product.gtin !== null && isSameGtin(gtin, product.gtin);
    const named = unknown.filter(
      (name) => (name.sku === product.sku || isGtin(name.gtin)) && lookup(name) === null
    );
    if (named.length === 0) continue;
    const id = adopting
      ? await adopt(db, product)
      : standIn(product, items.get(skuDigest(product.sku)));
    if (id === null) continue;
    if (id < 0) standIns.set(id, product);
    bySku.set(skuDigest(product.sku), id);
    for (const { gtin } of named) if (isGtin(gtin)) byGtin.set(gtinDigest(gtin), id);
  }
  return { lookup, products: standIns };
};

type Listener = (names: readonly ItemName[]) => Promise<void>;

const listeners = (): Listener[] => [];

/**
 * Registers a listener for items that were created or renamed, called in the transaction that did it. The
 * stock knows nothing of tills; features whose lines wait for items register here.
 */
export const onItemsKnown = (app: App, listener: Listener): void => {
  app.part(listeners).push(listener);
};

export const notifyItemsKnown = async (app: App, names: readonly ItemName[]): Promise<void> => {
  for (const listener of app.part(listeners)) await listener(names);
};
