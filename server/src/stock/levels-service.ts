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
import { Ledger, setLowMark } from './ledger';
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
import type { App } from '../app';
import type { Db } from '../database/db';

const COLUMNS = [
  'l.*',
  'i.sku',
  'i.gtin',
  'i.name',
  'p.code as location_code',
  'p.name as location_name',
];

const joined = (db: Db): Knex.QueryBuilder =>
  db
    .table(`${LEVELS_TABLE} as l`)
    .join(`${ITEMS_TABLE} as i`, 'i.id', 'l.item_id')
    .join(`${LOCATIONS_TABLE} as p`, 'p.id', 'l.location_id');

/** Levels, their movements, and the owner's own adjustments. Unknown ids: NotFoundError (404). */
export class LevelsService {
  constructor(private readonly app: App) {}

  async list({ sku, item, location, search, ...request }: LevelsQuery): Promise<Page<Level>> {
    const db = await this.app.db.current();
    const query = joined(db);
    if (sku !== undefined) query.where({ 'i.sku_digest': skuDigest(sku) });
    if (item !== undefined) query.where({ 'l.item_id': item });
    if (location !== undefined) {
      query.where((any) => {
        any.where({ 'p.code_digest': locationDigest(location) });
        if (/^[1-9]\d{0,8}$/.test(location)) any.orWhere({ 'p.id': Number(location) });
      });
    }
    if (search) whereContains(this.app.db, query, ['i.sku', 'i.gtin', 'i.name'], search);
    query.select(COLUMNS).orderBy(['l.item_id', 'l.location_id']);
    const { rows, meta } = await readPage<JoinedLevel>(db, query, request);
    return { data: rows.map(toLevel), meta };
  }

  get(id: number): Promise<Level> {
    return this.one({ 'l.id': id });
  }

  /** Newest first; with a `type`, those alone whose sum that term of the explanation is. */
  async movements(
    levelId: number,
    { type, reason, rest, ...request }: LevelMovementsQuery
  ): Promise<Page<Movement>> {
    const db = await this.app.db.current();
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
  }

  /** The level of an item at a location, by id or code; at the default one if it is left out. */
  async at(itemId: number, wanted: number | string | undefined): Promise<Level> {
    const db = await this.app.db.current();
    const location = await locationFromInput(db, wanted, 'location');
    return this.one({ 'l.item_id': itemId, 'l.location_id': Number(location.id) });
  }

  /** Sets the level's own low mark. */
  update(id: number, { low_at: lowAt }: UpdateLevel): Promise<Level> {
    return this.app.db.transaction(async (tx) => {
      await this.one({ 'l.id': id });
      await setLowMark(tx, id, lowAt);
      return this.one({ 'l.id': id });
    });
  }

  /** Appends a relative adjustment. @param madeBy  who makes it */
  async adjust(
    itemId: number,
    { location: wanted, quantity = 0, reason, occurred_at: at }: Adjust,
    madeBy: string | null
  ): Promise<void> {
    await withTransientRetry(() =>
      this.app.db.transaction(async (tx) => {
        await firstOrNotFound(tx.table(ITEMS_TABLE).where({ id: itemId }), 'Item');
        const location = await locationFromInput(tx, wanted, 'location');
        const place = { item: itemId, location: Number(location.id) };
        const ledger = new Ledger(this.app, tx);
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
        await getPublisher(this.app).publish(await stockChangeEvents(tx, this.app, changes));
      })
    );
  }

  private async one(where: Record<string, number>): Promise<Level> {
    const query = joined(await this.app.db.current())
      .select(COLUMNS)
      .where(where);
    return toLevel(await firstOrNotFound<JoinedLevel>(query, 'Level'));
  }
}
