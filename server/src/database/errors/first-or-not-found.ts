import { errors } from '@strapi/utils';
import type { Knex } from 'knex';

/** The first row of a query. @throws NotFoundError (404), `<what> not found`, where there is none. */
export const firstOrNotFound = async <Row>(
  query: Knex.QueryBuilder,
  what: string
): Promise<Row> => {
  const row = (await query.first()) as Row | undefined;
  if (!row) throw new errors.NotFoundError(`${what} not found`);
  return row;
};
