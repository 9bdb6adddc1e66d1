import type { Knex } from 'knex';
import type {
  ExplanationPoint,
  ExplanationTerm,
  Level,
  LevelExplanation,
  StockGridRow,
} from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import type { App } from '../app';
import { whereContains } from '../database/contains';
import type { Db } from '../database/db';
import { firstOrNotFound } from '../database/retry';
import { readList, readPage } from '../http/pagination';
import { isoTime, isoTimeOrNull } from '../runtime/text';
import { adjustIn, changeOfOne, writeAndPublish } from './by-hand';
import { lastCountOf, Ledger, moving, setLowMark, summaryOf, toMovement } from './ledger';
import type { Adjust, GridQuery, LevelMovementsQuery, LevelsQuery, UpdateLevel } from './inputs';
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
  skuDigest,
} from './tables';

type JoinedLevel = LevelRow &
  Pick<ItemRow, 'sku' | 'gtin' | 'name'> & { location_code: string; location_name: string };

const toLevel = (row: JoinedLevel): Level => ({
  id: Number(row.id),
  item_id: Number(row.item_id),
  sku: row.sku,
  gtin: row.gtin,
  name: row.name,
  location: summaryOf(row),
  quantity: Number(row.quantity),
  opening: Number(row.opening),
  low_at: row.low_at === null ? null : Number(row.low_at),
  last_counted_at: isoTimeOrNull(row.count_at),
});

const joined = (db: Db): Knex.QueryBuilder =>
  db
    .table(`${LEVELS_TABLE} as l`)
    .join(`${ITEMS_TABLE} as i`, 'i.id', 'l.item_id')
    .join(`${LOCATIONS_TABLE} as p`, 'p.id', 'l.location_id')
    .select('l.*', 'i.sku', 'i.gtin', 'i.name')
    .select('p.code as location_code', 'p.name as location_name');

/** By when they took effect: a till may report hours later. */
const LATEST_FIRST = ['at', 'id'].map((column) => ({ column, order: 'desc' }));

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
    return readList(db, query.orderBy(['l.item_id', 'l.location_id']), request, toLevel);
  }

  get(id: number): Promise<Level> {
    return this.one({ 'l.id': id });
  }

  /** Newest first; with a `type`, only those that this term of the explanation sums. */
  async movements(levelId: number, { type, reason, rest, ...request }: LevelMovementsQuery) {
    const db = await this.app.db.current();
    const found = db.table(LEVELS_TABLE).where({ id: levelId });
    const level = await firstOrNotFound<LevelRow>(found, 'Level');
    const list = (query: Knex.QueryBuilder) =>
      readList(db, query.select('*').orderBy(LATEST_FIRST), request, toMovement);
    if (type === undefined) return list(db.table(MOVEMENTS_TABLE).where({ level_id: levelId }));
    const history = new History(db, level, await lastCountOf(db, level.id));
    const words = type === 'adjustment' ? await history.mostUsedWords() : [];
    return list(history.movementsOf({ type, reason, rest }, words));
  }

  /** The level of an item at a location, by id or code; at the default one if it is left out. */
  async at(itemId: number, wanted: number | string | undefined): Promise<Level> {
    const location = await locationFromInput(await this.app.db.current(), wanted, 'location');
    return this.one({ 'l.item_id': itemId, 'l.location_id': Number(location.id) });
  }

  update(id: number, { low_at: lowAt }: UpdateLevel): Promise<Level> {
    return this.app.db.transaction(async (tx) => {
      await this.get(id);
      await setLowMark(tx, id, lowAt);
      return this.get(id);
    });
  }

  adjust(itemId: number, input: Adjust, madeBy: string | null): Promise<void> {
    return this.app.db.retrying(async (tx) => {
      const ledger = new Ledger(this.app, tx);
      await adjustIn(ledger, await changeOfOne(tx, itemId, input), input.occurred_at, madeBy);
      await writeAndPublish(tx, this.app, ledger);
    });
  }

  private async one(where: Record<string, number>): Promise<Level> {
    const query = joined(await this.app.db.current()).where(where);
    return toLevel(await firstOrNotFound<JoinedLevel>(query, 'Level'));
  }
}

type GridItem = Pick<ItemRow, 'id' | 'sku' | 'gtin' | 'name' | 'low_at'>;

const toGridRow = (item: GridItem, levels: readonly JoinedLevel[]): StockGridRow => {
  const lowAt = Number(item.low_at ?? 0);
  const quantities = levels.map(({ quantity }) => Number(quantity));
  const isLow = ({ quantity, low_at: own }: JoinedLevel) =>
    Number(quantity) <= Number(own ?? lowAt);
  return {
    id: Number(item.id),
    sku: item.sku,
    gtin: item.gtin,
    name: item.name,
    low_at: lowAt,
    total: quantities.reduce((sum, quantity) => sum + quantity, 0),
    low: levels.some(isLow),
    negative: quantities.some((quantity) => quantity < 0),
    levels: levels.map((level) => {
      const { id, location, quantity, low_at, last_counted_at } = toLevel(level);
      return { id, location, quantity, low_at, low: isLow(level), last_counted_at };
    }),
  };
};

/** Totals of all items are computed only to sort by them. */
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

/** A page of levels, one item per row with its locations. Two queries per page: items, then their levels. */
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
    const levels = db.table(`${LEVELS_TABLE} as w`).select('w.item_id');
    rule(levels.whereRaw('?? = ??', ['w.item_id', 'i.id']));
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
  const ids = rows.map(({ id }) => id);
  const levels: JoinedLevel[] = await joined(db).whereIn('l.item_id', ids).orderBy('l.location_id');
  const of = (item: GridItem) =>
    levels.filter((level) => Number(level.item_id) === Number(item.id));
  return { data: rows.map((row) => toGridRow(row, of(row))), meta };
};

/** Free words of adjustments that are a term of their own. */
const WORDS = 20;

/** Points of the line; more movements than that share them. */
const POINTS = 300;

const TYPES = ['sale', 'refund', 'transfer'];

interface Sums {
  quantity: Big | null;
  movements: Big;
}

type Words = Sums & { note: string | null };
type Step = Record<'at' | 'quantity', Big>;

const sums = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
  query.sum({ quantity: 'quantity' }).count({ movements: '*' });

const wordsOf = (note: string | null): string | null => note?.trim() || null;

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

/** The start of a level, its latest count or its opening, and the movements since. */
class History {
  constructor(
    private readonly db: Db,
    private readonly level: LevelRow,
    /** Undefined: the level starts from its opening, which is timeless. */
    private readonly count: MovementRow | undefined
  ) {}

  /** The movements whose sum a term is; of the opening there are none. */
  movementsOf(
    { type, reason, rest }: Pick<LevelMovementsQuery, 'type' | 'reason' | 'rest'>,
    mostUsed: readonly Words[]
  ): Knex.QueryBuilder {
    if (type === 'opening' || type === 'count') {
      const id = type === 'count' && this.count ? this.count.id : 0;
      return this.db.table(MOVEMENTS_TABLE).where({ level_id: this.level.id, id });
    }
    if (type === 'refund' && reason === 'no_restock') return this.all().where({ reason });
    const query = this.moved().where({ type });
    if (type !== 'adjustment') return query;
    const words = mostUsed.map(({ note }) => note);
    const own = rest ? words : words.filter((note) => wordsOf(note) === (reason ?? null));
    const notes = own.filter((note) => note !== null);
    query.where((any) => {
      if (!rest) {
        any.whereIn('note', notes);
        if (own.includes(null)) any.orWhereNull('note');
        return;
      }
      any.whereNotIn('note', notes);
      // NULL is in no list, and not in none either.
      if (own.includes(null)) any.whereNotNull('note');
      else any.orWhereNull('note');
    });
    return query;
  }

  async explain(): Promise<LevelExplanation> {
    const { count, level } = this;
    const start = Number(count ? count.quantity : level.opening);
    const terms = [
      term(count ? 'count' : 'opening', null, { quantity: start, movements: count ? 1 : 0 }),
      ...(await this.movedTerms()),
    ];
    const moved = await this.steps();
    let quantity = start;
    const series: ExplanationPoint[] = [{ at: isoTime(await this.begin(moved[0])), quantity }];
    for (const step of moved) {
      quantity += Number(step.quantity);
      series.push({ at: isoTime(Number(step.at)), quantity });
    }
    return {
      level_id: Number(level.id),
      quantity: Number(level.quantity),
      since: isoTimeOrNull(count?.at),
      terms,
      series,
    };
  }

  private all(): Knex.QueryBuilder {
    const query = this.db.table(MOVEMENTS_TABLE).where({ level_id: this.level.id });
    query.whereNot({ type: 'count' });
    return this.count ? query.where('at', '>', this.count.at) : query;
  }

  private moved(): Knex.QueryBuilder {
    return moving(this.all());
  }

  /** The words that were used most, with what they come to; as they were written, with their spaces. */
  async mostUsedWords(): Promise<Words[]> {
    return sums(this.moved().where({ type: 'adjustment' }))
      .select('note')
      .groupBy('note')
      .orderBy([{ column: 'movements', order: 'desc' }, { column: 'note' }])
      .limit(WORDS);
  }

  /** Sales, refunds and transfers, each one term, what was not restocked, and the adjustments. */
  private async movedTerms(): Promise<ExplanationTerm[]> {
    const moved = (await sums(this.moved()).select('type').groupBy('type')) as (Sums & {
      type: ExplanationTerm['type'];
    })[];
    const kept = this.all().where({ reason: 'no_restock' }).count({ n: '*' });
    const [{ n = 0 } = {}] = (await kept) as { n?: Big }[];
    const terms = moved.map((row) => term(row.type, null, row));
    const adjusted = terms.find(({ type }) => type === 'adjustment');
    const others = terms.filter((one) => one !== adjusted);
    if (Number(n) > 0) others.push(term('refund', 'no_restock', { quantity: 0, movements: n }));
    others.sort((a, b) => TYPES.indexOf(a.type) - TYPES.indexOf(b.type));
    return adjusted ? [...others, ...(await this.adjustmentTerms(adjusted))] : others;
  }

  /** One term for each of the words that were used most, and one for all others. */
  private async adjustmentTerms(all: ExplanationTerm): Promise<ExplanationTerm[]> {
    const rest = { ...all, rest: true as const };
    const terms = new Map<string | null, ExplanationTerm>();
    for (const row of await this.mostUsedWords()) {
      const reason = wordsOf(row.note);
      const own = terms.get(reason) ?? term('adjustment', reason, { quantity: 0, movements: 0 });
      terms.set(reason, own);
      own.quantity += Number(row.quantity ?? 0);
      own.movements += Number(row.movements);
      rest.quantity -= Number(row.quantity ?? 0);
      rest.movements -= Number(row.movements);
    }
    return [...terms.values(), ...(rest.movements > 0 ? [rest] : [])];
  }

  /** Sums by moment, or by intervals if there are too many moments. */
  private async steps(): Promise<Step[]> {
    const most = POINTS - 1;
    const byMoment: Step[] = await this.moved()
      .select('at')
      .sum({ quantity: 'quantity' })
      .groupBy('at')
      .orderBy('at')
      .limit(most + 1);
    if (byMoment.length <= most) return byMoment;
    const [ends]: Record<string, Big>[] = await this.moved()
      .min({ first: 'at' })
      .max({ last: 'at' });
    const first = Number(ends?.first);
    const width = Math.floor((Number(ends?.last) - first) / most) + 1;
    const parted = this.moved().select(
      'at',
      'quantity',
      this.db.raw('(?? - ?) - (?? - ?) % ? as ??', ['at', first, 'at', first, width, 'part'])
    );
    return (await this.db
      .from(parted)
      .max({ at: 'at' })
      .sum({ quantity: 'quantity' })
      .groupBy('part')
      .orderBy('at')) as Step[];
  }

  /** An opening has no time of its own: the line begins with the item, or with what came before it. */
  private async begin(first: Step | undefined): Promise<number> {
    if (this.count) return Number(this.count.at);
    const items = this.db.table(ITEMS_TABLE).where({ id: this.level.item_id });
    const item: Pick<ItemRow, 'created_at'> | undefined = await items.first('created_at');
    const made = Number(item?.created_at ?? this.level.updated_at);
    return first === undefined ? made : Math.min(made, Number(first.at) - 1);
  }
}

const isWhole = ({ quantity, terms, series }: LevelExplanation): boolean =>
  terms.reduce((sum, one) => sum + one.quantity, 0) === quantity &&
  series.at(-1)?.quantity === quantity;

/** Explains a level: its start and all movements since, which sum to it (docs/shop.md#stock). Throws NotFoundError. */
export const explainLevel = async (app: App, levelId: number): Promise<LevelExplanation> => {
  const read = (lock: boolean) =>
    app.db.transaction(async (tx) => {
      const query = tx.table(LEVELS_TABLE).where({ id: levelId });
      if (lock) query.forUpdate();
      const level = await firstOrNotFound<LevelRow>(query, 'Level');
      return new History(tx, level, await lastCountOf(tx, level.id)).explain();
    });
  // Tills continue to sell between two statements: the level is locked only if they did.
  const explanation = await read(false);
  return isWhole(explanation) ? explanation : read(true);
};
