import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, table } from '../../database/connection';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';

/**
 * Has a webhook begin anew that was switched on or given another address, in the transaction that does
 * so: its pause ends, and attempts that were made before say nothing of it any more.
 */
export const beginActivation = async (strapi: Core.Strapi, id: number): Promise<void> => {
  const executor = (await currentExecutor(strapi)) as Knex;
  await table(strapi, executor, WEBHOOKS_TABLE)
    .where({ id })
    .update({ paused_until: null, activation: executor.raw('COALESCE(activation, 0) + 1') });
};

type Known = Pick<WebhookRow, 'url' | 'activation'>;

/**
 * Whether an attempt counts for a webhook: only where it was made to the address that it has, and since it
 * was switched on. The address is compared, too, because somebody else may have written it.
 */
export const countsFor = (webhook: Known, attempted: Known): boolean =>
  webhook.url === attempted.url &&
  Number(webhook.activation ?? 0) === Number(attempted.activation ?? 0);

/** Those of some attempts that count no more: their webhooks have another address, or were switched on since. */
export const outdatedOf = async <T extends { webhook: WebhookRow }>(
  strapi: Core.Strapi,
  attempts: readonly T[]
): Promise<ReadonlySet<T>> => {
  if (attempts.length === 0) return new Set();
  const ids = [...new Set(attempts.map(({ webhook }) => Number(webhook.id)))];
  const rows = (await table(strapi, await currentExecutor(strapi), WEBHOOKS_TABLE)
    .select('id', 'url', 'activation')
    .whereIn('id', ids)) as Pick<WebhookRow, 'id' | 'url' | 'activation'>[];
  const current = new Map(rows.map((row) => [Number(row.id), row]));
  return new Set(
    attempts.filter(({ webhook }) => {
      const now = current.get(Number(webhook.id));
      return now !== undefined && !countsFor(now, webhook);
    })
  );
};

/**
 * Locks the webhooks that attempts change, until the transaction ends: those that are named in any case,
 * and those whose attempts all succeeded only where that is news. So nobody changes their addresses or
 * switches them on between the judgement and what is written.
 * @returns them by their ids, in the order of those: two nodes must not wait for each other
 */
export const lockWebhooks = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  changed: readonly number[],
  well: readonly number[]
): Promise<Map<number, WebhookRow>> => {
  if (changed.length + well.length === 0) return new Map();
  const rows = (await table(strapi, trx, WEBHOOKS_TABLE)
    .whereIn('id', [...new Set([...changed, ...well])])
    .andWhere((any) => {
      any
        .whereIn('id', [...changed])
        .orWhere('consecutive_failures', '<>', 0)
        .orWhere('failed_attempts', '>', 0)
        .orWhereNotNull('unwell_since')
        .orWhereNotNull('alarmed_at')
        .orWhereNull('attempted');
    })
    .orderBy('id')
    .forUpdate()) as WebhookRow[];
  return new Map(rows.map((row) => [Number(row.id), row]));
};
