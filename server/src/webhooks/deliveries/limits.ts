import type { Core } from '@strapi/strapi';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';

/** How a webhook is to be treated; docs/receivers.md#how-much-at-once. */
export interface Manners {
  ratePerSecond: number | null;
  concurrency: number | null;
  /** One record's events go one after the other. */
  isOrdered: boolean;
  /** Nothing is sent before, epoch milliseconds; 0: it was not paused. */
  pausedUntil: number;
}

type MannersRow = Pick<WebhookRow, 'rate_per_second' | 'concurrency' | 'ordering' | 'paused_until'>;

export const MANNERS_COLUMNS = [
  'rate_per_second',
  'concurrency',
  'ordering',
  'paused_until',
] as const;

export const mannersOf = (row: MannersRow): Manners => ({
  ratePerSecond: row.rate_per_second === null ? null : Number(row.rate_per_second),
  concurrency: row.concurrency === null ? null : Number(row.concurrency),
  isOrdered: row.ordering === 'by_record',
  pausedUntil: Number(row.paused_until),
});

const mannersOfWebhook = (webhook: Webhook): Manners => ({
  ratePerSecond: webhook.rate_per_second,
  concurrency: webhook.concurrency,
  isOrdered: webhook.ordering === 'by_record',
  pausedUntil: 0,
});

const areSame = (one: Manners, other: Manners): boolean =>
  one.ratePerSecond === other.ratePerSecond &&
  one.concurrency === other.concurrency &&
  one.isOrdered === other.isOrdered;

/** Whether its claims follow one another, and each asks what may be sent. */
export const isCareful = ({ ratePerSecond, isOrdered }: Manners): boolean =>
  ratePerSecond !== null || isOrdered;

/** How long what was read is good for, in milliseconds: so long another node may not have heard of a change. */
const FRESH_MS = 1000;
/** So many are remembered before old ones are forgotten. */
const MANY = 5000;

/**
 * What this process knows of webhooks' manners: whoever looks for work, publishes, changes a webhook or
 * claims says what it has read. So a claim asks for them seldom.
 */
export interface KnownManners {
  /** It was read just now. */
  note(webhook: number, manners: Manners): void;
  /** It was changed just now. */
  noteWebhook(webhook: Webhook): void;
  /**
   * It was read a while ago (`performance.now()`), perhaps in a transaction that does not see what has
   * changed since: it replaces nothing that is known, but where it differs the database is asked again.
   */
  mention(webhook: Webhook, readAt: number): void;
  /** Its receiver asked to be left alone until then, epoch milliseconds. */
  notePause(webhook: number, until: number): void;
  /** As last heard of; undefined where nothing was. */
  get(webhook: number): Manners | undefined;
  /** As they are, but for the last second. */
  of(webhooks: readonly number[]): Promise<ReadonlyMap<number, Manners>>;
}

const NO_MANNERS: Manners = {
  ratePerSecond: null,
  concurrency: null,
  isOrdered: false,
  pausedUntil: 0,
};

export const readManners = async (
  strapi: Core.Strapi,
  executor: Executor,
  webhook: number
): Promise<Manners> => {
  const row = (await table(strapi, executor, WEBHOOKS_TABLE)
    .select(MANNERS_COLUMNS)
    .where({ id: webhook })
    .first()) as MannersRow | undefined;
  return row ? mannersOf(row) : NO_MANNERS;
};

export const createKnownManners = (strapi: Core.Strapi): KnownManners => {
  const known = new Map<number, { manners: Manners; at: number }>();

  const note = (webhook: number, manners: Manners, at = performance.now()): void => {
    if (known.size >= MANY && !known.has(webhook)) {
      for (const [id, { at: then }] of known) if (at - then > FRESH_MS) known.delete(id);
    }
    known.set(webhook, { manners, at });
  };

  const isFresh = (webhook: number): boolean =>
    performance.now() - (known.get(webhook)?.at ?? Number.NEGATIVE_INFINITY) < FRESH_MS;

  return {
    note: (webhook, manners) => note(webhook, manners),
    noteWebhook: (webhook) => note(webhook.id, mannersOfWebhook(webhook)),
    mention(webhook, readAt) {
      const manners = mannersOfWebhook(webhook);
      const before = known.get(webhook.id);
      if (!before) note(webhook.id, manners, readAt);
      else if (!areSame(before.manners, manners)) before.at = Number.NEGATIVE_INFINITY;
      // A write does not know whether a pause has been ended.
      else if (before.manners.pausedUntil === 0) before.at = Math.max(before.at, readAt);
    },
    notePause(webhook, until) {
      const before = known.get(webhook);
      if (!before) return;
      const pausedUntil = Math.max(before.manners.pausedUntil, until);
      before.manners = { ...before.manners, pausedUntil };
    },
    get: (webhook) => known.get(webhook)?.manners,
    async of(webhooks) {
      const unknown = webhooks.filter((id) => !isFresh(id));
      if (unknown.length > 0) {
        const rows = (await table(strapi, await currentExecutor(strapi), WEBHOOKS_TABLE)
          .select('id', ...MANNERS_COLUMNS)
          .whereIn('id', unknown)) as (MannersRow & Pick<WebhookRow, 'id'>)[];
        for (const row of rows) note(Number(row.id), mannersOf(row));
      }
      return new Map(webhooks.map((id) => [id, known.get(id)?.manners ?? NO_MANNERS]));
    },
  };
};
