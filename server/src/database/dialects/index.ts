import type { Core } from '@strapi/strapi';
import { createTimeSlice } from '../../runtime/event-loop';
import type { Executor } from '../connection';
import { bytesOf, inParts, statementSize } from '../statements';
import { mysql } from './mysql';
import { postgres } from './postgres';
import { sqlite } from './sqlite';
import type { Dialect, InsertedRow, InsertTarget } from './types';

export type * from './types';

const dialects: Readonly<Record<string, Dialect>> = { sqlite, postgres, mysql };

/** The statements for the site's database; MariaDB is the host's `mysql`. */
export const getDialect = (strapi: Core.Strapi): Dialect => {
  const dialect = dialects[strapi.db.dialect.client];
  if (!dialect)
    throw new Error(`Switchboard does not know the database ${strapi.db.dialect.client}`);
  return dialect;
};

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

/** Inserts rows, all of the same columns, in statements of bounded size. */
export const insertRows = (
  strapi: Core.Strapi,
  executor: Executor,
  tableName: string,
  rows: readonly InsertedRow[]
): Promise<void> => {
  const dialect = getDialect(strapi);
  const target: InsertTarget = {
    name: tableName,
    schema: strapi.db.getSchemaName(),
    columns: Object.keys(rows[0] ?? {}),
  };
  return inStatements(
    strapi,
    executor,
    rows,
    INSERT_CHUNK,
    (row) => row,
    (part) => dialect.insert(executor, target, part)
  );
};
