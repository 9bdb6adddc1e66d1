import type { Knex } from 'knex';
import type {
  ExplanationPoint,
  ExplanationTerm,
  LevelExplanation,
} from '../../../shared/contracts/stock';
import { firstOrNotFound } from '../database/retry';
import { isoTime, isoTimeOrNull } from '../runtime/text';
import { lastCountOf, moving } from './ledger';
import {
  type Big,
  type ItemRow,
  ITEMS_TABLE,
  type LevelRow,
  LEVELS_TABLE,
  MOVEMENTS_TABLE,
} from './tables';
import type { App } from '../app';
import type { Db } from '../database/db';

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
