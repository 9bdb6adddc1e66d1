import type { Knex } from 'knex';
import type { Item, Location } from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { whereContains } from '../database/contains';
import { firstOrNotFound } from '../database/retry';
import { type PageRequest, readList } from '../http/pagination';
import { definedOf, fieldError, fieldErrors, type FieldProblem } from '../http/validation';
import { claimSkus, markChanged, retireSku } from './catalogue';
import type { CreateItem, CreateLocation, ItemsQuery, UpdateItem, UpdateLocation } from './inputs';
import { gtinColumns, gtinDigest, newItem, notifyItemsKnown } from './items';
import { type LevelOpening, openLevels } from './ledger';
import { findProducts, lockProducts, mappingOf, wholePieces, writeThrough } from './products';
import { defaultLocation, locationDigest, locationFromInput } from './locations';
import { type ItemRow, ITEMS_TABLE, type LocationRow, LOCATIONS_TABLE, skuDigest } from './tables';
import { refusal } from '../runtime/refusal';
import { isoTime, isoTimeOrNull } from '../runtime/text';
import type { App } from '../app';
import type { Db } from '../database/db';

const TAKEN = refusal('is taken already', 'taken');

const toLocation = (row: LocationRow): Location => ({
  id: Number(row.id),
  name: row.name,
  code: row.code,
  is_default: Boolean(row.is_default),
  created_at: isoTime(Number(row.created_at)),
  updated_at: isoTime(Number(row.updated_at)),
});

const toItem = (row: ItemRow): Item => ({
  id: Number(row.id),
  sku: row.sku,
  gtin: row.gtin,
  name: row.name,
  low_at: Number(row.low_at ?? 0),
  archived_at: isoTimeOrNull(row.archived_at ?? null),
  created_at: isoTime(Number(row.created_at)),
  updated_at: isoTime(Number(row.updated_at)),
});

const items = (db: Db): Knex.QueryBuilder => db.table(ITEMS_TABLE);
const locations = (db: Db): Knex.QueryBuilder => db.table(LOCATIONS_TABLE);

/** @throws NotFoundError (404) */
const findItem = (db: Db, id: number): Promise<ItemRow> =>
  firstOrNotFound(items(db).where({ id }), 'Item');

/** @throws NotFoundError (404) */
const findLocation = (db: Db, id: number): Promise<LocationRow> =>
  firstOrNotFound(locations(db).where({ id }), 'Location');

const isTaken = async (query: Knex.QueryBuilder, id: number | null): Promise<boolean> => {
  const taken = (await query.select('id').first()) as { id: number } | undefined;
  return taken !== undefined && Number(taken.id) !== id;
};

const checkNames = async (
  tx: Db,
  id: number | null,
  { sku, gtin }: { sku?: string; gtin?: string | null }
): Promise<void> => {
  const wrong: FieldProblem[] = [];
  if (sku !== undefined && (await isTaken(items(tx).where({ sku_digest: skuDigest(sku) }), id))) {
    wrong.push({ path: 'sku', ...TAKEN });
  }
  if (gtin && (await isTaken(items(tx).where({ gtin_digest: gtinDigest(gtin) }), id))) {
    wrong.push({ path: 'gtin', ...TAKEN });
  }
  if (wrong.length > 0) throw fieldErrors(wrong);
};

/** Keeps items and locations. Unknown ids are a NotFoundError (404). */
export class ItemsService {
  constructor(private readonly app: App) {}

  /** Without archived ones, or only archived ones. */
  async listItems({ search, archived, ...request }: ItemsQuery): Promise<Page<Item>> {
    const db = await this.app.db.current();
    const query = items(db);
    if (archived) query.whereNotNull('archived_at');
    else query.whereNull('archived_at');
    if (search) whereContains(this.app.db, query, ['sku', 'gtin', 'name'], search);
    return readList(db, query.select('*').orderBy('id'), request, toItem);
  }

  async getItem(id: number): Promise<Item> {
    return toItem(await findItem(await this.app.db.current(), id));
  }

  /** Lines that wait for the item apply by themselves. */
  createItem({ sku, gtin = null, name = null, low_at, opening }: CreateItem): Promise<Item> {
    return this.app.db.unique(async (tx) => {
      // An item of the site's own product opens with its quantity, unless another one is given.
      const [product] = mappingOf(this.app)?.quantity
        ? await findProducts(tx, this.app, [sku], [], { lock: true })
        : [];
      await checkNames(tx, null, { sku, gtin });
      await items(tx).insert(newItem({ sku, gtin, name, low_at }));
      const named = items(tx).where({ sku_digest: skuDigest(sku) });
      const row = (await named.first()) as ItemRow;
      const places = new Set<number>();
      const openings: LevelOpening[] = [];
      const item = Number(row.id);
      const isGiven = opening.some(({ quantity }) => quantity !== 0);
      const adopted = wholePieces(product?.quantity ?? null);
      const main = Number((await defaultLocation(tx)).id);
      for (const [index, { location: named, quantity }] of opening.entries()) {
        const field = `opening.${index}.location`;
        const location = await locationFromInput(tx, named, field);
        if (places.has(location.id))
          throw fieldError(field, refusal('is named twice', 'named_twice'));
        places.add(location.id);
        const place = { item, location: Number(location.id) };
        const isAdopted = !isGiven && place.location === main;
        openings.push({ ...place, opening: isAdopted ? adopted : quantity });
      }
      if (openings.length === 0 || (!isGiven && adopted !== 0 && !places.has(main))) {
        // A new item is on the shelf's list at once, with nothing of it.
        openings.push({ item, location: main, opening: adopted });
      }
      await openLevels(tx, openings);
      if (product) await writeThrough(tx, this.app, [item]);
      await claimSkus(tx, [sku]);
      await markChanged(tx, [item]);
      await notifyItemsKnown(this.app, [{ sku, gtin }]);
      return toItem(row);
    });
  }

  /** Restores an archived item if requested; lines that wait for it apply by themselves. */
  updateItem(id: number, { sku, gtin, name, low_at, archived }: UpdateItem): Promise<Item> {
    return this.app.db.unique(async (tx) => {
      if (sku !== undefined && mappingOf(this.app)?.quantity) {
        // Products before items, as everybody locks them.
        const known = await findItem(tx, id);
        if (known.sku !== sku) await lockProducts(tx, this.app, [known.sku, sku]);
      }
      // Locked: of two renames the second retires the SKU that the first one gave.
      const before = await firstOrNotFound<ItemRow>(items(tx).where({ id }).forUpdate(), 'Item');
      await checkNames(tx, id, { sku, gtin });
      if (sku !== undefined && sku !== before.sku) {
        await retireSku(tx, before.sku);
        await claimSkus(tx, [sku]);
      }
      await items(tx)
        .where({ id })
        .update({
          ...definedOf({ name, low_at }),
          ...(sku !== undefined && { sku, sku_digest: skuDigest(sku) }),
          ...(sku !== undefined && sku !== before.sku && { product_gone: false }),
          ...(gtin !== undefined && gtinColumns(gtin)),
          ...(archived === false && { archived_at: null }),
          updated_at: Date.now(),
        });
      const row = await findItem(tx, id);
      if (row.sku !== before.sku) await writeThrough(tx, this.app, [id]);
      await markChanged(tx, [id]);
      await notifyItemsKnown(this.app, [{ sku: row.sku, gtin: row.gtin }]);
      return toItem(row);
    });
  }

  /** Its levels and movements stay; records that name it from now on wait for a mapping. */
  archiveItem(id: number): Promise<void> {
    return this.app.db.unique(async (tx) => {
      await findItem(tx, id);
      const at = Date.now();
      const current = items(tx).where({ id }).whereNull('archived_at');
      await current.update({ archived_at: at, updated_at: at });
      await markChanged(tx, [id]);
    });
  }

  async listLocations(request: PageRequest): Promise<Page<Location>> {
    const db = await this.app.db.current();
    return readList(db, locations(db).select('*').orderBy('id'), request, toLocation);
  }

  async getLocation(id: number): Promise<Location> {
    return toLocation(await findLocation(await this.app.db.current(), id));
  }

  createLocation({ name, code }: CreateLocation): Promise<Location> {
    return this.app.db.unique(async (tx) => {
      const where = { code_digest: locationDigest(code) };
      if (await isTaken(locations(tx).where(where), null)) throw fieldError('code', TAKEN);
      const at = Date.now();
      const made = { created_at: at, updated_at: at };
      await locations(tx).insert({ name, code, ...where, is_default: false, ...made });
      return toLocation((await locations(tx).where(where).first()) as LocationRow);
    });
  }

  updateLocation(id: number, { name, code }: UpdateLocation): Promise<Location> {
    return this.app.db.unique(async (tx) => {
      await findLocation(tx, id);
      const digest = code === undefined ? {} : { code_digest: locationDigest(code) };
      if (code !== undefined && (await isTaken(locations(tx).where(digest), id))) {
        throw fieldError('code', TAKEN);
      }
      const changed = { ...definedOf({ name, code }), ...digest, updated_at: Date.now() };
      await locations(tx).where({ id }).update(changed);
      return toLocation(await findLocation(tx, id));
    });
  }
}
