import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type {
  Attempt,
  CursorPage,
  Delivery,
  Page,
  Subject,
} from '../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { inRetriedTransaction } from '../../database/retry';
import { isFromAnotherSite } from '../../database/site-instance';
import { COUNT_LIMIT, offsetOf, type PageRequest, paginationMeta } from '../../http/pagination';
import { isoTime, isoTimeOrNull } from '../../runtime/iso-time';
import { stateOf } from '../rules/delivery-state';
import { formatCursor, type LogCursor, type SearchedLog } from '../rules/log-cursor';
import type { LogPlace } from '../rules/log-place';
import { DELIVERIES_TABLE, type DeliveryRow } from '../tables';
import { keptAttempts, readAttempts, removeAttempts } from './attempts';
import { type Branch, branchesOf, type DeliveryFilter } from './log-filter';
import { countPlaces, readPlaces } from '../delivering/store/log-pages';
import { findAll, findMore, type Search } from '../delivering/store/log-search';
import { readBodies, releaseMessages } from './messages';

/** What the log of deliveries answers, and how it forgets. The queue's half is `delivery-store.ts`. */

/** What has to be known of a delivery before somebody sends it again. */
export interface LoggedDelivery {
  event: string;
  /** It belongs to another site, which alone may send it. */
  foreign: boolean;
}

const rows = (strapi: Core.Strapi, executor: Executor) => table(strapi, executor, DELIVERIES_TABLE);

const subjectOf = (row: DeliveryRow): Subject | null => {
  const { subject_type: type, subject_id: id, subject_label: label } = row;
  return type === null || id === null ? null : { type, id, label: label ?? id };
};

/**
 * @param body null where its message is gone
 * @param appended the attempts that are rows of their own, oldest first
 */
const toDelivery = (
  row: DeliveryRow,
  body: string | null,
  appended: readonly Attempt[]
): Delivery => {
  // Versions before 0.2 wrote attempts into the delivery's own row.
  const attempts = keptAttempts([...(JSON.parse(row.attempts) as Attempt[]), ...appended]);
  const last = attempts.at(-1);
  const tries = Number(row.tries);
  return {
    id: Number(row.id),
    delivery_id: row.document_id,
    webhook_id: Number(row.webhook_id),
    event: row.event,
    subject: subjectOf(row),
    status: row.status,
    state: stateOf({ status: row.status, tries, isTest: Boolean(row.is_test) }),
    replayed: Boolean(row.replayed),
    tries,
    first_attempt_at: attempts[0]?.at ?? null,
    next_attempt_at: isoTimeOrNull(row.next_attempt_at),
    created_at: isoTime(Number(row.created_at)),
    finished_at: isoTimeOrNull(row.finished_at),
    request: {
      url: last?.request.url ?? row.url,
      headers: last?.request.headers ?? {},
      body: body ?? '',
    },
    answer: last?.answer ?? null,
    error: row.error,
    duration_ms: last?.duration_ms ?? null,
    attempts,
  };
};

const withAttempts = async (
  strapi: Core.Strapi,
  executor: Executor,
  found: readonly DeliveryRow[]
): Promise<Delivery[]> => {
  const ids = found.map(({ id }) => Number(id));
  const attempts = await readAttempts(strapi, executor, ids);
  const bodies = await readBodies(strapi, executor, found);
  return found.map((row, at) =>
    toDelivery(row, bodies[at] ?? null, attempts.get(Number(row.id)) ?? [])
  );
};

/** The deliveries at some places of the log, in that order. */
export const deliveriesAt = async (
  strapi: Core.Strapi,
  executor: Executor,
  places: readonly LogPlace[]
): Promise<Delivery[]> => {
  const ids = places.map(({ id }) => id);
  const found = (await rows(strapi, executor).whereIn('id', ids)) as DeliveryRow[];
  const byId = new Map(found.map((row) => [Number(row.id), row]));
  return withAttempts(
    strapi,
    executor,
    ids.flatMap((id) => byId.get(id) ?? [])
  );
};

const searchedFrom = (searched: SearchedLog | null): { searched_from: string | null } => ({
  searched_from: searched && isoTime(searched.end.at),
});

/**
 * A page of the log, newest first, by its number.
 * @param search what is looked for in the newest deliveries; null: nothing is
 */
export const listDeliveries = async (
  strapi: Core.Strapi,
  filter: DeliveryFilter,
  search: Search | null,
  page: PageRequest
): Promise<Page<Delivery>> => {
  const executor = await currentExecutor(strapi);
  const branches = await branchesOf(strapi, executor, filter);
  const offset = offsetOf(page);
  if (search) {
    const { places, searched } = await findAll(executor, branches, search);
    const data = await deliveriesAt(strapi, executor, places.slice(offset, offset + page.per_page));
    return { data, meta: { ...paginationMeta(page, places.length), ...searchedFrom(searched) } };
  }
  const counted = await countPlaces(executor, branches);
  const places = await readPlaces(executor, branches, { limit: page.per_page, offset });
  return {
    data: await deliveriesAt(strapi, executor, places),
    meta: paginationMeta(page, counted),
  };
};

/** Where a page of the log begins, and how many deliveries it has at most. */
export interface LogPageRequest {
  cursor: LogCursor | null;
  limit: number;
}

/** Some places of the log, one more than the page has where another page follows. */
interface LogPart extends Pick<CursorPage<Delivery>['meta'], 'total' | 'total_capped'> {
  places: LogPlace[];
  searched: SearchedLog | null;
}

const readByFilter = async (
  executor: Executor,
  branches: readonly Branch[],
  { cursor, limit }: LogPageRequest
): Promise<LogPart> => {
  const counted = await countPlaces(executor, branches);
  const after = cursor?.after ?? null;
  return {
    places: await readPlaces(executor, branches, { after, limit: limit + 1 }),
    total: Math.min(counted, COUNT_LIMIT),
    total_capped: counted > COUNT_LIMIT,
    searched: null,
  };
};

const readBySearch = async (
  executor: Executor,
  branches: readonly Branch[],
  search: Search,
  { cursor, limit }: LogPageRequest
): Promise<LogPart> => {
  const { places, searched } = cursor?.searched
    ? {
        places: await findMore(executor, branches, {
          search,
          after: cursor.after,
          end: cursor.searched.end,
          limit: limit + 1,
        }),
        searched: cursor.searched,
      }
    : await findAll(executor, branches, search);
  return {
    places: places.slice(0, limit + 1),
    total: searched?.total ?? 0,
    total_capped: searched?.totalCapped ?? false,
    searched,
  };
};

/**
 * A page of the log, newest first, by a cursor: deliveries that are made meanwhile neither move nor
 * repeat what is read.
 * @param search what is looked for in the newest deliveries; null: nothing is. A cursor of another search does not
 * go with it.
 */
export const readDeliveries = async (
  strapi: Core.Strapi,
  filter: DeliveryFilter,
  search: Search | null,
  request: LogPageRequest
): Promise<CursorPage<Delivery>> => {
  const executor = await currentExecutor(strapi);
  const branches = await branchesOf(strapi, executor, filter);
  const { places, searched, ...total } =
    search === null
      ? await readByFilter(executor, branches, request)
      : await readBySearch(executor, branches, search, request);
  const shown = places.slice(0, request.limit);
  const last = places.length > shown.length ? shown.at(-1) : undefined;
  return {
    data: await deliveriesAt(strapi, executor, shown),
    meta: {
      next_cursor: last ? formatCursor({ after: last, searched }) : null,
      ...total,
      ...(search && searchedFrom(searched)),
    },
  };
};

/** One delivery by the id of its row, or by the id that the receiver knows. */
export const showDelivery = async (
  strapi: Core.Strapi,
  id: number | string
): Promise<Delivery | null> => {
  const executor = await currentExecutor(strapi);
  const row = (await rows(strapi, executor)
    .where(typeof id === 'number' ? { id } : { document_id: id })
    .first()) as DeliveryRow | undefined;
  return row ? ((await withAttempts(strapi, executor, [row]))[0] ?? null) : null;
};

/**
 * What the latest deliveries of a webhook sent, the newest first; tests and those whose message is gone
 * are left out.
 */
export const latestBodies = async (
  strapi: Core.Strapi,
  { webhook, event }: Pick<DeliveryFilter, 'webhook' | 'event'>,
  limit: number
): Promise<{ deliveryId: string; event: string; body: string }[]> => {
  const executor = await currentExecutor(strapi);
  const found = (await rows(strapi, executor)
    .select('document_id', 'event', 'body', 'message_id')
    .where({ webhook_id: webhook, is_test: false, ...(event && { event }) })
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(limit)) as Pick<DeliveryRow, 'document_id' | 'event' | 'body' | 'message_id'>[];
  const bodies = await readBodies(strapi, executor, found);
  return found.flatMap((row, at) => {
    const body = bodies[at];
    return typeof body === 'string'
      ? [{ deliveryId: row.document_id, event: row.event, body }]
      : [];
  });
};

export const findDelivery = async (
  strapi: Core.Strapi,
  id: number
): Promise<LoggedDelivery | null> => {
  const row = (await rows(strapi, await currentExecutor(strapi))
    .select('event', 'site_instance')
    .where({ id })
    .first()) as Pick<DeliveryRow, 'event' | 'site_instance'> | undefined;
  return row ? { event: row.event, foreign: isFromAnotherSite(strapi, row) } : null;
};

/**
 * Removes deliveries, then their attempts and messages: an attempt that is being recorded holds its delivery, so
 * it is there by the time the attempts go. @returns how many deliveries went.
 */
const remove = (
  strapi: Core.Strapi,
  ids: readonly number[],
  only: (found: Knex.QueryBuilder) => Knex.QueryBuilder
): Promise<number> =>
  inRetriedTransaction(strapi, async ({ trx }) => {
    // Locked before they go: another node that removes the same ones finds them gone.
    const going = (await only(rows(strapi, trx).whereIn('id', [...ids]))
      .select('id', 'message_id')
      .orderBy('id')
      .forUpdate()) as Pick<DeliveryRow, 'id' | 'message_id'>[];
    if (going.length === 0) return 0;
    const gone = going.map(({ id }) => Number(id));
    await rows(strapi, trx).whereIn('id', gone).delete();
    await removeAttempts(strapi, trx, gone);
    const shared = going.flatMap(({ message_id: id }) => (id === null ? [] : [Number(id)]));
    if (shared.length > 0) await releaseMessages(strapi, trx, shared);
    return gone.length;
  });

/** Of a webhook that is gone: up to `limit`, pending ones too. @returns how many there were. */
export const removeDeliveriesOf = async (
  strapi: Core.Strapi,
  webhook: number,
  limit: number
): Promise<number> => {
  const ids = (await rows(strapi, await currentExecutor(strapi))
    .where({ webhook_id: webhook })
    .orderBy(['created_at', 'id'])
    .limit(limit)
    .pluck('id')) as number[];
  if (ids.length > 0) await remove(strapi, ids, (found) => found);
  return ids.length;
};

/**
 * Up to `limit` that ended before a time (epoch milliseconds), and that nobody is sending again now.
 * @returns how many were found, and how many of them went.
 */
export const removeFinishedDeliveries = async (
  strapi: Core.Strapi,
  before: number,
  limit: number
): Promise<{ found: number; removed: number }> => {
  const ids = (await rows(strapi, await currentExecutor(strapi))
    .where('finished_at', '<', before)
    .whereNull('due_at')
    .orderBy('finished_at')
    .limit(limit)
    .pluck('id')) as number[];
  if (ids.length === 0) return { found: 0, removed: 0 };
  return {
    found: ids.length,
    removed: await remove(strapi, ids, (found) => found.whereNull('due_at')),
  };
};
