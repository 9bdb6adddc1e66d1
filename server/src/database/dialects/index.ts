import type { Core } from '@strapi/strapi';
import { mysql } from './mysql';
import { postgres } from './postgres';
import { sqlite } from './sqlite';
import type { Dialect } from './types';

const dialects: Readonly<Record<string, Dialect>> = { sqlite, postgres, mysql };

/** The statements for the site's database; MariaDB is the host's `mysql`. */
export const getDialect = (strapi: Core.Strapi): Dialect => {
  const dialect = dialects[strapi.db.dialect.client];
  if (!dialect)
    throw new Error(`Switchboard does not know the database ${strapi.db.dialect.client}`);
  return dialect;
};

export type * from './types';
