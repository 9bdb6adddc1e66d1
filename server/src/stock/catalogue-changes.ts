import { inChunks } from '../database/matching-documents';
import { CHANGES_TABLE, RETIRED_SKUS_TABLE, skuDigest } from './tables';
import type { Db } from '../database/db';

/**
 * Says that items are not what the catalogue last said of them, in the transaction that changes them:
 * without its commit nobody hears of it, and with it somebody always does
 * (docs/decisions/0021-catalogue-numbers-are-given-after-the-commit.md).
 */
export const markChanged = async (db: Db, items: readonly number[]): Promise<void> => {
  const rows = [...new Set(items)].map((item) => ({ item_id: item }));
  await db.insert(CHANGES_TABLE, rows);
};

/**
 * Says that an article has another SKU from now on: whoever keeps the old one hears that it is deleted.
 * In the transaction that renames the item, which is marked as changed beside it.
 */
export const retireSku = async (db: Db, sku: string): Promise<void> => {
  await db
    .table(RETIRED_SKUS_TABLE)
    .insert({ sku, sku_digest: skuDigest(sku), number: null })
    .onConflict('sku_digest')
    .merge(['number']);
};

/** Says that these SKUs are those of items now. */
export const claimSkus = async (db: Db, skus: readonly string[]): Promise<void> => {
  for (const some of inChunks(skus.map(skuDigest))) {
    await db.table(RETIRED_SKUS_TABLE).whereIn('sku_digest', some).delete();
  }
};
