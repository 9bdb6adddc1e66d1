import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { type Executor, table } from '../database/connection';
import { readLatest } from '../database/latest';
import { type LevelState, openLevel, STANDING_REASONS } from './rules/fold';
import { type LevelRow, type MovementRow, MOVEMENTS_TABLE } from './tables';

type Named = Pick<LevelRow, 'id' | 'opening'>;

/** The lines of a level that are no counts and touch the shelf, whatever counts cover. */
export const moving = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
  query.whereNot({ type: 'count' }).andWhere((any) => {
    any.whereNull('reason').orWhereNotIn('reason', [...STANDING_REASONS]);
  });

const latestCounts = (strapi: Core.Strapi, executor: Executor, levelId: number) =>
  table(strapi, executor, MOVEMENTS_TABLE)
    .where({ level_id: levelId, type: 'count' })
    .whereNull('undone')
    .orderBy([
      { column: 'at', order: 'desc' },
      { column: 'seq', order: 'desc' },
      { column: 'line', order: 'desc' },
    ])
    .limit(1);

/** The count that a level starts from, as the ledger has it; undefined: the opening quantity. */
export const lastCountOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  levelId: number
): Promise<MovementRow | undefined> => {
  const [last] = (await latestCounts(strapi, executor, levelId)) as MovementRow[];
  return last;
};

/**
 * The fold of `rules/fold.ts`, asked of the database, so that a million movements cost no memory.
 * @param level  locked by the transaction; what was committed before the lock is seen, on MySQL too
 */
export const foldInDatabase = async (
  strapi: Core.Strapi,
  executor: Executor,
  level: Named
): Promise<LevelState> => {
  const [last] = (await readLatest(
    strapi,
    latestCounts(strapi, executor, level.id)
  )) as MovementRow[];
  const moved = moving(table(strapi, executor, MOVEMENTS_TABLE).where({ level_id: level.id }));
  if (last) moved.andWhere('at', '>', Number(last.at));
  const [sum] = (await readLatest(strapi, moved.sum({ moved: 'quantity' }))) as {
    moved: number | string | null;
  }[];
  const after = Number(sum?.moved ?? 0);
  if (!last) return openLevel(Number(level.opening) + after);
  return {
    quantity: Number(last.quantity) + after,
    lastCount: { time: Number(last.at), seq: Number(last.seq), line: Number(last.line) },
  };
};
