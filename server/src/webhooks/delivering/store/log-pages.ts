import type { Knex } from 'knex';
import { type Executor, fromQuery } from '../../../database/connection';
import { COUNT_LIMIT } from '../../../http/pagination';
import type { LogPlace } from '../../rules/log-place';
import type { DeliveryRow } from '../../tables';
import type { Branch } from '../../deliveries/log-filter';

/** Which rows of the log are read: those after a place, at most so many, without the first ones. */
export interface Stretch {
  after?: LogPlace | null;
  limit: number;
  offset?: number;
}

const union = (
  executor: Executor,
  parts: readonly Knex.QueryBuilder[]
): Knex.QueryBuilder | undefined => {
  const [first, ...others] = parts.map((part) => fromQuery(executor, part).select('*'));
  return first && (others.length > 0 ? first.unionAll(others) : first);
};

/**
 * The rows after a place as two parts, each one stretch of an index on every database: those of the
 * same time, and those of earlier ones.
 */
const after = (rows: () => Knex.QueryBuilder, place: LogPlace | null): Knex.QueryBuilder[] =>
  place
    ? [
        rows().where('created_at', place.at).where('id', '<', place.id),
        rows().where('created_at', '<', place.at),
      ]
    : [rows()];

const inOrder = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
  query.orderBy('created_at', 'desc').orderBy('id', 'desc');

/** A stretch of the log, as a query; undefined where there are no branches. */
const stretchQuery = (
  executor: Executor,
  branches: readonly Branch[],
  columns: readonly string[],
  { after: place = null, limit, offset = 0 }: Stretch
): Knex.QueryBuilder | undefined => {
  const parts = branches.flatMap(({ orderedBy, rows }) =>
    after(rows, place).map((part) =>
      part
        .select(...columns)
        .orderBy([...orderedBy, 'created_at', 'id'].map((column) => ({ column, order: 'desc' })))
        .limit(offset + limit)
    )
  );
  const all = union(executor, parts);
  if (!all) return undefined;
  const page = fromQuery(executor, all)
    .select(...columns)
    .limit(limit);
  return inOrder(offset > 0 ? page.offset(offset) : page);
};

/** The place of a row. */
export const placeOf = ({
  id,
  created_at: at,
}: Pick<DeliveryRow, 'id' | 'created_at'>): LogPlace => ({
  id: Number(id),
  at: Number(at),
});

/** These columns of a stretch of the log, newest first; `id` and `created_at` have to be among them. */
export const readStretch = async <Column extends keyof DeliveryRow>(
  executor: Executor,
  branches: readonly Branch[],
  columns: readonly Column[],
  stretch: Stretch
): Promise<Pick<DeliveryRow, Column>[]> =>
  (await stretchQuery(executor, branches, columns, stretch)) ?? [];

/** The places of a stretch of the log, newest first. */
export const readPlaces = async (
  executor: Executor,
  branches: readonly Branch[],
  stretch: Stretch
): Promise<LogPlace[]> =>
  (await readStretch(executor, branches, ['id', 'created_at'], stretch)).map(placeOf);

/** How many rows there are, counted up to `COUNT_LIMIT + 1`. */
export const countPlaces = async (
  executor: Executor,
  branches: readonly Branch[]
): Promise<number> => {
  const most = COUNT_LIMIT + 1;
  const all = union(
    executor,
    branches.map(({ rows, counted = rows }) => counted().select('id').limit(most))
  );
  if (!all) return 0;
  const limited = fromQuery(executor, all).select('id').limit(most);
  const [row] = (await fromQuery(executor, limited).count({ n: '*' })) as { n: number | string }[];
  return Number(row?.n ?? 0);
};
