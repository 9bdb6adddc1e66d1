import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { ExplanationTerm } from '../../../shared/contracts/stock';
import { type Executor, table } from '../database/connection';
import { lastCountOf, moving } from './fold-level';
import { type Big, type LevelRow, MOVEMENTS_TABLE } from './tables';

/** Which movements the terms of an explanation are the sums of. */

/** Free words of adjustments that are a term of their own. */
const WORDS = 20;

/** What a level starts from. */
export interface Base {
  quantity: number;
  /** Epoch ms; null: the opening quantity, which is timeless. */
  at: number | null;
  /** The movement that is the count; null: the opening quantity. */
  count: number | null;
}

export interface Sums {
  quantity: Big | null;
  movements: Big;
}

/** A term, as a list of movements is narrowed to it. */
export type TermOf = Pick<ExplanationTerm, 'type'> & { reason?: string; rest?: boolean };

export const sums = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
  query.sum({ quantity: 'quantity' }).count({ movements: '*' });

export const baseOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  level: LevelRow
): Promise<Base> => {
  const count = await lastCountOf(strapi, executor, level.id);
  return count
    ? { quantity: Number(count.quantity), at: Number(count.at), count: Number(count.id) }
    : { quantity: Number(level.opening), at: null, count: null };
};

/** What came since the base, whether it touched the shelf or not. */
export const since = (
  strapi: Core.Strapi,
  executor: Executor,
  level: LevelRow,
  base: Base
): Knex.QueryBuilder => {
  const query = table(strapi, executor, MOVEMENTS_TABLE)
    .where({ level_id: level.id })
    .whereNot({ type: 'count' });
  return base.at === null ? query : query.where('at', '>', base.at);
};

/** The words that were used most, with what they come to; as they were written, with their spaces. */
export const mostUsedWords = async (
  strapi: Core.Strapi,
  executor: Executor,
  level: LevelRow,
  base: Base
): Promise<(Sums & { note: string | null })[]> =>
  (await sums(moving(since(strapi, executor, level, base)).where({ type: 'adjustment' }))
    .select('note')
    .groupBy('note')
    .orderBy([{ column: 'movements', order: 'desc' }, { column: 'note' }])
    .limit(WORDS)) as (Sums & { note: string | null })[];

/** What a term calls the words of an adjustment. */
export const wordsOf = (note: string | null): string | null => note?.trim() || null;

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
  strapi: Core.Strapi,
  executor: Executor,
  level: LevelRow,
  { type, reason, rest }: TermOf
): Promise<{ query: Knex.QueryBuilder }> => {
  const base = await baseOf(strapi, executor, level);
  const all = since(strapi, executor, level, base);
  if (type === 'opening' || type === 'count') {
    const id = type === 'count' ? base.count : null;
    const rows = table(strapi, executor, MOVEMENTS_TABLE);
    return { query: rows.where({ level_id: level.id, id: id ?? 0 }) };
  }
  if (type === 'refund' && reason === 'no_restock') return { query: all.where({ reason }) };
  const query = moving(all).where({ type });
  if (type !== 'adjustment') return { query };
  const words = await mostUsedWords(strapi, executor, level, base);
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
