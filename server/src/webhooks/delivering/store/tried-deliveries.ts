import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Attempt } from '../../../../../shared/contracts/webhooks';
import { type Executor, table } from '../../../database/connection';
import { isFromAnotherSite } from '../../../database/site-instance';
import { DELIVERIES_TABLE, type DeliveryRow } from '../../tables';
import { type AttemptEnd, endOfAttempt, readAttemptEnds } from '../../deliveries/attempts';

/** A delivery of the log with how its attempts ended, for figures that an earlier version did not keep. */
export interface TriedDelivery {
  id: number;
  webhook: number;
  /** When it was made, epoch milliseconds. */
  at: number;
  /** It was given up. */
  failed: boolean;
  /** A test, or made by another site: it counts for nothing. */
  isForeign: boolean;
  /** Oldest first. */
  attempts: AttemptEnd[];
}

const COLUMNS = [
  'id',
  'webhook_id',
  'created_at',
  'status',
  'is_test',
  'site_instance',
  'attempts',
] as const;

type Row = Pick<DeliveryRow, (typeof COLUMNS)[number]>;

const rows = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, DELIVERIES_TABLE);

const withEnds = async (
  strapi: Core.Strapi,
  executor: Executor,
  found: readonly Row[]
): Promise<TriedDelivery[]> => {
  if (found.length === 0) return [];
  const ids = found.map(({ id }) => Number(id));
  const appended = await readAttemptEnds(strapi, executor, ids);
  return found.map((row) => ({
    id: Number(row.id),
    webhook: Number(row.webhook_id),
    at: Number(row.created_at),
    failed: row.status === 'failed',
    isForeign: Boolean(row.is_test) || isFromAnotherSite(strapi, row),
    attempts: [
      ...(JSON.parse(row.attempts) as Attempt[]).map(endOfAttempt),
      ...(appended.get(Number(row.id)) ?? []),
    ],
  }));
};

/** Up to `limit` deliveries of the log up to an id, newest first. */
export const readDeliveriesUpTo = async (
  strapi: Core.Strapi,
  executor: Executor,
  upTo: number,
  limit: number
): Promise<TriedDelivery[]> => {
  const found = (await rows(strapi, executor)
    .select(COLUMNS)
    .where('id', '<=', upTo)
    .orderBy('id', 'desc')
    .limit(limit)) as Row[];
  return withEnds(strapi, executor, found);
};

/** Of the newest `among` deliveries of a webhook, the newest `limit` that were tried. */
export const readNewestTried = async (
  strapi: Core.Strapi,
  executor: Executor,
  webhook: number,
  { among, limit }: { among: number; limit: number }
): Promise<TriedDelivery[]> => {
  const newest = rows(strapi, executor)
    .select('tries', ...COLUMNS)
    .where({ webhook_id: webhook })
    .orderBy('id', 'desc')
    .limit(among);
  const found = (await (executor as Knex)
    .select(COLUMNS)
    .from(newest.as('newest'))
    .where('tries', '>', 0)
    .orderBy('id', 'desc')
    .limit(limit)) as Row[];
  return withEnds(strapi, executor, found);
};

/** The id of the newest delivery; 0: there is none. */
export const newestDelivery = async (strapi: Core.Strapi, executor: Executor): Promise<number> => {
  const [row] = (await rows(strapi, executor).max({ id: 'id' })) as { id: number | null }[];
  return Number(row?.id ?? 0);
};
