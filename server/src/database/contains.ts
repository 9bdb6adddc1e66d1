import type { Knex } from 'knex';
import type { Database } from './db';

/** Filters by text in any of these columns, in any case, without wildcards; no index applies. */
export const whereContains = (
  database: Pick<Database, 'dialect'>,
  query: Knex.QueryBuilder,
  columns: readonly string[],
  text: string
): Knex.QueryBuilder => {
  const { sql, binding } = database.dialect.contains(text);
  return query.where((any) => {
    for (const column of columns) any.orWhereRaw(sql, [column, binding]);
  });
};

/** Separators between the digits of a phone number. */
const BETWEEN = [' ', '-', '(', ')', '.', '/', '\u00a0'];

/** A column of phone numbers without what is written between digits: an expression and its bindings. */
export const writtenDigits = (column: string): { sql: string; bindings: string[] } => ({
  sql: BETWEEN.reduce((text) => `REPLACE(${text}, ?, '')`, 'CAST(?? AS CHAR(64))'),
  bindings: [column, ...BETWEEN],
});
