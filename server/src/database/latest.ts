import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';

/**
 * Makes a query see what is committed now, not what was when its transaction first read. MySQL reads
 * from a snapshot that may be older than a lock which was taken since; a locking read does not. Only
 * for rows that a lock held by this transaction already keeps others from changing.
 */
export const readLatest = (strapi: Core.Strapi, query: Knex.QueryBuilder): Knex.QueryBuilder =>
  strapi.db.dialect.client === 'mysql' ? query.forShare() : query;
