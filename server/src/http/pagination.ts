import { z } from '@strapi/utils';
import type { Knex } from 'knex';
import { LIST_VIEWS, type Page, type Pagination } from '../../../shared/contracts/webhooks';
import type { Db } from '../database/db';
import { countOf } from '../database/retry';

const PER_PAGE_DEFAULT = 50;
const PER_PAGE_MAX = 100;
/** Counting stops here, so that a page of a log with a million rows costs what a page costs. */
export const COUNT_LIMIT = 10_000;

const wholeNumber = (maximum: number, fallback: number) => {
  const message = { message: `must be a whole number from 1 to ${maximum}` };
  return (
    z
      .string()
      .regex(/^[1-9]\d{0,8}$/, message)
      .transform(Number)
      // A type after the transform, so that the OpenAPI document can name it.
      .pipe(z.number().int().min(1).max(maximum, message))
      .default(fallback)
  );
};

export const pageQuery = {
  page: wholeNumber(1_000_000, 1),
  per_page: wholeNumber(PER_PAGE_MAX, PER_PAGE_DEFAULT),
};

/** The panel's lists show a part of each row. */
export const viewQuery = { view: z.enum(LIST_VIEWS).default('full') };

export const listQuery = z.object(pageQuery);

export const viewedListQuery = listQuery.extend(viewQuery);

/** `limit` of a query string, of lists that are read on by a cursor. */
export const limitQuery = { limit: wholeNumber(PER_PAGE_MAX, PER_PAGE_DEFAULT) };

export type PageRequest = z.infer<typeof listQuery>;
export type ViewedPageRequest = z.infer<typeof viewedListQuery>;

/** The `meta` of a list. @param counted rows counted, up to `COUNT_LIMIT + 1`. */
export const paginationMeta = (
  { page, per_page }: PageRequest,
  counted: number
): { pagination: Pagination } => {
  const total = Math.min(counted, COUNT_LIMIT);
  return {
    pagination: {
      page,
      per_page,
      page_count: Math.ceil(total / per_page),
      total,
      ...(counted > COUNT_LIMIT && { total_capped: true }),
    },
  };
};

export const offsetOf = ({ page, per_page }: PageRequest): number => (page - 1) * per_page;

/** Counts the rows of a query, at most `COUNT_LIMIT + 1` of them. */
export const countUpToLimit = (db: Db, query: Knex.QueryBuilder): Promise<number> => {
  const some = query.clone().clearSelect().clearOrder().select(db.raw('1 as one'));
  return countOf(db.from(some.limit(COUNT_LIMIT + 1)));
};

/** The rows of one page of a query, which selects and orders, and its `meta`. */
export const readPage = async <Row>(
  db: Db,
  query: Knex.QueryBuilder,
  request: PageRequest
): Promise<{ rows: Row[]; meta: { pagination: Pagination } }> => {
  const counted = await countUpToLimit(db, query);
  const rows = (await query.clone().limit(request.per_page).offset(offsetOf(request))) as Row[];
  return { rows, meta: paginationMeta(request, counted) };
};

/** A page of a list, each of its rows as `shape` shows it. */
export const readList = async <Row, Shown>(
  db: Db,
  query: Knex.QueryBuilder,
  request: PageRequest,
  shape: (row: Row) => Shown
): Promise<Page<Shown>> => {
  const { rows, meta } = await readPage<Row>(db, query, request);
  return { data: rows.map(shape), meta };
};
