import type { Knex } from 'knex';
import { MODULE_IDS, type ModuleId } from '../../../../shared/contracts/modules';
import { type Detached, padded, rowsOf, type Statement } from '../../database/connection';
import { enabledModules, storedModules } from '../../modules/modules';
import { createGathering } from '../../runtime/background-work';
import { debugEach, debugLog } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { SlotWorker } from '../../scheduling/slot-worker';
import type { ServedHandler } from '../../scheduling/types';
import { claimedLine, unsentLine } from '../debug-lines';
import {
  announceDeliveries,
  BY_HAND,
  DELIVERIES,
  getDeliveryStore,
  type LeasedDelivery,
  leaseTimes,
  patienceOf,
} from '../deliveries/store';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { settleArrivedWebhooksLater } from '../imported-webhooks';
import type { HeldBack } from './modules-off';
import { type MadeAttempt, recordAttempts, type RecordedAttempt, tellDelivered } from './record';
import type { AttemptResult, Sender } from './send';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** The current webhook of an attempt. */
interface LoadedWebhook {
  webhook: WebhookRow;
  /** The modules that are on. */
  enabled: ReadonlySet<ModuleId>;
}

/** The ids of one query. */
interface Batch {
  ids: Set<number>;
  /** When the database was asked, in milliseconds of the process's clock; Infinity: it is about to be. */
  queriedAt: number;
  found: Promise<(id: number) => LoadedWebhook | null>;
}

/**
 * How long a row that was read is good for further attempts, in milliseconds of the process's clock. No
 * longer than an attempt that has read its webhook may wait for its turn to be posted.
 */
const FRESH_MS = 5;

/**
 * Reads webhooks for attempts. Each attempt must see the secret, the address and the switches as they
 * are now (rotation holds at once, for queued deliveries too), yet a query an attempt would be the
 * most expensive part of it: whatever is asked for in one turn of the event loop is one query, and what
 * was asked of the database less than 5 ms ago is not asked again.
 */
const createWebhookLoader = (app: App): ((id: number) => Promise<LoadedWebhook | null>) => {
  const recent = new Set<Batch>();
  let gathering: Batch | null = null;
  /** By how many ids they ask for: the query builder takes longer than the query. */
  const statements = new Map<number, Statement>();

  const statementOf = (db: Db, ids: readonly number[]): Statement => {
    const { sql, bindings } = db
      .table(WEBHOOKS_TABLE)
      .select('*', storedModules(db).as('modules'))
      .whereIn('id', [...ids])
      .toSQL();
    return { sql, bindings: bindings as readonly Knex.RawBinding[] };
  };

  const load = async (batch: Batch): Batch['found'] => {
    await nextTurn();
    gathering = null;
    batch.queriedAt = performance.now();
    // Its rows and the secrets in them leave the memory, whether anybody asks again or not.
    setTimeout(() => recent.delete(batch), FRESH_MS).unref();
    const db = await app.db.current();
    const ids = padded([...batch.ids]);
    const { sql, bindings } = statements.get(ids.length) ?? statementOf(db, ids);
    statements.set(ids.length, { sql, bindings });
    // The ids are what its statement ends with.
    const values = [...bindings.slice(0, -ids.length), ...ids];
    const rows = rowsOf<WebhookRow & { modules: string | null }>(
      await db.prepared({ sql, bindings: values })
    );
    const byId = new Map(rows.map((row) => [Number(row.id), row]));
    const enabled = enabledModules(rows[0]?.modules);
    return (id) => {
      const webhook = byId.get(id);
      return webhook ? { webhook, enabled } : null;
    };
  };

  return async (id) => {
    const freshSince = performance.now() - FRESH_MS;
    const known = [...recent].find(({ ids, queriedAt }) => ids.has(id) && queriedAt > freshSince);
    if (known) return (await known.found)(id);
    if (!gathering) {
      gathering = { ids: new Set(), queriedAt: Number.POSITIVE_INFINITY } as Batch;
      gathering.found = load(gathering);
      recent.add(gathering);
    }
    gathering.ids.add(id);
    return (await gathering.found)(id);
  };
};

const TELL_AT_ONCE = 1000;
const ENDED_AT_ONCE = 500;
/** Answers that say that too much comes at once. */
const SLOWS: ReadonlySet<number> = new Set([429, 502, 504]);

/** The decision about a due delivery, made with its current webhook. */
type Decision =
  | { kind: 'send'; webhook: WebhookRow }
  /** A test that a crash interrupted is not sent late: the user who pressed the button has long gone. */
  | { kind: 'interrupted test'; webhook: WebhookRow }
  /** Deleted, with its log, a moment ago. */
  | { kind: 'webhook deleted' }
  | { kind: 'webhook switched off' }
  | { kind: 'webhook paused' }
  | { kind: 'module switched off' };

const interrupted = (endedAt: number): AttemptResult => ({
  ok: false,
  endedAt,
  attempt: {
    at: new Date().toISOString().replace('Z', '+00:00'),
    request: { url: '', headers: {} },
    answer: null,
    error: 'interrupted',
    duration_ms: 0,
    manual: true,
  },
});

/**
 * Works on due deliveries, from this node. Each goes through this file from top to bottom: it is claimed
 * by the worker, `decide` says what is to be done, `perform` does it, `recordAttempts` writes the result
 * together with others, and `tell` calls handlers.
 */
export const createDeliveryHandler = (
  app: App,
  sender: Sender,
  heldBack: HeldBack,
  detached: Detached
): ServedHandler => {
  const options = app.options.webhooks;
  const store = getDeliveryStore(app);
  const loadWebhook = createWebhookLoader(app);
  const release = createGathering((leases: readonly LeasedDelivery[]) => store.release(leases));

  const decide = async ({ group, delivery }: LeasedDelivery): Promise<Decision> => {
    const loaded = await loadWebhook(delivery.webhook);
    if (!loaded) return { kind: 'webhook deleted' };
    const { webhook, enabled } = loaded;
    const isByHand = group === BY_HAND;
    if (delivery.isTest) {
      const isRecent =
        delivery.status !== 'pending' || delivery.createdAt + patienceOf(app) > store.now();
      const isAwaited = isByHand && isRecent;
      return { kind: isAwaited ? 'send' : 'interrupted test', webhook };
    }
    if (isByHand) return { kind: 'send', webhook };
    const foreign = app.site.isForeign(webhook);
    if (foreign) await settleArrivedWebhooksLater(app);
    if (foreign || !webhook.active) return { kind: 'webhook switched off' };
    if (Number(webhook.paused_until) > store.now()) return { kind: 'webhook paused' };
    const isAllOn = enabled.size === MODULE_IDS.length;
    if (!isAllOn && (await heldBack.isOff(delivery.event, enabled))) {
      return { kind: 'module switched off' };
    }
    return { kind: 'send', webhook };
  };

  /** @returns the attempt that was made; null if none was, and the delivery is somewhere safe */
  const perform = async (lease: LeasedDelivery): Promise<MadeAttempt | null> => {
    const decision = await decide(lease);
    switch (decision.kind) {
      case 'send': {
        const { webhook } = decision;
        const manual = lease.group === BY_HAND || lease.delivery.status !== 'pending';
        return { lease, webhook, result: await sender.attempt(lease.delivery, webhook, manual) };
      }
      case 'interrupted test':
        return { lease, webhook: decision.webhook, result: interrupted(store.now()) };
      case 'webhook switched off':
      case 'webhook paused':
        await release(lease);
        break;
      case 'module switched off':
        await heldBack.hold(lease);
        break;
      case 'webhook deleted':
        // A write that was open when it was deleted may have queued this one after the others went.
        await release(lease);
        if (lease.group === BY_HAND) await store.takeBack(lease.id);
        await store.endLost(lease.delivery.webhook, ENDED_AT_ONCE);
    }
    debugLog(app.strapi)?.(unsentLine(lease, decision.kind));
    return null;
  };

  /**
   * Handlers run concurrently with the recording: one that hangs must not hold the outcomes of others
   * until their leases end. So many at once, no more: memory must not follow a slow handler.
   */
  const telling = new Set<Promise<void>>();
  let untold = 0;
  const tell = async (recorded: readonly RecordedAttempt[]): Promise<void> => {
    const retries = recorded.flatMap(({ next }) => next.nextAttemptAt ?? []);
    if (retries.length > 0) announceDeliveries(app, null, Math.min(...retries));
    untold += recorded.length;
    const notified: Promise<void> = tellDelivered(app, recorded).finally(() => {
      untold -= recorded.length;
      telling.delete(notified);
    });
    telling.add(notified);
    if (untold >= TELL_AT_ONCE) await Promise.race(telling);
  };

  return new SlotWorker<LeasedDelivery, MadeAttempt>({
    name: DELIVERIES,
    store,
    log: app.log,
    detached,
    concurrency: options.concurrency,
    concurrencyPerGroup: options.concurrencyPerWebhook,
    limitsOf: (webhook) => store.limits.ofGroup(webhook),
    ...leaseTimes(options.timeoutMs),
    pollMs: options.pollSeconds * 1000,
    announce: (webhook, at) => announceDeliveries(app, webhook, at),
    perform,
    healthy: ({ result }) => result.ok,
    slows: ({ result }) => SLOWS.has(result.attempt.answer?.status ?? 0),
    // The next one of its record.
    awaited: ({ lease, result }) => result.ok && lease.delivery.isOrdered,
    record: (made) => recordAttempts(app, made, tell),
    onClaimed: (leases) => debugEach(app.strapi, leases, claimedLine),
    onGivenBack: (leases) =>
      debugEach(app.strapi, leases, (one) => unsentLine(one, 'no time left')),
    dueTimes: () => heldBack.dueTimes(),
    async onStop() {
      store.claims.stop();
      await Promise.all(telling);
    },
  });
};
