import type { Core } from '@strapi/strapi';
import { getClock } from '../../../database/clock';
import { qualified } from '../../../database/dialects/types';
import type { LeasedRowsOptions } from '../../../database/leases';
import { freeAtMost } from '../../rules/pace';
import { LINE_ENDS_TABLE, PACES_TABLE, type WebhookRow } from '../../tables';
import { type KnownManners, type Manners, mannersOf } from '../../deliveries/limits';

interface Seen extends Pick<
  WebhookRow,
  'paused_until' | 'rate_per_second' | 'concurrency' | 'ordering'
> {
  free_at: number | string | null;
  /** Not null: a delivery has ended that others wait for. */
  line_end: number | null;
}

/** From when on a rate allows more; at once where the next claim sets that right. */
const freeFrom = (
  { ratePerSecond }: Manners,
  freeAt: number | string | null,
  now: number
): number => {
  if (ratePerSecond === null) return 0;
  const free = Number(freeAt);
  return freeAtMost(ratePerSecond, free, now * 1000) === free ? Math.ceil(free / 1000) : 0;
};

/**
 * What a look for due deliveries reads of their webhooks: a pause and a rate put them off, and the end of
 * one that others waited for makes them due.
 */
export const seenOf = (
  strapi: Core.Strapi,
  known: KnownManners
): NonNullable<LeasedRowsOptions['groups']['seen']> => {
  const schema = strapi.db.getSchemaName();
  return {
    columns: {
      sql: `g.paused_until, g.rate_per_second, g.concurrency, g.ordering,
        CASE WHEN g.rate_per_second IS NOT NULL THEN
          (SELECT p.free_at FROM ?? p WHERE p.webhook_id = g.id) END AS free_at,
        CASE WHEN g.ordering = 'by_record' THEN
          (SELECT e.id FROM ?? e WHERE e.webhook_id = g.id ORDER BY e.id LIMIT 1) END AS line_end`,
      bindings: [
        qualified({ name: PACES_TABLE, schema }),
        qualified({ name: LINE_ENDS_TABLE, schema }),
      ],
    },
    dueAt(webhook, columns, firstDueAt) {
      const seen = columns as unknown as Seen;
      const manners = mannersOf(seen);
      known.note(webhook, manners);
      const now = getClock(strapi).now();
      const first = seen.line_end === null ? firstDueAt : Math.min(firstDueAt, now);
      return Math.max(first, manners.pausedUntil, freeFrom(manners, seen.free_at, now));
    },
  };
};
