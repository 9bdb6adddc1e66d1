import type { Core } from '@strapi/strapi';

/**
 * What rows whose `column` is null have to be ordered by before all else, so that an index which begins
 * with it is read in its order. PostgreSQL does not see that such a column orders nothing, and sorts
 * unless it is named; MariaDB sorts where it is.
 */
export const nullOrder = (strapi: Core.Strapi, column: string): readonly string[] =>
  strapi.db.dialect.client === 'postgres' ? [column] : [];
