import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { type Executor, table } from '../../database/connection';
import { siteInstance } from '../../database/site-instance';
import { WEBHOOKS_TABLE } from '../tables';
import { recoveryItems } from '../recoveries/store';
import { RECOVERY_ITEMS_TABLE, type RecoveryItemRow } from './tables';

/** Webhooks of which items wait, by their ids; each costs a step into an index. */
const waitingWebhooks = (
  strapi: Core.Strapi,
  executor: Executor,
  recovery: number
): Knex.QueryBuilder => {
  const first = table(strapi, executor, `${RECOVERY_ITEMS_TABLE} as i`)
    .select('i.id')
    .where({ 'i.recovery_id': recovery, 'i.state': 'waiting' })
    .whereRaw('?? = ??', ['i.webhook_id', 'w.id'])
    .limit(1);
  return table(strapi, executor, `${WEBHOOKS_TABLE} as w`)
    .whereRaw('(?) IS NOT NULL', [first])
    .orderBy('w.id');
};

/** Only webhooks that are sent to now. */
const whereServed = (
  strapi: Core.Strapi,
  webhooks: Knex.QueryBuilder,
  now: number
): Knex.QueryBuilder =>
  webhooks
    .where('w.active', true)
    .where((paused) => {
      paused.whereNull('w.paused_until').orWhere('w.paused_until', '<=', now);
    })
    .where((own) => {
      own.whereNull('w.site_instance').orWhere('w.site_instance', siteInstance(strapi));
    });

/** Up to `limit` webhooks of which items of a recovery wait, and that are sent to now, but for some. */
export const servedWebhooks = async (
  strapi: Core.Strapi,
  executor: Executor,
  recovery: number,
  { now, limit, without }: { now: number; limit: number; without: readonly number[] }
): Promise<number[]> => {
  const waiting = waitingWebhooks(strapi, executor, recovery)
    .whereNotIn('w.id', [...without])
    .limit(limit);
  const ids = (await whereServed(strapi, waiting, now).pluck('w.id')) as number[];
  return ids.map(Number);
};

/** Those of some webhooks that are sent to now. */
export const servedAmong = async (
  strapi: Core.Strapi,
  executor: Executor,
  webhooks: readonly number[],
  now: number
): Promise<Set<number>> => {
  if (webhooks.length === 0) return new Set();
  const among = table(strapi, executor, `${WEBHOOKS_TABLE} as w`).whereIn('w.id', [...webhooks]);
  const ids = (await whereServed(strapi, among, now).pluck('w.id')) as number[];
  return new Set(ids.map(Number));
};

/** Whether anything waits of a webhook that there is. */
export const hasWaitingWebhook = async (
  strapi: Core.Strapi,
  executor: Executor,
  recovery: number
): Promise<boolean> => Boolean(await waitingWebhooks(strapi, executor, recovery).first('w.id'));

/** A webhook, there or gone, of which items wait; null: there is none. */
export const anyWaitingWebhook = async (
  strapi: Core.Strapi,
  executor: Executor,
  recovery: number
): Promise<number | null> => {
  const row = (await recoveryItems(strapi, executor)
    .where({ recovery_id: recovery, state: 'waiting' })
    .first('webhook_id')) as Pick<RecoveryItemRow, 'webhook_id'> | undefined;
  return row ? Number(row.webhook_id) : null;
};
