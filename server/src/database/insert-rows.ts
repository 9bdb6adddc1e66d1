import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { createTimeSlice } from '../runtime/event-loop';
import { type Executor, rawStatement } from './connection';
import type { SqlValue } from './dialects';
import { qualified } from './dialects/types';
import { bytesOf, inParts, statementSize } from './statement-size';

const INSERT_CHUNK = 100;

/** Runs a statement for each part of some items, none longer than the database takes. */
export const inStatements = async <T>(
  strapi: Core.Strapi,
  executor: Executor,
  items: readonly T[],
  count: number,
  valuesOf: (item: T) => Readonly<Record<string, unknown>>,
  run: (part: readonly T[]) => Promise<void>
): Promise<void> => {
  if (items.length === 0) return;
  const { batch } = await statementSize(strapi, executor);
  const slice = createTimeSlice();
  for (const part of inParts(items, { count, bytes: batch }, (item) => bytesOf(valuesOf(item)))) {
    if (slice.isOver()) await slice.next();
    await run(part);
  }
};

/**
 * Inserts rows, all of the same columns, in statements of bounded size. Written by hand: for SQLite
 * the query builder makes of many rows a union that is slow to read.
 */
export const insertRows = (
  strapi: Core.Strapi,
  executor: Executor,
  tableName: string,
  rows: readonly Readonly<Record<string, SqlValue>>[]
): Promise<void> => {
  const names = Object.keys(rows[0] ?? {});
  const tuple = `(${names.map(() => '?').join(', ')})`;
  const name = qualified({ name: tableName, schema: strapi.db.getSchemaName() });
  return inStatements(
    strapi,
    executor,
    rows,
    INSERT_CHUNK,
    (row) => row,
    async (part) => {
      await rawStatement(
        executor,
        `INSERT INTO ?? (${names.map(() => '??').join(', ')}) VALUES ${part.map(() => tuple).join(', ')}`,
        [
          name,
          ...names,
          ...part.flatMap((row) => names.map((column) => row[column] ?? null)),
        ] as Knex.RawBinding[]
      );
    }
  );
};
