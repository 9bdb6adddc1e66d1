import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Knex } from 'knex';
import type { Level, Movement } from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { whereContains } from '../database/contains';
import { firstOrNotFound, withTransientRetry } from '../database/retry';
import { readPage } from '../http/pagination';
import { timeOf } from './by-hand';
import type { Adjust, LevelMovementsQuery, LevelsQuery, UpdateLevel } from './inputs';
import { movementsOfTerm } from './explanation';
import { skuDigest } from './items';
import { getPublisher } from '../webhooks/publish';
import { createLedger } from './ledger';
import { stockChangeEvents } from './events';
import { locationDigest, locationFromInput } from './locations';
import { type JoinedLevel, toLevel, toMovement } from './serialize';
import {
  ITEMS_TABLE,
  type LevelRow,
  LEVELS_TABLE,
  LOCATIONS_TABLE,
  type MovementRow,
  MOVEMENTS_TABLE,
} from './tables';
import { appOf } from '../app';
import type { Db } from '../database/db';

/** Levels, their movements, and the owner's own adjustments. Unknown ids: NotFoundError (404). */
export interface LevelsService {
  list(query: LevelsQuery): Promise<Page<Level>>;
  get(id: number): Promise<Level>;
  /** Newest first; with a `type`, those alone whose sum that term of the explanation is. */
  movements(levelId: number, query: LevelMovementsQuery): Promise<Page<Movement>>;
  /** The level of an item at a location, by id or code; at the default one if it is left out. */
  at(itemId: number, location: number | string | undefined): Promise<Level>;
  /** Sets the level's own low mark. */
  update(id: number, input: UpdateLevel): Promise<Level>;
  /** Appends a relative adjustment. @param madeBy  who makes it */
  adjust(itemId: number, input: Adjust, madeBy: string | null): Promise<void>;
}

export const createLevelsService = ({ strapi }: { strapi: Core.Strapi }): LevelsService => {
  const app = appOf(strapi);
  const schema = app.db.schema;
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);

  const joined = (db: Db): Knex.QueryBuilder =>
    (db.knex as Knex)(`${named(LEVELS_TABLE)} as l`)
      .join(`${named(ITEMS_TABLE)} as i`, 'i.id', 'l.item_id')
      .join(`${named(LOCATIONS_TABLE)} as p`, 'p.id', 'l.location_id');

  const COLUMNS = [
    'l.*',
    'i.sku',
    'i.gtin',
    'i.name',
    'p.code as location_code',
    'p.name as location_name',
  ];

  const one = async (where: Record<string, number>): Promise<Level> => {
    const row = (await joined(await app.db.current())
      .select(COLUMNS)
      .where(where)
      .first()) as JoinedLevel | undefined;
    if (!row) throw new errors.NotFoundError('Level not found');
    return toLevel(row);
  };

  return {
    async list({ sku, item, location, search, ...request }) {
      const db = await app.db.current();
      const query = joined(db);
      if (sku !== undefined) query.where({ 'i.sku_digest': skuDigest(sku) });
      if (item !== undefined) query.where({ 'l.item_id': item });
      if (location !== undefined) {
        query.where((any) => {
          any.where({ 'p.code_digest': locationDigest(location) });
          if (/^[1-9]\d{0,8}$/.test(location)) any.orWhere({ 'p.id': Number(location) });
        });
      }
      if (search) whereContains(app.db, query, ['i.sku', 'i.gtin', 'i.name'], search);
      query.select(COLUMNS).orderBy(['l.item_id', 'l.location_id']);
      const { rows, meta } = await readPage<JoinedLevel>(db, query, request);
      return { data: rows.map(toLevel), meta };
    },

    get: (id) => one({ 'l.id': id }),

    async movements(levelId, { type, reason, rest, ...request }) {
      const db = await app.db.current();
      const level = await firstOrNotFound<LevelRow>(
        db.table(LEVELS_TABLE).where({ id: levelId }),
        'Level'
      );
      const all = db.table(MOVEMENTS_TABLE).where({ level_id: levelId });
      const { query } =
        type === undefined
          ? { query: all }
          : await movementsOfTerm(db, level, { type, reason, rest });
      query.select('*').orderBy('id', 'desc');
      const { rows, meta } = await readPage<MovementRow>(db, query, request);
      return { data: rows.map(toMovement), meta };
    },

    async at(itemId, wanted) {
      const db = await app.db.current();
      const location = await locationFromInput(db, wanted, 'location');
      return one({ 'l.item_id': itemId, 'l.location_id': Number(location.id) });
    },

    update: (id, { low_at: lowAt }) =>
      app.db.transaction(async (tx) => {
        await one({ 'l.id': id });
        await tx.table(LEVELS_TABLE).where({ id }).update({ low_at: lowAt });
        return one({ 'l.id': id });
      }),

    async adjust(itemId, { location: wanted, quantity = 0, reason, occurred_at: at }, madeBy) {
      await withTransientRetry(() =>
        app.db.transaction(async (tx) => {
          const item = await tx.table(ITEMS_TABLE).where({ id: itemId }).first();
          if (!item) throw new errors.NotFoundError('Item not found');
          const location = await locationFromInput(tx, wanted, 'location');
          const place = { item: itemId, location: Number(location.id) };
          const ledger = createLedger(app, tx);
          await ledger.lock([place]);
          ledger.move({
            ...place,
            type: 'adjustment',
            at: timeOf(at),
            quantity,
            reason: null,
            eventId: null,
            note: reason ?? null,
            madeBy,
          });
          const changes = await ledger.flush();
          await getPublisher(app).publish(await stockChangeEvents(tx, app, changes));
        })
      );
    },
  };
};
