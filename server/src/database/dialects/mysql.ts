import type { Knex } from 'knex';
import { rawStatement, rowsOf, type Statement } from '../connection';
import {
  anyOfList,
  changesOf,
  containsByLike,
  type Dialect,
  followUpOf,
  insertOfValues,
  type MadeRow,
  qualified,
  repeated,
  type RowUpdate,
  splitColumns,
  type SqlValue,
  type WrittenTable,
} from './shared';

const assignments = (rows: readonly RowUpdate[]): Statement => {
  const { alike, own } = splitColumns(rows);
  const bindings: SqlValue[] = Object.entries(alike).flat();
  const parts = Object.keys(alike).map(() => '?? = ?');
  // MySQL evaluates all cases of a row up to its own: so only changed columns get them.
  for (const column of own) {
    bindings.push(column);
    for (const row of rows) bindings.push(row.id, row.set[column] ?? null);
    parts.push(`?? = CASE id ${rows.map(() => 'WHEN ? THEN ?').join(' ')} END`);
  }
  return { sql: parts.join(', '), bindings };
};

const heldIds = async (trx: Knex.Transaction, table: WrittenTable, rows: readonly RowUpdate[]) => {
  if (rows[0]?.owner === undefined) return new Set(rows.map(({ id }) => id));
  const marks = repeated('?', rows.length);
  const sql = `SELECT id, owner FROM ?? WHERE id IN (${marks}) ORDER BY id FOR UPDATE`;
  const bindings = [qualified(table), ...rows.map((row) => row.id)];
  const answer = await rawStatement(trx, sql, bindings);
  const found = rowsOf<{ id: number | string; owner: string | null }>(answer);
  const owners = new Map(found.map((row) => [Number(row.id), row.owner]));
  return new Set(rows.filter((row) => owners.get(row.id) === row.owner).map((row) => row.id));
};

/** MySQL and MariaDB have no `UPDATE … RETURNING`: lock, read, then write. */
export const mysql: Dialect = {
  async insert(executor, target, rows) {
    const { sql, bindings } = insertOfValues(target, rows);
    const { conflict } = target;
    if (conflict?.then === 'ignore') {
      await rawStatement(executor, sql.replace('INSERT', 'INSERT IGNORE'), bindings);
      return;
    }
    // MariaDB knows no other way to name what was to be inserted.
    const changes = conflict && changesOf(target, conflict, (column) => `VALUES(${column})`);
    const end = changes ? ` ON DUPLICATE KEY UPDATE ${changes}` : '';
    await rawStatement(executor, `${sql}${end}`, bindings);
  },

  async insertForIds(executor, target, rows, { followUp } = {}) {
    await mysql.insert(executor, target, rows);
    const keys = rows.map(({ document_id: key }) => key ?? null);
    const sql = `SELECT id, document_id FROM ?? WHERE document_id IN (${repeated('?', keys.length)})`;
    const made = rowsOf<MadeRow>(await rawStatement(executor, sql, [qualified(target), ...keys]));
    if (followUp) {
      const ids = made.map(({ id }) => Number(id));
      const any = anyOfList('id', ids);
      // It locks every row that it reads, and of a small table it would read all: others' new rows too.
      const where = `${target.name} made FORCE INDEX (PRIMARY) WHERE ${any.sql}`;
      await rawStatement(executor, followUpOf(followUp, target.schema, where), any.bindings);
    }
    return made;
  },

  async updateRows(trx, table, rows) {
    const held = await heldIds(trx, table, rows);
    const owned = rows.filter((row) => held.has(row.id));
    if (owned.length === 0) return held;
    const { sql, bindings } = assignments(owned);
    await rawStatement(trx, `UPDATE ?? SET ${sql} WHERE id IN (${repeated('?', owned.length)})`, [
      qualified(table),
      ...bindings,
      ...owned.map((row) => row.id),
    ]);
    return held;
  },

  anyOf: anyOfList,

  joined: (texts) => `CONCAT(${texts.join(', ')})`,

  contains: containsByLike,
};
