import { mysql } from './mysql';
import { postgres } from './postgres';
import { sqlite } from './sqlite';
import type { Dialect } from './types';

const dialects: Readonly<Record<string, Dialect>> = { sqlite, postgres, mysql };

/**
 * The statements for a database.
 * @param client the host's name of it; MariaDB is `mysql`
 */
export const dialectOf = (client: string): Dialect => {
  const dialect = dialects[client];
  if (!dialect) throw new Error(`Switchboard does not know the database ${client}`);
  return dialect;
};

export type * from './types';
