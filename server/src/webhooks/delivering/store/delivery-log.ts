import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type {
  Attempt,
  Delivery,
  DeliveryStatus,
  Page,
} from '../../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../../database/connection';
import { inRetriedTransaction } from '../../../database/errors/retry';
import { isFromAnotherSite } from '../../../database/site-instance';
import { type PageRequest, readPage } from '../../../http/pagination';
import { isoTime, isoTimeOrNull } from '../../../runtime/iso-time';
import { DELIVERIES_TABLE, type DeliveryRow } from '../../tables';
import { keptAttempts, readAttempts, removeAttempts } from './attempts-table';
import { readBodies, releaseMessages } from './messages';

/** What the log of deliveries answers, and how it forgets. The queue's half is `delivery-store.ts`. */

export interface DeliveryFilter {
  webhook: number;
  status?: DeliveryStatus;
  event?: string;
}

/** What has to be known of a delivery before somebody sends it again. */
export interface LoggedDelivery {
  event: string;
  /** It belongs to another site, which alone may send it. */
  foreign: boolean;
}

const rows = (strapi: Core.Strapi, executor: Executor) => table(strapi, executor, DELIVERIES_TABLE);

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
  return {
    id: Number(row.id),
    delivery_id: row.document_id,
    webhook_id: Number(row.webhook_id),
    event: row.event,
    status: row.status,
    tries: Number(row.tries),
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

/** A page of a webhook's log, newest first. */
export const listDeliveries = async (
  strapi: Core.Strapi,
  { webhook, status, event }: DeliveryFilter,
  page: PageRequest
): Promise<Page<Delivery>> => {
  const executor = await currentExecutor(strapi);
  const matching = rows(strapi, executor)
    .select('*')
    .where({ webhook_id: webhook, ...(status && { status }), ...(event && { event }) })
    .orderBy('id', 'desc');
  const found = await readPage<DeliveryRow>(executor, matching, page);
  return { data: await withAttempts(strapi, executor, found.rows), meta: found.meta };
};

export const showDelivery = async (strapi: Core.Strapi, id: number): Promise<Delivery | null> => {
  const executor = await currentExecutor(strapi);
  const row = (await rows(strapi, executor).where({ id }).first()) as DeliveryRow | undefined;
  return row ? ((await withAttempts(strapi, executor, [row]))[0] ?? null) : null;
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
    .orderBy('id')
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
