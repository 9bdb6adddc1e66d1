import type { Webhook } from '../../../../shared/contracts/webhooks';
import { qualified } from '../../database/dialects/types';
import type { LeasedRowsOptions } from '../../database/leases';
import { LINE_ENDS_TABLE, PACES_TABLE, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import type { App } from '../../app';
import type { Db } from '../../database/db';

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

const MANNERS_COLUMNS = ['rate_per_second', 'concurrency', 'ordering', 'paused_until'] as const;

const mannersOf = (row: MannersRow): Manners => ({
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

const NO_MANNERS: Manners = {
  ratePerSecond: null,
  concurrency: null,
  isOrdered: false,
  pausedUntil: 0,
};

export const readManners = async (db: Db, webhook: number): Promise<Manners> => {
  const row = (await db
    .table(WEBHOOKS_TABLE)
    .select(MANNERS_COLUMNS)
    .where({ id: webhook })
    .first()) as MannersRow | undefined;
  return row ? mannersOf(row) : NO_MANNERS;
};

/**
 * What this process knows of webhooks' manners: whoever looks for work, publishes, changes a webhook or
 * claims says what it has read. So a claim asks for them seldom.
 */
export class KnownManners {
  private readonly known = new Map<number, { manners: Manners; at: number }>();

  constructor(private readonly app: App) {}

  /** @param at when it was read, by `performance.now()` */
  note(webhook: number, manners: Manners, at = performance.now()): void {
    const { known } = this;
    if (known.size >= MANY && !known.has(webhook)) {
      for (const [id, { at: then }] of known) if (at - then > FRESH_MS) known.delete(id);
    }
    known.set(webhook, { manners, at });
  }

  /** It was changed just now. */
  noteWebhook(webhook: Webhook): void {
    this.note(webhook.id, mannersOfWebhook(webhook));
  }

  /**
   * It was read a while ago (`performance.now()`), perhaps in a transaction that does not see what has
   * changed since: it replaces nothing that is known, but where it differs the database is asked again.
   */
  mention(webhook: Webhook, readAt: number): void {
    const manners = mannersOfWebhook(webhook);
    const before = this.known.get(webhook.id);
    if (!before) this.note(webhook.id, manners, readAt);
    else if (!areSame(before.manners, manners)) before.at = Number.NEGATIVE_INFINITY;
    // A write does not know whether a pause has been ended.
    else if (before.manners.pausedUntil === 0) before.at = Math.max(before.at, readAt);
  }

  /** Its receiver asked to be left alone until then, epoch milliseconds. */
  notePause(webhook: number, until: number): void {
    const before = this.known.get(webhook);
    if (!before) return;
    const pausedUntil = Math.max(before.manners.pausedUntil, until);
    before.manners = { ...before.manners, pausedUntil };
  }

  /** As last heard of; undefined where nothing was. */
  get(webhook: number): Manners | undefined {
    return this.known.get(webhook)?.manners;
  }

  /** As they are, but for the last second. */
  async of(webhooks: readonly number[]): Promise<ReadonlyMap<number, Manners>> {
    const unknown = webhooks.filter((id) => !this.isFresh(id));
    if (unknown.length > 0) {
      const db = await this.app.db.current();
      const rows = (await db
        .table(WEBHOOKS_TABLE)
        .select('id', ...MANNERS_COLUMNS)
        .whereIn('id', unknown)) as (MannersRow & Pick<WebhookRow, 'id'>)[];
      for (const row of rows) this.note(Number(row.id), mannersOf(row));
    }
    return new Map(webhooks.map((id) => [id, this.get(id) ?? NO_MANNERS]));
  }

  private isFresh(webhook: number): boolean {
    return performance.now() - (this.known.get(webhook)?.at ?? Number.NEGATIVE_INFINITY) < FRESH_MS;
  }
}

/**
 * So much of what a rate allows is claimed at once, in microseconds: a claim for each of 10,000 attempts
 * a second would be all that the database does. Who is late by no more than that catches up.
 */
const GRAIN_US = 100_000;

/** What the clocks of two nodes may differ by, in microseconds. */
const CLOCKS_DIFFER_US = 1_000_000;

/** What a rate allows now. Times are microseconds. */
interface Allowance {
  /** Attempts that may start. */
  attempts: number;
  /** From when on they count. */
  from: number;
  /** How far they are apart. */
  interval: number;
}

const intervalOf = (ratePerSecond: number): number => 1_000_000 / ratePerSecond;

/**
 * When the next attempt may start by what the last claim left: no later than a rate like this can have left
 * it. What is, comes from a lower rate, or from a clock that was ahead.
 * @param freeAt when the next attempt may start; 0: nothing was sent yet
 */
export const freeAtMost = (ratePerSecond: number, freeAt: number, now: number): number => {
  const interval = intervalOf(ratePerSecond);
  const latest = now + Math.max(interval, GRAIN_US) + CLOCKS_DIFFER_US;
  return freeAt > latest ? Math.round(now + interval) : freeAt;
};

/**
 * What a rate allows at a moment: attempts as far apart as it says, together where they are less than a
 * tenth of a second apart, and no credit for a time in which nothing was sent.
 * docs/receivers.md#how-much-at-once.
 * @param freeAt when the next attempt may start; 0: nothing was sent yet
 */
export const allowance = (ratePerSecond: number, freeAt: number, now: number): Allowance => {
  const interval = intervalOf(ratePerSecond);
  if (freeAt > now) return { attempts: 0, from: freeAt, interval };
  const from = now - freeAt > GRAIN_US ? now : freeAt;
  const attempts = Math.max(1, Math.floor((now + GRAIN_US - from) / interval));
  return { attempts, from, interval };
};

/** When the next attempt may start after so many. */
export const freeAfter = ({ from, interval }: Allowance, attempts: number): number =>
  Math.round(from + attempts * interval);

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
  app: App,
  known: KnownManners
): NonNullable<LeasedRowsOptions['groups']['seen']> => {
  const schema = app.db.schema;
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
      const now = app.clock.now();
      const first = seen.line_end === null ? firstDueAt : Math.min(firstDueAt, now);
      return Math.max(first, manners.pausedUntil, freeFrom(manners, seen.free_at, now));
    },
  };
};

/**
 * Webhooks whose receivers asked to be left alone (docs/receivers.md#asking-for-a-pause): nothing of them
 * is due before, on any node. Only ever prolonged: the answers of attempts that were made side by
 * side may come in any order.
 * @param until epoch milliseconds, by webhook
 */
export const pauseWebhooks = async (db: Db, until: ReadonlyMap<number, number>): Promise<void> => {
  // Always in the order of ids: two nodes that lock the same webhooks must not wait for each other.
  for (const [id, time] of [...until].sort(([one], [other]) => one - other)) {
    await db
      .table(WEBHOOKS_TABLE)
      .where({ id })
      .andWhere((shorter) => {
        shorter.whereNull('paused_until').orWhere('paused_until', '<', time);
      })
      .update({ paused_until: time });
  }
};
