import type { Knex } from 'knex';
import { rawStatement, type Statement } from '../connection';
import {
  addRowsOnConflict,
  columnTypesOf,
  containsByLike,
  insertOfArrays,
  insertOfValues,
  type Dialect,
  updateFromValues,
} from './shared';

type Result = { rows: Record<string, unknown>[] };

const insertOf = async (
  ...[executor, target, rows]: Parameters<Dialect['insert']>
): Promise<Statement> =>
  rows.length === 1
    ? insertOfValues(target, rows)
    : insertOfArrays(target, await columnTypesOf(executor, target), rows);

export const postgres: Dialect = {
  async insert(executor, target, rows) {
    const { sql, bindings } = await insertOf(executor, target, rows);
    await rawStatement(executor, sql, bindings);
  },

  async insertForIds(executor, target, rows) {
    const { sql, bindings } = await insertOf(executor, target, rows);
    const answer = await rawStatement(executor, `${sql} RETURNING id, document_id`, bindings);
    return (answer as unknown as Result).rows.map(({ id, document_id: key }) => [
      String(key),
      Number(id),
    ]);
  },

  async updateRows(executor, table, rows) {
    if (rows.length === 0) return new Set();
    const { sql, bindings } = updateFromValues(table, rows, true);
    const result = (await rawStatement(executor, sql, bindings as Knex.RawBinding[])) as Result;
    return new Set(result.rows.map((row) => Number(row.id)));
  },

  joined: (texts) => texts.join(' || '),

  contains: containsByLike,

  addRows: addRowsOnConflict,
};
