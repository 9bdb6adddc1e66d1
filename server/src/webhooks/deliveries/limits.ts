import type { Knex } from 'knex';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import type { GroupRoom, LeasedRow, QueueOptions } from '../../queue/queue';
import type { CappedClaim, LeaseCap, LimitedQueue } from '../../queue/limited-queue';
import type { GroupLimits } from '../../scheduling/types';
import { DELIVERIES_TABLE, WEBHOOK_LOCKS_TABLE, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

type LimitsRow = Pick<WebhookRow, 'rate_per_second' | 'concurrency' | 'ordering' | 'paused_until'>;

const LIMITS_COLUMNS = ['rate_per_second', 'concurrency', 'ordering', 'paused_until'] as const;

/** Without `paused_until`: the row of a webhook that was just changed or published to lacks its pause. */
const limitsOf = (row: Omit<LimitsRow, 'paused_until'> & Partial<LimitsRow>) => ({
  ratePerSecond: row.rate_per_second === null ? null : Number(row.rate_per_second),
  concurrency: row.concurrency === null ? null : Number(row.concurrency),
  /** One record's events go one after the other. */
  isOrdered: row.ordering === 'by_record',
  /** Nothing is sent before, epoch milliseconds; 0: it was not paused. */
  pausedUntil: Number(row.paused_until ?? 0),
});

/** How much of a webhook is sent, and in which order; docs/receivers.md#rate-limits. */
export type WebhookLimits = ReturnType<typeof limitsOf>;

/** How long an answer is good for, in milliseconds: so long another node may not know of a change. */
const FRESH_MS = 1000;
/** If more are remembered, old ones are forgotten, once in that time. */
const MANY = 5000;

const NO_LIMITS = limitsOf({ rate_per_second: null, concurrency: null, ordering: 'none' });

/** This process's cache of webhook limits, fed by all code that reads them, so that claims rarely query them. */
export class KnownLimits {
  private readonly known = new Map<number, { limits: WebhookLimits; at: number }>();
  private sweptAt = 0;

  constructor(private readonly app: App) {}

  /** @param at when it was read, by `performance.now()` */
  note(webhook: number, limits: WebhookLimits, at = performance.now()): void {
    const { known } = this;
    // A look may note more than that at once, all of them new.
    if (known.size >= MANY && at - this.sweptAt > FRESH_MS) {
      this.sweptAt = at;
      for (const [id, { at: then }] of known) if (at - then > FRESH_MS) known.delete(id);
    }
    known.set(webhook, { limits, at });
  }

  noteWebhook(webhook: Webhook): void {
    this.note(webhook.id, limitsOf(webhook));
  }

  /** Mentions limits read at `readAt` (`performance.now()`): a difference only makes the next claim read them again. */
  mention(webhook: Webhook, readAt: number): void {
    const limits = limitsOf(webhook);
    const before = this.known.get(webhook.id);
    if (!before) {
      this.note(webhook.id, limits, readAt);
      return;
    }
    const { concurrency, isOrdered, pausedUntil, ratePerSecond } = before.limits;
    const isSame =
      ratePerSecond === limits.ratePerSecond &&
      concurrency === limits.concurrency &&
      isOrdered === limits.isOrdered;
    if (!isSame) before.at = Number.NEGATIVE_INFINITY;
    // A write does not know whether a pause has been ended.
    else if (pausedUntil === 0) before.at = Math.max(before.at, readAt);
  }

  /** The end of the pause that its receiver asked for, epoch milliseconds. */
  notePause(webhook: number, until: number): void {
    const before = this.known.get(webhook);
    if (!before) return;
    const pausedUntil = Math.max(before.limits.pausedUntil, until);
    before.limits = { ...before.limits, pausedUntil };
  }

  /** True if this process may send what it queues for it without asking what others send. */
  isFree({ id, ordering, rate_per_second: rate, concurrency }: Webhook): boolean {
    const known = this.get(id);
    const isUnpaused = known.pausedUntil <= this.app.clock.now();
    return isUnpaused && ordering === 'none' && rate === null && concurrency === known.concurrency;
  }

  get(webhook: number): WebhookLimits {
    return this.known.get(webhook)?.limits ?? NO_LIMITS;
  }

  /** As `get`, for the slots of this node. */
  ofGroup(webhook: number): GroupLimits {
    const { concurrency, isOrdered, ratePerSecond } = this.get(webhook);
    return {
      cap: concurrency,
      ahead: ratePerSecond === null,
      separate: isOrdered || ratePerSecond !== null,
    };
  }

  /** Reads them as they are now; a webhook that is gone has none. */
  async read(db: Db, webhooks: readonly number[]): Promise<void> {
    const rows = (await db
      .table(WEBHOOKS_TABLE)
      .select('id', ...LIMITS_COLUMNS)
      .whereIn('id', [...webhooks])) as (LimitsRow & Pick<WebhookRow, 'id'>)[];
    const found = new Map(rows.map((row) => [Number(row.id), limitsOf(row)]));
    for (const id of webhooks) this.note(id, found.get(id) ?? NO_LIMITS);
  }

  /** Reads those that are not known as of the last second. */
  async refresh(webhooks: readonly number[]): Promise<void> {
    const since = performance.now() - FRESH_MS;
    const unknown = webhooks.filter((id) => !((this.known.get(id)?.at ?? since) > since));
    if (unknown.length > 0) await this.read(await this.app.db.current(), unknown);
  }
}

/** So much of a rate is claimed at once, and caught up, in microseconds: a claim an attempt is expensive. */
const GRAIN_US = 100_000;

/** The most that the clocks of two nodes may differ by, in microseconds. */
const CLOCKS_DIFFER_US = 1_000_000;

const intervalOf = (ratePerSecond: number): number => 1_000_000 / ratePerSecond;

/**
 * Caps the last claim's `freeAt` by what this rate can have left: a later time comes from a lower rate or a fast clock.
 * @param freeAt when the next attempt may start; 0: nothing was sent yet
 */
export const freeAtMost = (ratePerSecond: number, freeAt: number, now: number): number => {
  const interval = intervalOf(ratePerSecond);
  const latest = now + Math.max(interval, GRAIN_US) + CLOCKS_DIFFER_US;
  return freeAt > latest ? Math.round(now + interval) : freeAt;
};

/**
 * The attempts that a rate allows now: evenly spaced, or together if less than a tenth of a second apart; idle time
 * gives no credit; docs/receivers.md#rate-limits. Microseconds.
 * @param freeAt when the next attempt may start; 0: nothing was sent yet
 * @returns how many may start, the time from which they count, and their interval
 */
export const allowance = (ratePerSecond: number, freeAt: number, now: number) => {
  const interval = intervalOf(ratePerSecond);
  if (freeAt > now) return { attempts: 0, from: freeAt, interval };
  const from = now - freeAt > GRAIN_US ? now : freeAt;
  const attempts = Math.max(1, Math.floor((now + GRAIN_US - from) / interval));
  return { attempts, from, interval };
};

/** When the next attempt may start after a number of attempts. */
export const freeAfter = ({ from, interval }: ReturnType<typeof allowance>, attempts: number) =>
  Math.round(from + attempts * interval);

/** The time from which a rate allows more; now if the next claim corrects it. */
const freeFrom = (
  { ratePerSecond }: WebhookLimits,
  freeAt: number | string | null,
  now: number
): number => {
  if (ratePerSecond === null) return 0;
  const free = Number(freeAt);
  return freeAtMost(ratePerSecond, free, now * 1000) === free ? Math.ceil(free / 1000) : 0;
};

/** The columns that a look for due deliveries reads of their webhooks: a pause and a rate put them off. */
export const seenOf = (
  app: App,
  known: KnownLimits
): NonNullable<QueueOptions['groups']['seen']> => {
  const locks = app.db.named(WEBHOOK_LOCKS_TABLE);
  return {
    columns: `served.paused_until, served.rate_per_second, served.concurrency, served.ordering,
      CASE WHEN served.rate_per_second IS NOT NULL THEN
        (SELECT free_at FROM ${locks} WHERE group_id = served.id) END AS rate_free_at`,
    dueAt(webhook, columns, firstDueAt) {
      const seen = columns as unknown as LimitsRow & { rate_free_at: number | string | null };
      const limits = limitsOf(seen);
      known.note(webhook, limits);
      const now = app.clock.now();
      return Math.max(firstDueAt, limits.pausedUntil, freeFrom(limits, seen.rate_free_at, now));
    },
  };
};

/** Ordering keys of deliveries that were not released by hand. */
export const orderingKeys = (db: Db): Knex.QueryBuilder => {
  const key = db.dialect.joined(['subject_type', "':'", 'subject_id']);
  return db
    .table(DELIVERIES_TABLE)
    .select('id', db.raw(`${key} AS ordering_key`))
    .whereNotNull('subject_type')
    .whereNotNull('subject_id')
    .whereNull('released_at')
    .where({ status: 'pending', is_test: false });
};

/** The keys of deliveries that were queued without. */
export const orderingKeysOf = async (tx: Tx, ids: readonly number[]) => {
  const found = (await orderingKeys(tx).whereIn('id', [...ids])) as {
    id: number | string;
    ordering_key: string;
  }[];
  return new Map(found.map(({ id, ordering_key: key }) => [Number(id), key]));
};

/** For so long webhooks are claimed of one by one that were not known to need it, before others. */
const ONE_BY_ONE_MS = 100;

interface LockedClaim extends CappedClaim<LeasedRow> {
  /** When more may be claimed, epoch milliseconds, if rows are left; otherwise null. */
  againAt: number | null;
}

const NOTHING: LockedClaim = { leases: [], isFull: false, isSole: false, againAt: null };

/** Claims within webhooks' limits, over all nodes; with a rate or an order one process at a time, only what may go. */
export class LimitedClaims {
  /** One timer a webhook, for when its rate allows more. */
  private readonly again = new Map<number, NodeJS.Timeout>();

  /** @param announce says that more of a webhook may be claimed now */
  constructor(
    private readonly queue: LimitedQueue,
    private readonly known: KnownLimits,
    private readonly announce: (webhook: number) => void
  ) {}

  /** Claims of several webhooks, up to a limit of each. */
  async claim(rooms: readonly GroupRoom[]): Promise<LeasedRow[]> {
    await this.known.refresh(rooms.map(({ group }) => group));
    const now = this.queue.now();
    // Nothing is claimed of a paused webhook: it would only be given back.
    const served = rooms.filter(({ group }) => this.known.get(group).pausedUntil <= now);
    const claimed: LeasedRow[] = [];
    // Leased rows wait until all is claimed: so the slow claims come first, and only for a while.
    const until = performance.now() + ONE_BY_ONE_MS;
    const together: GroupRoom[] = [];
    for (const room of served) {
      const { group, limit } = room;
      if (!this.known.ofGroup(group).separate) together.push(room);
      else if (performance.now() >= until) this.announceAt(group, now);
      else claimed.push(...(await this.claimLocked(group, limit, null)).leases);
    }
    if (together.length > 0) claimed.push(...(await this.queue.claim(together)));
    return claimed;
  }

  /** Claims of one webhook under its lock, and within a cap if there is one. */
  async claimLocked(webhook: number, limit: number, cap: LeaseCap | null): Promise<LockedClaim> {
    const claimed = await this.queue.withGroupLock(webhook, async (tx, freeAt) => {
      await this.known.read(tx, [webhook]);
      const limits = this.known.get(webhook);
      const now = this.queue.now();
      if (limits.pausedUntil > now) return NOTHING;
      const { ratePerSecond: rate, concurrency } = limits;
      const free = rate === null ? freeAt : freeAtMost(rate, freeAt, now * 1000);
      const allowed = rate === null ? null : allowance(rate, free, now * 1000);
      if (allowed?.attempts === 0) {
        if (free !== freeAt) await this.queue.setFreeAt(tx, webhook, free);
        return { ...NOTHING, againAt: Math.ceil(allowed.from / 1000) };
      }
      const most = Math.min(limit, allowed?.attempts ?? limit);
      const { leases, isMore, ...found } = await this.queue.claimLocked(tx, webhook, most, {
        isOrdered: limits.isOrdered,
        cap: cap && { ...cap, atOnce: concurrency ?? cap.atOnce },
      });
      if (!allowed || leases.length === 0)
        return { leases, ...found, againAt: isMore ? now : null };
      const next = freeAfter(allowed, leases.length);
      await this.queue.setFreeAt(tx, webhook, next);
      const isUsedUp = leases.length === allowed.attempts;
      return { leases, ...found, againAt: isUsedUp ? Math.ceil(next / 1000) : isMore ? now : null };
    });
    if (claimed.againAt !== null) this.announceAt(webhook, claimed.againAt);
    return claimed;
  }

  /** Announces nothing more: this process claims no more. */
  stop(): void {
    for (const timer of this.again.values()) clearTimeout(timer);
    this.again.clear();
  }

  /** @param at epoch milliseconds */
  private announceAt(webhook: number, at: number): void {
    clearTimeout(this.again.get(webhook));
    const timer = setTimeout(
      () => {
        this.again.delete(webhook);
        this.announce(webhook);
      },
      Math.max(0, at - this.queue.now())
    );
    this.again.set(webhook, timer.unref());
  }
}
