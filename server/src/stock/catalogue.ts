import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { App } from '../app';
import type { Db, Tx } from '../database/db';
import { findInChunks, inChunks } from '../database/written-rows';
import { withTransientRetry } from '../database/retry';
import { byClock, TimeSlice } from '../runtime/event-loop';
import { logFailure } from '../runtime/text';
import { findProductFacts, type ProductFacts } from './products';
import {
  type Big,
  CATALOGUE_HEAD_TABLE,
  CATALOGUE_TABLE,
  type CatalogueRow,
  type ChangeRow,
  CHANGES_TABLE,
  type EpochRow,
  EPOCHS_TABLE,
  HEAD_ID,
  type ItemRow,
  ITEMS_TABLE,
  type LevelRow,
  LEVELS_TABLE,
  RETIRED_SKUS_TABLE,
  type RetiredRow,
  skuDigest,
} from './tables';

/**
 * An epoch begins with a process's first number. A restored database gives numbers again, to other changes, but in
 * epochs without cursors. So a cursor names its epoch, and is valid up to its end.
 */

const KEPT = 500;
const NONE = '0'.repeat(8);

const epochs = (db: Db) => db.table(EPOCHS_TABLE);

/** Begins an epoch after `number`, the last given; needs exclusive numbering. Cursors of deleted epochs start over. */
const beginEpoch = async (tx: Tx, number: number): Promise<void> => {
  await epochs(tx).insert({ token: randomBytes(4).toString('hex'), number });
  const old: number[] = await epochs(tx).orderBy('id', 'desc').offset(KEPT).limit(KEPT).pluck('id');
  if (old.length > 0) await epochs(tx).whereIn('id', old).delete();
};

/** The epoch that cursors are of now: eight hexadecimal digits. */
const currentEpoch = async (app: App): Promise<string> => {
  const newest = epochs(await app.db.current()).orderBy('id', 'desc');
  const row: EpochRow | undefined = await newest.first();
  return row?.token ?? NONE;
};

/** True if this database has given a number in an epoch; otherwise the cursor is from another history. */
const wasGiven = async (app: App, number: number, token: string): Promise<boolean> => {
  const db = await app.db.current();
  const after = epochs(db).orderBy('id');
  if (token !== NONE) {
    const own = epochs(db).where({ token }).orderBy('id', 'desc');
    const epoch: EpochRow | undefined = await own.first();
    if (!epoch) return false;
    after.where('id', '>', epoch.id);
  }
  const next: EpochRow | undefined = await after.first();
  return next === undefined || number <= Number(next.number);
};

const AT_ONCE = 1000;

const head = (db: Db): Knex.QueryBuilder => db.table(CATALOGUE_HEAD_TABLE).where({ id: HEAD_ID });

const lastOf = async (query: Knex.QueryBuilder): Promise<number> => {
  const row = (await query.select('number').first()) as { number: Big } | undefined;
  return Number(row?.number ?? 0);
};

const waiting = (db: Db): Knex.QueryBuilder =>
  db.table(CHANGES_TABLE).select('id', 'item_id').orderBy('id');

/** Numbers old articles before those that replaced them, for tills that search by barcode; returns the last number. */
const numberRetired = async (tx: Tx, before: number): Promise<number> => {
  const retired = () => tx.table(RETIRED_SKUS_TABLE);
  const ids: number[] = await retired()
    .whereNull('number')
    .orderBy('id')
    .limit(AT_ONCE)
    .pluck('id');
  for (const [index, id] of ids.entries()) {
    await retired()
      .where({ id })
      .update({ number: before + index + 1 });
  }
  return before + ids.length;
};

/** Processes that have begun an epoch. */
const begun = new WeakSet<App>();

/** @returns the last number that was given, and whether changes may be waiting for one still */
const giveNumbers = (app: App) =>
  app.db.transaction(async (tx) => {
    // No other transaction gives numbers until the commit: a reader of one sees all smaller ones.
    const given = await lastOf(head(tx).forUpdate());
    const changes = (await waiting(tx).limit(AT_ONCE)) as ChangeRow[];
    if (changes.length === 0) return { last: given, more: false };
    if (!begun.has(app)) await beginEpoch(tx, given);
    tx.onCommit(() => begun.add(app));
    const before = await numberRetired(tx, given);
    const items = [...new Set(changes.map(({ item_id: item }) => Number(item)))];
    const numberedAt = Date.now();
    const rows = items.map((item, index) => ({
      item_id: item,
      number: before + index + 1,
      numbered_at: numberedAt,
    }));
    await tx.insert(CATALOGUE_TABLE, rows, { unique: ['item_id'], then: 'replace' });
    const last = before + items.length;
    await head(tx).update({ number: last });
    const ids = changes.map(({ id }) => id);
    await tx.table(CHANGES_TABLE).whereIn('id', ids).delete();
    return { last, more: changes.length === AT_ONCE };
  });

/** Numbers some committed changes: one that was long in its transaction gets a number that no reader has passed. */
const numberChanges = async (app: App): ReturnType<typeof giveNumbers> => {
  const db = await app.db.current();
  const some = (await waiting(db).limit(1)) as ChangeRow[];
  if (some.length > 0) return withTransientRetry(() => giveNumbers(app));
  return { last: await lastOf(head(db)), more: false };
};

/** Makes the row of the last number. Asked at boot. */
export const ensureCatalogueHead = async (app: App): Promise<void> => {
  const db = await app.db.current();
  await db.table(CATALOGUE_HEAD_TABLE).insert({ id: HEAD_ID, number: 0 }).onConflict('id').ignore();
};

interface CatalogueEntry extends ProductFacts {
  sku: string;
  gtin: string | null;
  /** It was archived, its product is gone, or it has another SKU now. */
  deleted: boolean;
  /** By location; none if the location has no level of it. */
  quantities: ReadonlyMap<number, number>;
}

export interface CatalogueQuery {
  /** The last change that was seen; null for none. */
  after: { number: number; epoch: string } | null;
  limit: number;
  locations: readonly number[];
}

type Level = Pick<LevelRow, 'item_id' | 'location_id' | 'quantity'>;

const quantitiesOf = async (db: Db, items: readonly number[], locations: readonly number[]) => {
  const levels = await findInChunks<Level>(items, (some) =>
    db
      .table(LEVELS_TABLE)
      .select('item_id', 'location_id', 'quantity')
      .whereIn('item_id', some)
      .whereIn('location_id', [...locations])
  );
  const quantities = new Map<number, Map<number, number>>();
  for (const { item_id: item, location_id: location, quantity } of levels) {
    const ofItem = quantities.get(Number(item)) ?? new Map<number, number>();
    ofItem.set(Number(location), Number(quantity));
    quantities.set(Number(item), ofItem);
  }
  return quantities;
};

/** An article that has another SKU now. Its GTIN is the new one's. */
const GONE = { gtin: null, name: null, price: null, currency: null, deleted: true } as const;

/** Items changed after a number, by latest change, each once and current; a concurrent change makes it come again. */
export const readCatalogue = async (app: App, { after, limit, locations }: CatalogueQuery) => {
  const numbered = await numberChanges(app);
  const db = await app.db.current();
  // A number that was never given, or not in that epoch, is of a database that a backup replaced.
  const isOurs =
    after !== null &&
    after.number <= numbered.last &&
    (await wasGiven(app, after.number, after.epoch));
  const from = isOurs ? after.number : 0;
  // Reads up to the last number given before both reads; otherwise one of them would be ahead of the other.
  const numbers = (tableName: string): Knex.QueryBuilder =>
    db
      .table(tableName)
      .where('number', '>', from)
      .where('number', '<=', numbered.last)
      .orderBy('number')
      .limit(limit + 1);
  const found = (await numbers(CATALOGUE_TABLE).select('item_id', 'number')) as CatalogueRow[];
  const retired = (await numbers(RETIRED_SKUS_TABLE).select('id', 'sku', 'number')) as RetiredRow[];
  const changes = [...found, ...retired].sort((a, b) => Number(a.number) - Number(b.number));
  const page = changes.slice(0, limit);
  // Read after the numbers: an item is never older than what its number stands for.
  const ids = page.flatMap((change) => ('sku' in change ? [] : [Number(change.item_id)]));
  const rows = await findInChunks<ItemRow>(ids, (some) =>
    db.table(ITEMS_TABLE).select('*').whereIn('id', some)
  );
  const items = new Map(rows.map((row) => [Number(row.id), row]));
  const quantities = await quantitiesOf(db, ids, locations);
  const skus = rows.map(({ sku }) => sku);
  const facts = await findProductFacts(app, skus);
  return {
    items: page.flatMap((change): CatalogueEntry[] => {
      if ('sku' in change) return [{ sku: change.sku, ...GONE, quantities: new Map() }];
      const id = Number(change.item_id);
      const row = items.get(id);
      if (!row) return [];
      const product = facts.get(row.sku);
      return [
        {
          sku: row.sku,
          gtin: row.gtin,
          name: product?.name ?? row.name,
          price: product?.price ?? null,
          currency: product?.currency ?? null,
          deleted: (row.archived_at ?? null) !== null || Boolean(row.product_gone),
          quantities: quantities.get(id) ?? new Map<number, number>(),
        },
      ];
    }),
    /** The number up to which the reader has now seen all, and the epoch in which it was given. */
    last: Number(page.at(-1)?.number ?? from),
    epoch: await currentEpoch(app),
    hasMore: changes.length > limit || numbered.more,
  };
};

/** Numbers, once a minute, what no request for the catalogue has numbered: where records are applied. */
export const keepNumbering = (app: App): void => {
  if (!app.options.pos.process) return;
  const numberAll = async (): Promise<void> => {
    const slice = new TimeSlice();
    while ((await numberChanges(app)).more) if (slice.isOver()) await slice.next();
  };
  const failed = logFailure(app, 'changes of items were not numbered', 'debug');
  const task = () => app.detached(() => numberAll().catch(failed));
  byClock(app.strapi, { switchboardCatalogue: ['30 * * * * *', task] });
};

/**
 * Marks items whose catalogue entry changes, in the same transaction, so that tills get it exactly if it commits
 * (docs/decisions/0021-catalogue-numbers-are-given-after-the-commit.md).
 */
export const markChanged = async (db: Db, items: readonly number[]): Promise<void> => {
  const rows = [...new Set(items)].map((item) => ({ item_id: item }));
  await db.insert(CHANGES_TABLE, rows);
};

/** Records an item's old SKU, so that clients delete it. In the transaction that renames the item and marks it. */
export const retireSku = async (db: Db, sku: string): Promise<void> => {
  const retired = { sku, sku_digest: skuDigest(sku), number: null };
  await db.insert(RETIRED_SKUS_TABLE, [retired], { unique: ['sku_digest'], then: 'replace' });
};

export const claimSkus = async (db: Db, skus: readonly string[]): Promise<void> => {
  for (const some of inChunks(skus.map(skuDigest))) {
    await db.table(RETIRED_SKUS_TABLE).whereIn('sku_digest', some).delete();
  }
};
