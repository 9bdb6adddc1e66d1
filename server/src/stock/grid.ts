import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { StockGridRow } from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../database/connection';
import { isoTimeOrNull } from '../runtime/iso-time';
import { readPage } from '../http/pagination';
import type { ListQuery } from './inputs';
import { matchItems } from './items-service';
import { summaryOf } from './serialize';
import { type ItemRow, ITEMS_TABLE, type LevelRow, LEVELS_TABLE, LOCATIONS_TABLE } from './tables';

/** The shelves as a table: an item a row, with what each of its locations holds. */
export interface StockGridService {
  /** A page of items, in the order they were made. */
  list(query: ListQuery): Promise<Page<StockGridRow>>;
}

type GridItem = Pick<ItemRow, 'id' | 'sku' | 'gtin' | 'name' | 'low_at'>;
type GridLevel = Pick<LevelRow, 'id' | 'item_id' | 'location_id' | 'quantity' | 'count_at'> & {
  location_code: string;
  location_name: string;
};

const toGridRow = (item: GridItem, levels: readonly GridLevel[]): StockGridRow => {
  const lowAt = Number(item.low_at ?? 0);
  const quantities = levels.map(({ quantity }) => Number(quantity));
  return {
    id: Number(item.id),
    sku: item.sku,
    gtin: item.gtin,
    name: item.name,
    low_at: lowAt,
    total: quantities.reduce((sum, quantity) => sum + quantity, 0),
    low: quantities.some((quantity) => quantity <= lowAt),
    negative: quantities.some((quantity) => quantity < 0),
    levels: levels.map((level) => ({
      id: Number(level.id),
      location: summaryOf(level),
      quantity: Number(level.quantity),
      last_counted_at: isoTimeOrNull(level.count_at),
    })),
  };
};

/** Two questions a page, however many locations there are: its items, and the levels of those. */
export const createStockGridService = ({ strapi }: { strapi: Core.Strapi }): StockGridService => {
  const schema = strapi.db.getSchemaName();
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);

  const levelsOf = async (executor: Executor, items: readonly number[]): Promise<GridLevel[]> =>
    (await (executor as Knex)(`${named(LEVELS_TABLE)} as l`)
      .join(`${named(LOCATIONS_TABLE)} as p`, 'p.id', 'l.location_id')
      .select('l.id', 'l.item_id', 'l.location_id', 'l.quantity', 'l.count_at')
      .select('p.code as location_code', 'p.name as location_name')
      .whereIn('l.item_id', [...items])
      .orderBy('l.location_id')) as GridLevel[];

  return {
    async list({ search, ...request }) {
      const executor = await currentExecutor(strapi);
      const query: Knex.QueryBuilder = table(strapi, executor, ITEMS_TABLE)
        .select('id', 'sku', 'gtin', 'name', 'low_at')
        .orderBy('id');
      matchItems(query, search, ['sku', 'gtin', 'name']);
      const { rows, meta } = await readPage<GridItem>(executor, query, request);
      const levels = await levelsOf(
        executor,
        rows.map(({ id }) => id)
      );
      const of = (item: GridItem) =>
        levels.filter((level) => Number(level.item_id) === Number(item.id));
      return { data: rows.map((row) => toGridRow(row, of(row))), meta };
    },
  };
};
