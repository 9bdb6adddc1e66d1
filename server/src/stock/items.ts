import type { App } from '../app';
import type { Db, Tx } from '../database/db';
import { findInChunks } from '../database/written-rows';
import { fieldError, LARGEST_ID } from '../http/validation';
import { refusal } from '../runtime/refusal';
import { digestOf } from '../runtime/text';
import { claimSkus, markChanged } from './catalogue';
import { openLevels } from './ledger';
import { defaultLocation } from './locations';
import { findProducts, fullGtin, isSameGtin, type Product, wholePieces } from './products';
import { type ItemRow, ITEMS_TABLE, skuDigest } from './tables';

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

/** The item, archived or not, with an id or SKU; throws ValidationError (400) naming the field if none has it. */
export const itemFromInput = async (db: Db, named: number | string, field: string) => {
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

/** Creates an item for a product, with its quantity as opening; null: an archived item, which stays archived. */
const adopt = async (db: Tx, product: Product): Promise<number | null> => {
  const { sku, gtin, quantity } = product;
  const made = newItem({ sku, gtin: fullGtin(gtin), name: null, low_at: 0 });
  await db.table(ITEMS_TABLE).insert(made).onConflict('sku_digest').ignore();
  // Another writer may have created it since this transaction's first read.
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

/** Items by their ids, archived ones too. */
export const namedItems = async (db: Db, ids: readonly number[]) => {
  const rows = await findInChunks<Pick<ItemRow, 'id' | 'sku' | 'name'>>(ids, (some) =>
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
 * Looks up items for many lines at once.
 * @param products handling of named products without an item: `leave` them, `adopt` them (creates items), or, in test
 * mode, which stores nothing, let them `stand in` for their future item
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
  // Locked, so that the opening neither misses a concurrent write nor counts it twice; all at once, in one order.
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

/** Registers a listener for created or renamed items, in that transaction: stock must not depend on tills. */
export const onItemsKnown = (app: App, listener: Listener): void => {
  app.part(listeners).push(listener);
};

export const notifyItemsKnown = async (app: App, names: readonly ItemName[]): Promise<void> => {
  for (const listener of app.part(listeners)) await listener(names);
};
