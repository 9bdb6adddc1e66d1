import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Knex } from 'knex';
import type { Item, Location } from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../database/connection';
import { whereContains } from '../database/contains';
import { firstOrNotFound, inUniqueTransaction } from '../database/retry';
import { type PageRequest, readPage } from '../http/pagination';
import { fieldError, fieldErrors, type FieldProblem } from '../http/validation';
import { claimSkus, markChanged, retireSku } from './catalogue-changes';
import type { CreateItem, CreateLocation, ItemsQuery, UpdateItem, UpdateLocation } from './inputs';
import { gtinDigest, notifyItemsKnown, skuDigest } from './items';
import { type LevelOpening, openLevels } from './ledger';
import { lockMappedNames, writeThrough } from './product-mapping';
import { findProducts, mappingOf, wholePieces } from './products';
import { defaultLocation, locationDigest, locationFromInput } from './locations';
import { toItem, toLocation } from './serialize';
import { type ItemRow, ITEMS_TABLE, type LocationRow, LOCATIONS_TABLE } from './tables';
import { refusal } from '../runtime/refusal';

/** Keeps items and locations. Unknown ids are a NotFoundError (404). */
export interface ItemsService {
  /** Without those that are archived, or these alone. */
  listItems(query: ItemsQuery): Promise<Page<Item>>;
  getItem(id: number): Promise<Item>;
  /** Lines that wait for the item apply by themselves. */
  createItem(input: CreateItem): Promise<Item>;
  /** Brings an archived item back where it says so; lines that wait for it apply by themselves. */
  updateItem(id: number, input: UpdateItem): Promise<Item>;
  /** Its levels and movements stay; records that name it from now on wait for a mapping. */
  archiveItem(id: number): Promise<void>;
  listLocations(query: PageRequest): Promise<Page<Location>>;
  getLocation(id: number): Promise<Location>;
  createLocation(input: CreateLocation): Promise<Location>;
  updateLocation(id: number, input: UpdateLocation): Promise<Location>;
}

const TAKEN = refusal('is taken already', 'taken');

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

  const isTaken = async (query: Knex.QueryBuilder, id: number | null): Promise<boolean> => {
    const taken = (await query.select('id').first()) as { id: number } | undefined;
    return taken !== undefined && Number(taken.id) !== id;
  };

  const refuseTaken = async (
    query: Knex.QueryBuilder,
    id: number | null,
    field: string
  ): Promise<void> => {
    if (await isTaken(query, id)) throw fieldError(field, TAKEN);
  };

  const checkNames = async (
    trx: Executor,
    id: number | null,
    { sku, gtin }: { sku?: string; gtin?: string | null }
  ): Promise<void> => {
    const wrong: FieldProblem[] = [];
    if (
      sku !== undefined &&
      (await isTaken(items(trx).where({ sku_digest: skuDigest(sku) }), id))
    ) {
      wrong.push({ path: 'sku', ...TAKEN });
    }
    if (gtin && (await isTaken(items(trx).where({ gtin_digest: gtinDigest(gtin) }), id))) {
      wrong.push({ path: 'gtin', ...TAKEN });
    }
    if (wrong.length > 0) throw fieldErrors(wrong);
  };

  const page = async <Row, Out>(
    query: Knex.QueryBuilder,
    executor: Executor,
    request: PageRequest,
    shape: (row: Row) => Out
  ): Promise<Page<Out>> => {
    const all = query.clone().select('*').orderBy('id');
    const { rows, meta } = await readPage<Row>(executor, all, request);
    return { data: rows.map(shape), meta };
  };

  const gtinColumns = (gtin: string | null) => ({
    gtin,
    gtin_digest: gtin === null ? null : gtinDigest(gtin),
  });

  return {
    async listItems({ search, archived, ...request }) {
      const executor = await currentExecutor(strapi);
      const query = archived
        ? items(executor).whereNotNull('archived_at')
        : items(executor).whereNull('archived_at');
      if (search) whereContains(strapi, query, ['sku', 'gtin', 'name'], search);
      return page<ItemRow, Item>(query, executor, request, toItem);
    },

    async getItem(id) {
      return toItem(await find<ItemRow>(items, await currentExecutor(strapi), id, 'Item'));
    },

    createItem: ({ sku, gtin, name, low_at, opening }) =>
      inUniqueTransaction(strapi, async ({ trx }) => {
        // A product of the site's own has its number as the opening, unless another one is given.
        const [product] = mappingOf(strapi)?.quantity
          ? await findProducts(strapi, trx, [sku], [], { lock: true })
          : [];
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
        const openings: LevelOpening[] = [];
        const item = Number(row.id);
        const isGiven = opening.some(({ quantity }) => quantity !== 0);
        const adopted = wholePieces(product?.quantity ?? null);
        const main = Number((await defaultLocation(strapi, trx)).id);
        for (const [index, { location: named, quantity }] of opening.entries()) {
          const field = `opening.${index}.location`;
          const location = await locationFromInput(strapi, trx, named, field);
          if (places.has(location.id))
            throw fieldError(field, refusal('is named twice', 'named_twice'));
          places.add(location.id);
          const isAdopted = !isGiven && Number(location.id) === main;
          openings.push({
            item,
            location: Number(location.id),
            opening: isAdopted ? adopted : quantity,
          });
        }
        if (openings.length === 0 || (!isGiven && adopted !== 0 && !places.has(main))) {
          // A new item is on the shelf's list at once, with nothing of it.
          openings.push({ item, location: main, opening: adopted });
        }
        await openLevels(strapi, trx, openings);
        if (product) await writeThrough(strapi, trx, [{ item }]);
        await claimSkus(strapi, trx, [sku]);
        await markChanged(strapi, trx, [Number(row.id)]);
        await notifyItemsKnown(strapi, [{ sku, gtin: gtin ?? null }]);
        return toItem(row);
      }),

    updateItem: (id, { sku, gtin, name, low_at, archived }) =>
      inUniqueTransaction(strapi, async ({ trx }) => {
        if (sku !== undefined) {
          // Products before items, as everybody locks them.
          const known = await find<ItemRow>(items, trx, id, 'Item');
          if (known.sku !== sku) await lockMappedNames(strapi, trx, [known.sku, sku]);
        }
        // Locked: of two renames the second retires the SKU that the first one gave.
        const before = await firstOrNotFound<ItemRow>(items(trx).where({ id }).forUpdate(), 'Item');
        await checkNames(trx, id, { sku, gtin });
        if (sku !== undefined && sku !== before.sku) {
          await retireSku(strapi, trx, before.sku);
          await claimSkus(strapi, trx, [sku]);
        }
        await items(trx)
          .where({ id })
          .update({
            ...(sku !== undefined && { sku, sku_digest: skuDigest(sku) }),
            ...(sku !== undefined && sku !== before.sku && { product_gone: false }),
            ...(gtin !== undefined && gtinColumns(gtin)),
            ...(name !== undefined && { name }),
            ...(low_at !== undefined && { low_at }),
            ...(archived === false && { archived_at: null }),
            updated_at: Date.now(),
          });
        const row = await find<ItemRow>(items, trx, id, 'Item');
        if (row.sku !== before.sku) await writeThrough(strapi, trx, [{ item: id }]);
        await markChanged(strapi, trx, [id]);
        await notifyItemsKnown(strapi, [{ sku: row.sku, gtin: row.gtin }]);
        return toItem(row);
      }),

    archiveItem: (id) =>
      inUniqueTransaction(strapi, async ({ trx }) => {
        await find(items, trx, id, 'Item');
        const at = Date.now();
        await items(trx)
          .where({ id })
          .whereNull('archived_at')
          .update({ archived_at: at, updated_at: at });
        await markChanged(strapi, trx, [id]);
      }),

    async listLocations(request) {
      const executor = await currentExecutor(strapi);
      return page<LocationRow, Location>(locations(executor), executor, request, toLocation);
    },

    async getLocation(id) {
      const executor = await currentExecutor(strapi);
      return toLocation(await find<LocationRow>(locations, executor, id, 'Location'));
    },

    createLocation: ({ name, code }) =>
      inUniqueTransaction(strapi, async ({ trx }) => {
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
      inUniqueTransaction(strapi, async ({ trx }) => {
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
