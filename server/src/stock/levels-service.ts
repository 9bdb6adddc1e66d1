import type { Knex } from 'knex';
import type {
  ExplanationPoint,
  ExplanationTerm,
  Level,
  LevelExplanation,
  Movement,
  StockGridRow,
} from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import type { App } from '../app';
import { whereContains } from '../database/contains';
import type { Db } from '../database/db';
import { firstOrNotFound, withTransientRetry } from '../database/retry';
import { readPage } from '../http/pagination';
import { isoTime, isoTimeOrNull } from '../runtime/text';
import { getPublisher } from '../webhooks/publish';
import { timeOf } from './by-hand';
import {
  type JoinedLevel,
  lastCountOf,
  Ledger,
  moving,
  setLowMark,
  stockChangeEvents,
  summaryOf,
  toLevel,
  toMovement,
} from './ledger';
import type { Adjust, GridQuery, LevelMovementsQuery, LevelsQuery, UpdateLevel } from './inputs';
import { skuDigest } from './items';
import { locationDigest, locationFromInput } from './locations';
import {
  type Big,
  type ItemRow,
  ITEMS_TABLE,
  type LevelRow,
  LEVELS_TABLE,
  LOCATIONS_TABLE,
  type MovementRow,
  MOVEMENTS_TABLE,
} from './tables';

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

/** Which movements the terms of an explanation are the sums of. */

/** Free words of adjustments that are a term of their own. */
const WORDS = 20;

/** What a level starts from. */
interface Base {
  quantity: number;
  /** Epoch ms; null: the opening quantity, which is timeless. */
  at: number | null;
  /** The movement that is the count; null: the opening quantity. */
  count: number | null;
}

interface Sums {
  quantity: Big | null;
  movements: Big;
}

/** A term, as a list of movements is narrowed to it. */
type TermOf = Pick<ExplanationTerm, 'type'> & { reason?: string; rest?: boolean };

const sums = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
  query.sum({ quantity: 'quantity' }).count({ movements: '*' });

const baseOf = async (db: Db, level: LevelRow): Promise<Base> => {
  const count = await lastCountOf(db, level.id);
  return count
    ? { quantity: Number(count.quantity), at: Number(count.at), count: Number(count.id) }
    : { quantity: Number(level.opening), at: null, count: null };
};

/** What came since the base, whether it touched the shelf or not. */
const since = (db: Db, level: LevelRow, base: Base): Knex.QueryBuilder => {
  const query = db.table(MOVEMENTS_TABLE).where({ level_id: level.id }).whereNot({ type: 'count' });
  return base.at === null ? query : query.where('at', '>', base.at);
};

/** The words that were used most, with what they come to; as they were written, with their spaces. */
const mostUsedWords = async (
  db: Db,
  level: LevelRow,
  base: Base
): Promise<(Sums & { note: string | null })[]> =>
  (await sums(moving(since(db, level, base)).where({ type: 'adjustment' }))
    .select('note')
    .groupBy('note')
    .orderBy([{ column: 'movements', order: 'desc' }, { column: 'note' }])
    .limit(WORDS)) as (Sums & { note: string | null })[];

/** What a term calls the words of an adjustment. */
const wordsOf = (note: string | null): string | null => note?.trim() || null;

/** Keeps rows with one of these notes; null is one, too. */
const withNotes = (query: Knex.QueryBuilder, notes: readonly (string | null)[]): void => {
  query.where((any) => {
    any.whereIn(
      'note',
      notes.filter((note) => note !== null)
    );
    if (notes.includes(null)) any.orWhereNull('note');
  });
};

const withoutNotes = (query: Knex.QueryBuilder, notes: readonly (string | null)[]): void => {
  query.where((any) => {
    any.whereNotIn(
      'note',
      notes.filter((note) => note !== null)
    );
    // NULL is in no list, and not in none either.
    if (notes.includes(null)) any.whereNotNull('note');
    else any.orWhereNull('note');
  });
};

/**
 * The movements whose sum a term is; of the opening there are none. In an object: a promise of a
 * query alone would run it.
 */
export const movementsOfTerm = async (
  db: Db,
  level: LevelRow,
  { type, reason, rest }: TermOf
): Promise<{ query: Knex.QueryBuilder }> => {
  const base = await baseOf(db, level);
  const all = since(db, level, base);
  if (type === 'opening' || type === 'count') {
    const id = type === 'count' ? base.count : null;
    const rows = db.table(MOVEMENTS_TABLE);
    return { query: rows.where({ level_id: level.id, id: id ?? 0 }) };
  }
  if (type === 'refund' && reason === 'no_restock') return { query: all.where({ reason }) };
  const query = moving(all).where({ type });
  if (type !== 'adjustment') return { query };
  const words = await mostUsedWords(db, level, base);
  const notes = words.map(({ note }) => note);
  if (rest) withoutNotes(query, notes);
  else {
    withNotes(
      query,
      notes.filter((note) => wordsOf(note) === (reason ?? null))
    );
  }
  return { query };
};

/** Points of the line; more movements than that share them. */
const POINTS = 300;

const term = (
  type: ExplanationTerm['type'],
  reason: string | null,
  { quantity, movements }: Sums
): ExplanationTerm => ({
  type,
  reason,
  quantity: Number(quantity ?? 0),
  movements: Number(movements),
});

/** Sales, refunds and transfers, each one term; what was not restocked is one of its own. */
const typeTerms = async (db: Db, level: LevelRow, base: Base): Promise<ExplanationTerm[]> => {
  const moved = (await sums(moving(since(db, level, base)))
    .select('type')
    .whereNot({ type: 'adjustment' })
    .groupBy('type')) as (Sums & { type: ExplanationTerm['type'] })[];
  const kept = since(db, level, base).where({ reason: 'no_restock' }).count({ n: '*' });
  const [{ n = 0 } = {}] = (await kept) as { n?: Big }[];
  const terms = moved.map((row) => term(row.type, null, row));
  if (Number(n) > 0) terms.push(term('refund', 'no_restock', { quantity: 0, movements: n }));
  const order = ['sale', 'refund', 'transfer'];
  return terms.sort((a, b) => order.indexOf(a.type) - order.indexOf(b.type));
};

/** One term for each of the words that were used most, and one for all others. */
const adjustmentTerms = async (db: Db, level: LevelRow, base: Base): Promise<ExplanationTerm[]> => {
  const adjustments = moving(since(db, level, base)).where({ type: 'adjustment' });
  const [all] = (await sums(adjustments)) as Sums[];
  if (!all || Number(all.movements) === 0) return [];
  const named = await mostUsedWords(db, level, base);
  const terms = new Map<string | null, ExplanationTerm>();
  for (const row of named) {
    const reason = wordsOf(row.note);
    const known = terms.get(reason);
    const next = term('adjustment', reason, row);
    if (known) {
      known.quantity += next.quantity;
      known.movements += next.movements;
    } else {
      terms.set(reason, next);
    }
  }
  const list = [...terms.values()];
  const quantity = list.reduce((sum, one) => sum - one.quantity, Number(all.quantity ?? 0));
  const movements = list.reduce((sum, one) => sum - one.movements, Number(all.movements));
  if (movements > 0) {
    list.push({ type: 'adjustment', reason: null, quantity, movements, rest: true });
  }
  return list;
};

/** Sums by moment, or by parts of the time where there are too many moments. */
const steps = async (
  db: Db,
  level: LevelRow,
  base: Base
): Promise<{ at: number; quantity: number }[]> => {
  const moved = () => moving(since(db, level, base));
  const most = POINTS - 1;
  const byMoment = (await moved()
    .select('at')
    .sum({ quantity: 'quantity' })
    .groupBy('at')
    .orderBy('at')
    .limit(most + 1)) as { at: Big; quantity: Big }[];
  if (byMoment.length <= most) {
    return byMoment.map(({ at, quantity }) => ({ at: Number(at), quantity: Number(quantity) }));
  }
  const ends = (await moved().min({ first: 'at' }).max({ last: 'at' })) as Record<string, Big>[];
  const first = Number(ends[0]?.first);
  const width = Math.floor((Number(ends[0]?.last) - first) / most) + 1;
  const parted = moved().select(
    'at',
    'quantity',
    db.raw('(?? - ?) - (?? - ?) % ? as ??', ['at', first, 'at', first, width, 'part'])
  );
  const parts = (await db
    .from(parted)
    .max({ at: 'at' })
    .sum({ quantity: 'quantity' })
    .groupBy('part')
    .orderBy('at')) as { at: Big; quantity: Big }[];
  return parts.map(({ at, quantity }) => ({ at: Number(at), quantity: Number(quantity) }));
};

/** An opening has no time of its own: the line begins with the item, or with what came before it. */
const startOf = async (
  db: Db,
  level: LevelRow,
  base: Base,
  first: number | undefined
): Promise<number> => {
  if (base.at !== null) return base.at;
  const item = (await db
    .table(ITEMS_TABLE)
    .select('created_at')
    .where({ id: level.item_id })
    .first()) as Pick<ItemRow, 'created_at'> | undefined;
  const made = Number(item?.created_at ?? level.updated_at);
  return first === undefined ? made : Math.min(made, first - 1);
};

const work = async (db: Db, level: LevelRow): Promise<LevelExplanation> => {
  const base = await baseOf(db, level);
  const isCounted = base.count !== null;
  const terms: ExplanationTerm[] = [
    {
      type: isCounted ? 'count' : 'opening',
      reason: null,
      quantity: base.quantity,
      movements: isCounted ? 1 : 0,
    },
    ...(await typeTerms(db, level, base)),
    ...(await adjustmentTerms(db, level, base)),
  ];
  const moved = await steps(db, level, base);
  let quantity = base.quantity;
  const start = await startOf(db, level, base, moved[0]?.at);
  const series: ExplanationPoint[] = [{ at: isoTime(start), quantity }];
  for (const step of moved) {
    quantity += step.quantity;
    series.push({ at: isoTime(step.at), quantity });
  }
  return {
    level_id: Number(level.id),
    quantity: Number(level.quantity),
    since: isoTimeOrNull(base.at),
    terms,
    series,
  };
};

const isWhole = ({ quantity, terms, series }: LevelExplanation): boolean =>
  terms.reduce((sum, one) => sum + one.quantity, 0) === quantity &&
  series.at(-1)?.quantity === quantity;

/**
 * Why a level is what it is: what it starts from, and everything that moved it since; the terms
 * sum to the quantity (docs/tills.md#why-a-level-is-what-it-is).
 * @throws NotFoundError (404)
 */
export const explainLevel = async (app: App, levelId: number): Promise<LevelExplanation> => {
  const level = (db: Db) => db.table(LEVELS_TABLE).where({ id: levelId });
  const read = (lock: boolean) =>
    app.db.transaction(async (tx) => {
      const query = lock ? level(tx).forUpdate() : level(tx);
      return work(tx, await firstOrNotFound<LevelRow>(query, 'Level'));
    });
  // Tills go on selling between two statements: only where they did, the level is held still.
  const explanation = await read(false);
  return isWhole(explanation) ? explanation : read(true);
};
