import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, type Executor, table } from '../database/connection';
import { findProductFacts, type ProductFacts } from './product-facts';
import { type ItemRow, ITEMS_TABLE, type LevelRow, LEVELS_TABLE } from './tables';
import { numberChanges } from './catalogue/numbering';
import { currentEpoch, wasGiven } from './catalogue/epochs';
import {
  CATALOGUE_TABLE,
  type CatalogueRow,
  RETIRED_SKUS_TABLE,
  type RetiredRow,
} from './catalogue/tables';

export interface CatalogueEntry extends ProductFacts {
  sku: string;
  gtin: string | null;
  /** It was archived, its product is gone, or it has another SKU now. */
  deleted: boolean;
  /** By location; none where the location has no level of it. */
  quantities: ReadonlyMap<number, number>;
}

export interface CataloguePage {
  items: CatalogueEntry[];
  /** The number up to which the reader has now seen all. */
  last: number;
  /** In which that number was given. */
  epoch: string;
  hasMore: boolean;
}

export interface CatalogueAsked {
  /** The last change that was seen; null for none. */
  after: { number: number; epoch: string } | null;
  limit: number;
  locations: readonly number[];
}

const CHUNK = 500;

const inChunks = async <Row>(
  ids: readonly number[],
  read: (some: readonly number[]) => PromiseLike<Row[]>
): Promise<Row[]> => {
  const rows: Row[] = [];
  for (let start = 0; start < ids.length; start += CHUNK) {
    rows.push(...(await read(ids.slice(start, start + CHUNK))));
  }
  return rows;
};

type Level = Pick<LevelRow, 'item_id' | 'location_id' | 'quantity'>;

const quantitiesOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  items: readonly number[],
  locations: readonly number[]
): Promise<Map<number, Map<number, number>>> => {
  const levels = await inChunks<Level>(items, (some) =>
    table(strapi, executor, LEVELS_TABLE)
      .select('item_id', 'location_id', 'quantity')
      .whereIn('item_id', [...some])
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
const goneEntry = ({ sku }: RetiredRow): CatalogueEntry => ({
  sku,
  gtin: null,
  name: null,
  price: null,
  currency: null,
  deleted: true,
  quantities: new Map<number, number>(),
});

/**
 * Items that were changed after a number, in the order of their latest changes, each once and as it
 * is now. What changes meanwhile gets a larger number and comes again.
 */
export const readCatalogue = async (
  strapi: Core.Strapi,
  { after, limit, locations }: CatalogueAsked
): Promise<CataloguePage> => {
  const numbered = await numberChanges(strapi);
  const executor = await currentExecutor(strapi);
  // What was never given, or in an epoch that is none of this database, is of one that a backup took the
  // place of.
  const isOurs =
    after !== null &&
    after.number <= numbered.last &&
    (await wasGiven(strapi, after.number, after.epoch));
  const from = isOurs ? after.number : 0;
  // Up to what was given before both are read: else one of them would be ahead of the other.
  const numbers = (tableName: string): Knex.QueryBuilder =>
    table(strapi, executor, tableName)
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
  const rows = await inChunks<ItemRow>(ids, (some) =>
    table(strapi, executor, ITEMS_TABLE)
      .select('*')
      .whereIn('id', [...some])
  );
  const items = new Map(rows.map((row) => [Number(row.id), row]));
  const quantities = await quantitiesOf(strapi, executor, ids, locations);
  const facts = await findProductFacts(
    strapi,
    rows.map(({ sku }) => sku)
  );
  return {
    items: page.flatMap((change): CatalogueEntry[] => {
      if ('sku' in change) return [goneEntry(change)];
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
    last: Number(page.at(-1)?.number ?? from),
    epoch: await currentEpoch(strapi),
    hasMore: changes.length > limit || numbered.more,
  };
};
