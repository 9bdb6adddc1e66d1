import { findInChunks } from '../database/matching-documents';
import { gtinDigest, type ItemLookup, type ItemName, lookUpItems, skuDigest } from './items';
import { findProducts, isSameGtin, type Product } from './products';
import { type ItemRow, ITEMS_TABLE } from './tables';
import type { App } from '../app';
import type { Db } from '../database/db';

/** Fits the `integer` columns that ids are compared with. */
const LARGEST = 2_147_483_647;

/** Stands for an item that there is not: the same for a SKU at any time, and no item's id. */
const trialItemId = (sku: string): number =>
  -1 - (Number.parseInt(skuDigest(sku).slice(0, 8), 16) % LARGEST);

/** Items as test mode finds them. */
export interface TrialItems {
  lookup: ItemLookup;
  /** The product that stands for an item, by the id that the lookup gave. */
  products: ReadonlyMap<number, Product>;
}

/**
 * Looks items up, and the site's own products that have no item yet: those are taken for what they are
 * now, and no item is made of them, so that test mode leaves nothing behind.
 */
export const lookUpTrialItems = async (
  db: Db,
  app: App,
  names: readonly ItemName[]
): Promise<TrialItems> => {
  const known = await lookUpItems(db, app, names, null);
  const unknown = names.filter((name) => known(name) === null);
  const products = new Map<number, Product>();
  if (unknown.length === 0) return { lookup: known, products };
  const found = await findProducts(
    db,
    app,
    [...new Set(unknown.flatMap(({ sku }) => sku ?? []))],
    [...new Set(unknown.flatMap(({ gtin }) => gtin ?? []))]
  );
  const digests = found.map(({ sku }) => skuDigest(sku));
  const rows = await findInChunks<ItemRow, string>(digests, (some) =>
    db.table(ITEMS_TABLE).whereIn('sku_digest', some)
  );
  const items = new Map(rows.map((row) => [row.sku_digest, row]));
  const ids = new Map<string, number>();
  for (const product of found) {
    const item = items.get(skuDigest(product.sku));
    // Its product does not bring an archived item back.
    if (item && item.archived_at !== null) continue;
    const id = item ? Number(item.id) : trialItemId(product.sku);
    if (!item) products.set(id, product);
    ids.set(skuDigest(product.sku), id);
    for (const { gtin } of unknown) {
      const isNamed = gtin !== null && product.gtin !== null && isSameGtin(gtin, product.gtin);
      if (isNamed) ids.set(gtinDigest(gtin), id);
    }
  }
  const lookup: ItemLookup = (name) =>
    known(name) ??
    (name.sku === null ? undefined : ids.get(skuDigest(name.sku))) ??
    (name.gtin === null ? undefined : ids.get(gtinDigest(name.gtin))) ??
    null;
  return { lookup, products };
};
