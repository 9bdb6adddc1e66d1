import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Knex } from 'knex';
import type { Item, Location } from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, inTransaction, table } from '../database/connection';
import { countUpToLimit, type PageRequest, paginationMeta } from '../pagination';
import { fieldError } from '../validation';
import type { CreateItem, CreateLocation, ListQuery, UpdateItem, UpdateLocation } from './inputs';
import { gtinDigest, skuDigest } from './items';
import { tellItemsLearned } from './learned';
import { defaultLocation, locationDigest, locationFromInput } from './locations';
import { toItem, toLocation } from './serialize';
import {
  type ItemRow,
  ITEMS_TABLE,
  LEVELS_TABLE,
  type LocationRow,
  LOCATIONS_TABLE,
} from './tables';

/** Keeps items and locations. Unknown ids are a NotFoundError (404). */
export interface ItemsService {
  listItems(query: ListQuery): Promise<Page<Item>>;
  getItem(id: number): Promise<Item>;
  /** Lines that wait for the item apply by themselves. */
  createItem(input: CreateItem): Promise<Item>;
  updateItem(id: number, input: UpdateItem): Promise<Item>;
  listLocations(query: PageRequest): Promise<Page<Location>>;
  createLocation(input: CreateLocation): Promise<Location>;
  updateLocation(id: number, input: UpdateLocation): Promise<Location>;
}

/** `%` and `_` of a search mean themselves. */
export const likePattern = (search: string): string =>
  `%${search.toLowerCase().replace(/[!%_]/g, '!$&')}%`;

export const createItemsService = ({ strapi }: { strapi: Core.Strapi }): ItemsService => {
  const items = (executor: Executor): Knex.QueryBuilder => table(strapi, executor, ITEMS_TABLE);
  const locations = (executor: Executor): Knex.QueryBuilder =>
    table(strapi, executor, LOCATIONS_TABLE);

  const find = async <Row>(
    from: (executor: Executor) => Knex.QueryBuilder,
    executor: Executor,
    id: number,
    what: string
  ): Promise<Row> => {
    const row = (await from(executor).where({ id }).first()) as Row | undefined;
    if (!row) throw new errors.NotFoundError(`${what} not found`);
    return row;
  };

  const refuseTaken = async (
    query: Knex.QueryBuilder,
    id: number | null,
    field: string
  ): Promise<void> => {
    const taken = (await query.select('id').first()) as { id: number } | undefined;
    if (taken && Number(taken.id) !== id) throw fieldError(field, 'is taken already');
  };

  const checkNames = async (
    trx: Executor,
    id: number | null,
    { sku, gtin }: { sku?: string; gtin?: string | null }
  ): Promise<void> => {
    if (sku !== undefined) {
      await refuseTaken(items(trx).where({ sku_digest: skuDigest(sku) }), id, 'sku');
    }
    if (gtin) await refuseTaken(items(trx).where({ gtin_digest: gtinDigest(gtin) }), id, 'gtin');
  };

  const page = async <Row, Out>(
    query: Knex.QueryBuilder,
    executor: Executor,
    request: PageRequest,
    shape: (row: Row) => Out
  ): Promise<Page<Out>> => {
    const counted = await countUpToLimit(executor as Knex, query);
    const rows = (await query
      .clone()
      .select('*')
      .orderBy('id')
      .limit(request.per_page)
      .offset((request.page - 1) * request.per_page)) as Row[];
    return { data: rows.map(shape), meta: paginationMeta(request, counted) };
  };

  const gtinColumns = (gtin: string | null) => ({
    gtin,
    gtin_digest: gtin === null ? null : gtinDigest(gtin),
  });

  return {
    async listItems({ search, ...request }) {
      const executor = await currentExecutor(strapi);
      const query = items(executor);
      if (search) {
        const like = likePattern(search);
        query.where((any) => {
          for (const column of ['sku', 'gtin', 'name']) {
            any.orWhereRaw("LOWER(??) LIKE ? ESCAPE '!'", [column, like]);
          }
        });
      }
      return page<ItemRow, Item>(query, executor, request, toItem);
    },

    async getItem(id) {
      return toItem(await find<ItemRow>(items, await currentExecutor(strapi), id, 'Item'));
    },

    createItem: ({ sku, gtin, name, low_at, opening }) =>
      inTransaction(strapi, async ({ trx }) => {
        await checkNames(trx, null, { sku, gtin });
        const at = Date.now();
        await items(trx).insert({
          sku,
          sku_digest: skuDigest(sku),
          ...gtinColumns(gtin ?? null),
          name: name ?? null,
          low_at,
          created_at: at,
          updated_at: at,
        });
        const row = (await items(trx)
          .where({ sku_digest: skuDigest(sku) })
          .first()) as ItemRow;
        const places = new Set<number>();
        for (const [index, { location: named, quantity }] of opening.entries()) {
          const field = `opening.${index}.location`;
          const location = await locationFromInput(strapi, trx, named, field);
          if (places.has(location.id)) throw fieldError(field, 'is named twice');
          places.add(location.id);
          await table(strapi, trx, LEVELS_TABLE).insert({
            item_id: row.id,
            location_id: location.id,
            opening: quantity,
            quantity,
            updated_at: at,
          });
        }
        if (places.size === 0) {
          // A new item is on the shelf's list at once, with nothing of it.
          await table(strapi, trx, LEVELS_TABLE).insert({
            item_id: row.id,
            location_id: (await defaultLocation(strapi, trx)).id,
            opening: 0,
            quantity: 0,
            updated_at: at,
          });
        }
        await tellItemsLearned(strapi, [{ sku, gtin: gtin ?? null }]);
        return toItem(row);
      }),

    updateItem: (id, { sku, gtin, name, low_at }) =>
      inTransaction(strapi, async ({ trx }) => {
        await find(items, trx, id, 'Item');
        await checkNames(trx, id, { sku, gtin });
        await items(trx)
          .where({ id })
          .update({
            ...(sku !== undefined && { sku, sku_digest: skuDigest(sku) }),
            ...(gtin !== undefined && gtinColumns(gtin)),
            ...(name !== undefined && { name }),
            ...(low_at !== undefined && { low_at }),
            updated_at: Date.now(),
          });
        const row = await find<ItemRow>(items, trx, id, 'Item');
        await tellItemsLearned(strapi, [{ sku: row.sku, gtin: row.gtin }]);
        return toItem(row);
      }),

    async listLocations(request) {
      const executor = await currentExecutor(strapi);
      return page<LocationRow, Location>(locations(executor), executor, request, toLocation);
    },

    createLocation: ({ name, code }) =>
      inTransaction(strapi, async ({ trx }) => {
        const where = { code_digest: locationDigest(code) };
        await refuseTaken(locations(trx).where(where), null, 'code');
        const at = Date.now();
        await locations(trx).insert({
          name,
          code,
          ...where,
          is_default: false,
          created_at: at,
          updated_at: at,
        });
        return toLocation((await locations(trx).where(where).first()) as LocationRow);
      }),

    updateLocation: (id, { name, code }) =>
      inTransaction(strapi, async ({ trx }) => {
        await find(locations, trx, id, 'Location');
        if (code !== undefined) {
          const where = { code_digest: locationDigest(code) };
          await refuseTaken(locations(trx).where(where), id, 'code');
        }
        await locations(trx)
          .where({ id })
          .update({
            ...(name !== undefined && { name }),
            ...(code !== undefined && { code, code_digest: locationDigest(code) }),
            updated_at: Date.now(),
          });
        return toLocation(await find<LocationRow>(locations, trx, id, 'Location'));
      }),
  };
};
