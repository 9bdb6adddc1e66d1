import type { Knex } from 'knex';
import type { StockGridRow } from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { whereContains } from '../database/contains';
import { isoTimeOrNull } from '../runtime/text';
import { readPage } from '../http/pagination';
import type { GridQuery } from './inputs';
import { summaryOf } from './serialize';
import { type ItemRow, ITEMS_TABLE, type LevelRow, LEVELS_TABLE, LOCATIONS_TABLE } from './tables';
import type { App } from '../app';
import type { Db } from '../database/db';

type GridItem = Pick<ItemRow, 'id' | 'sku' | 'gtin' | 'name' | 'low_at'>;
type GridLevel = Pick<
  LevelRow,
  'id' | 'item_id' | 'location_id' | 'quantity' | 'count_at' | 'low_at'
> & {
  location_code: string;
  location_name: string;
};

const toGridRow = (item: GridItem, levels: readonly GridLevel[]): StockGridRow => {
  const lowAt = Number(item.low_at ?? 0);
  const quantities = levels.map(({ quantity }) => Number(quantity));
  const isLow = ({ quantity, low_at: own }: GridLevel) => Number(quantity) <= Number(own ?? lowAt);
  return {
    id: Number(item.id),
    sku: item.sku,
    gtin: item.gtin,
    name: item.name,
    low_at: lowAt,
    total: quantities.reduce((sum, quantity) => sum + quantity, 0),
    low: levels.some(isLow),
    negative: quantities.some((quantity) => quantity < 0),
    levels: levels.map((level) => ({
      id: Number(level.id),
      location: summaryOf(level),
      quantity: Number(level.quantity),
      low_at: level.low_at === null ? null : Number(level.low_at),
      low: isLow(level),
      last_counted_at: isoTimeOrNull(level.count_at),
    })),
  };
};

const levelsOf = async (db: Db, items: readonly number[]): Promise<GridLevel[]> =>
  (await db
    .table(`${LEVELS_TABLE} as l`)
    .join(`${LOCATIONS_TABLE} as p`, 'p.id', 'l.location_id')
    .select('l.id', 'l.item_id', 'l.location_id', 'l.quantity', 'l.count_at', 'l.low_at')
    .select('p.code as location_code', 'p.name as location_name')
    .whereIn('l.item_id', [...items])
    .orderBy('l.location_id')) as GridLevel[];

/** A total is worked out for all items only where they are sorted by it. */
const order = (db: Db, query: Knex.QueryBuilder, sort: string): void => {
  const direction = sort.startsWith('-') ? 'desc' : 'asc';
  const by = sort.replace('-', '');
  if (by === 'total') {
    const totals = db
      .table(LEVELS_TABLE)
      .select('item_id')
      .sum({ total: 'quantity' })
      .groupBy('item_id')
      .as('t');
    query.leftJoin(totals, 't.item_id', 'i.id').orderBy('t.total', direction);
  } else if (by !== 'id') {
    query.orderBy(`i.${by}`, direction);
  }
  query.orderBy('i.id', by === 'id' ? direction : 'asc');
};

/**
 * A page of the shelves as a table: an item a row, with what each of its locations holds. Two questions
 * a page, however many locations there are: its items, and the levels of those.
 */
export const listGrid = async (
  app: App,
  { search, sort, low, negative, ...request }: GridQuery
): Promise<Page<StockGridRow>> => {
  const db = await app.db.current();
  const query: Knex.QueryBuilder = db
    .table(`${ITEMS_TABLE} as i`)
    .select('i.id', 'i.sku', 'i.gtin', 'i.name', 'i.low_at')
    .whereNull('i.archived_at');
  if (search) whereContains(app.db, query, ['i.sku', 'i.gtin', 'i.name'], search);
  const holding = (is: boolean, rule: (level: Knex.QueryBuilder) => Knex.QueryBuilder) => {
    const levels = rule(db.table(`${LEVELS_TABLE} as w`).select('w.item_id')).whereRaw('?? = ??', [
      'w.item_id',
      'i.id',
    ]);
    if (is) query.whereExists(levels);
    else query.whereNotExists(levels);
  };
  if (low !== undefined) {
    holding(low, (level) =>
      level.whereRaw('?? <= COALESCE(??, ??, 0)', ['w.quantity', 'w.low_at', 'i.low_at'])
    );
  }
  if (negative !== undefined) holding(negative, (level) => level.where('w.quantity', '<', 0));
  order(db, query, sort);
  const { rows, meta } = await readPage<GridItem>(db, query, request);
  const levels = await levelsOf(
    db,
    rows.map(({ id }) => id)
  );
  const of = (item: GridItem) =>
    levels.filter((level) => Number(level.item_id) === Number(item.id));
  return { data: rows.map((row) => toGridRow(row, of(row))), meta };
};
