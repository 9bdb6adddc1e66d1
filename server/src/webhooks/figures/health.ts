import type { Core } from '@strapi/strapi';
import type { Health } from '../../../../shared/contracts/webhooks';
import { getClock } from '../../database/clock';
import { isoTime, isoTimeOrNull } from '../../runtime/iso-time';
import { countPending, type Pending } from '../deliveries/pending';
import { healthState } from '../rules/health';
import { spellOf } from '../webhook';
import type { WebhookRow } from '../tables';

/** docs/contract-webhooks.md#health */
export const toHealth = (
  strapi: Core.Strapi,
  row: WebhookRow,
  pending: Pending | undefined
): Health => {
  const spell = spellOf(row);
  const until = Number(row.paused_until);
  const isPaused = until > getClock(strapi).now();
  return {
    state: healthState(Boolean(row.active), spell, isPaused),
    failing_since: isoTimeOrNull(spell.unwellSince),
    paused_until: isPaused ? isoTime(until) : null,
    waiting: pending?.waiting ?? 0,
    failing: pending?.failing ?? 0,
  };
};

/** The health of some webhooks, in their order; docs/contract-webhooks.md#health says what it counts. */
export const readHealthOf = async (
  strapi: Core.Strapi,
  rows: readonly WebhookRow[]
): Promise<Health[]> => {
  const ids = rows.map(({ id }) => Number(id));
  const pending = ids.length > 0 ? await countPending(strapi, ids) : new Map<number, Pending>();
  return rows.map((row) => toHealth(strapi, row, pending.get(Number(row.id))));
};

/** With when the oldest deliveries were made that wait or fail, for whoever is about to switch it on, or just did. */
export const readWaiting = async (strapi: Core.Strapi, row: WebhookRow): Promise<Health> => {
  const id = Number(row.id);
  const pending = (await countPending(strapi, [id])).get(id);
  return {
    ...toHealth(strapi, row, pending),
    waiting_since: isoTimeOrNull(pending?.waitingSince ?? null),
    oldest_at: isoTimeOrNull(pending?.oldest ?? null),
  };
};
