import { MODULE_IDS, type ModuleId } from '../../../../shared/contracts/modules';
import { padded, rowsOf } from '../../database/connection';
import { repeated } from '../../database/dialects/shared';
import type { RequestArgs } from '../../hooks';
import { isAnswering, isVisited } from '../../http/server';
import { enabledModules, storedModules } from '../../modules/modules';
import { createGathering } from '../../runtime/event-loop';
import { debugEach, debugLog } from '../../runtime/text';
import { UNBEGUN } from '../../runtime/threads';
import { SlotWorker } from '../../scheduling/slot-worker';
import { claimedLine, unsentLine, type UnsentReason } from '../debug-lines';
import { getDeliveryChanges } from '../deliveries/changes';
import {
  announceDeliveries,
  BY_HAND,
  DELIVERIES,
  getDeliveryStore,
  type LeasedDelivery,
  leaseTimes,
  patienceOf,
} from '../deliveries/store';
import { type Mark, type Subscribers, subscribersOf } from '../subscriptions';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { settleArrivedWebhooksLater } from '../imported-webhooks';
import { type HeldBack, moduleHolding } from '../modules-off';
import { type MadeAttempt, recordAttempts, type RecordedAttempt, tellDelivered } from './record';
import { columnsOf } from './post';
import type { AttemptResult, Sender } from './send';
import type { App } from '../../app';

/** A webhook as it was read, with the modules that were on. */
interface Loaded {
  webhook: WebhookRow;
  enabled: ReadonlySet<ModuleId>;
  /** The revision of webhooks when it was read. */
  revision: number;
  /** As handlers left it; none: a crash interrupted the delivery, which is not sent late. */
  request?: RequestArgs;
}

const REMEMBERED = 1000;

/**
 * Reads webhooks for attempts. Each attempt needs the current secret, address and switches (rotation applies at once,
 * to queued deliveries too), but a query per attempt would be its most expensive part. A row is read again after a
 * change in this process, and otherwise before another process's change is answered: after half of that time, the rest
 * being left for posts that wait to begin. One query reads all rows requested in one turn of the event loop.
 */
const createWebhookLoader = ({ db }: App, subscribers: Subscribers) => {
  const modules = storedModules(db.pool).toSQL();
  const known = new Map<number, { mark: Mark; found: Promise<Loaded | undefined> }>();

  const read = createGathering(async (wanted: readonly number[]) => {
    const { revision } = subscribers.mark();
    const ids = padded([...new Set(wanted)]);
    // As text, for the query builder takes longer than the query.
    const sql = `SELECT *, (${modules.sql}) AS modules FROM ${db.named(WEBHOOKS_TABLE)}
      WHERE id IN (${repeated('?', ids.length)})`;
    const current = await db.current();
    const rows = rowsOf<WebhookRow & { modules: string | null }>(
      await current.prepared({ sql, bindings: [...modules.bindings, ...ids] })
    );
    const enabled = enabledModules(rows[0]?.modules);
    const found = new Map(
      rows.map((webhook) => [Number(webhook.id), { webhook, enabled, revision }])
    );
    return wanted.map((id) => found.get(id));
  });

  const keep = (id: number, mark: Mark, found: Promise<Loaded | undefined>): void => {
    if (known.size >= REMEMBERED && !known.has(id)) known.clear();
    known.set(id, { mark, found });
  };
  subscribers.onRead = (webhook, enabled, mark) =>
    keep(Number(webhook.id), mark, Promise.resolve({ webhook, enabled, revision: mark.revision }));

  return (id: number): Promise<Loaded | undefined> => {
    const before = known.get(id);
    if (before && subscribers.isCurrent(before.mark, subscribers.goodForMs / 2))
      return before.found;
    const found = read(id);
    keep(id, subscribers.mark(), found);
    found.catch(() => known.delete(id));
    return found;
  };
};

const TELL_AT_ONCE = 1000;
const ENDED_AT_ONCE = 500;
/** Answers that say that too much comes at once. */
const SLOWS: ReadonlySet<number> = new Set([429, 502, 504]);

const interrupted = (endedAt: number): AttemptResult => {
  const attempt = { at: Date.now(), url: '', request_headers: '{}', ...columnsOf({}, {}) };
  const failed = { error: 'interrupted', duration_ms: 0, manual: true };
  return { ok: false, endedAt, retryAfter: undefined, attempt: { ...attempt, ...failed } };
};

/** Sends due deliveries: the worker claims, then `decide`, `perform`, `recordAttempts` (in batches) and `tell`. */
export const createDeliveryHandler = (app: App, sender: Sender, heldBack: HeldBack) => {
  const options = app.options.webhooks;
  const store = getDeliveryStore(app);
  const subscribers = subscribersOf(app);
  const loadWebhook = createWebhookLoader(app, subscribers);
  const requestArgs = app.hooks.get('service_crm_webhook_request_args');
  const release = createGathering((leases: readonly LeasedDelivery[]) => store.release(leases));

  /** @returns the current webhook of a due delivery, or why it is not sent now */
  const decide = async (lease: LeasedDelivery): Promise<Loaded | UnsentReason> => {
    const { delivery, group } = lease;
    const loaded = await loadWebhook(delivery.webhook);
    if (!loaded) return 'webhook deleted';
    const { webhook, enabled } = loaded;
    if (delivery.isTest || group === BY_HAND) return loaded;
    const foreign = app.site.isForeign(webhook);
    if (foreign) await settleArrivedWebhooksLater(app);
    if (foreign || !webhook.active) return 'webhook switched off';
    const { pausedUntil } = store.limits.get(delivery.webhook);
    if (Math.max(Number(webhook.paused_until), pausedUntil) > store.now()) return 'webhook paused';
    const isAllOn = enabled.size === MODULE_IDS.length;
    const isOff = !isAllOn && (await moduleHolding(app, delivery.event, enabled)) !== null;
    return isOff ? 'module switched off' : loaded;
  };

  /** A test that a crash interrupted is not sent late: the user who pressed the button has long gone. */
  const isInterrupted = ({ delivery, group }: LeasedDelivery): boolean => {
    const { createdAt, isTest, status } = delivery;
    const isLate = status === 'pending' && createdAt + patienceOf(app) <= store.now();
    return isTest && (group !== BY_HAND || isLate);
  };

  /** As `decide`, with the request. The webhook is as it is once handlers have ended, however long they took. */
  const prepare = async (lease: LeasedDelivery): Promise<Loaded | UnsentReason> => {
    let decision = await decide(lease);
    for (;;) {
      if (typeof decision === 'string' || isInterrupted(lease)) return decision;
      const { url } = decision.webhook;
      const request = await sender.prepare(decision.webhook, lease.delivery.event);
      if (requestArgs.getHandlers().length > 0) decision = await decide(lease);
      if (typeof decision === 'string') return decision;
      // Otherwise handlers saw another address.
      if (decision.webhook.url === url) return { ...decision, request };
    }
  };

  /** @returns the attempt that was made; null if none was, and the delivery is somewhere safe */
  const perform = async (lease: LeasedDelivery, atOnce: number): Promise<MadeAttempt | null> => {
    const { delivery, group } = lease;
    let decision = await prepare(lease);
    if (typeof decision !== 'string') {
      const { request, revision, webhook } = decision;
      const manual = group === BY_HAND || delivery.status !== 'pending';
      const turn = { lane: group, atOnce, waitMs: subscribers.goodForMs / 2, revision };
      const result = request
        ? await sender.attempt(delivery, { webhook, request, manual, ...turn })
        : interrupted(store.now());
      // If it is unknown whether it was made, it is repeated when its lease ends.
      if (result !== UNBEGUN) return result && { lease, webhook, ...result };
      decision = 'given back';
    }
    await (decision === 'module switched off' ? heldBack.hold(lease) : release(lease));
    if (decision === 'webhook deleted') {
      // A write that was open when it was deleted may have queued this one after the others went.
      const changes = getDeliveryChanges(app);
      if (group === BY_HAND) await changes.takeBack(lease.id);
      await changes.endLost(delivery.webhook, ENDED_AT_ONCE);
    }
    debugLog(app.strapi)?.(unsentLine(lease, decision));
    return null;
  };

  /** Handlers run concurrently with recording, as a hanging one must not hold outcomes; bounded, to limit memory. */
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

  const worker = new SlotWorker<LeasedDelivery, MadeAttempt>({
    name: DELIVERIES,
    store,
    log: app.log,
    detached: app.detached,
    concurrency: options.concurrency,
    concurrencyPerGroup: options.concurrencyPerWebhook,
    limitsOf: (webhook) => store.limits.ofGroup(webhook),
    first: BY_HAND,
    isAnswering: () => isAnswering(app.strapi),
    pace: () => {
      if (options.threads === 0) return { together: 1, restMs: 0 };
      return isVisited(app.strapi) ? { together: 3, restMs: 2 } : { together: 16, restMs: 0 };
    },
    // A handler is called once for each attempt: a post that is given back would call it again.
    handsOver: () =>
      options.threads === 1 &&
      subscribers.isTrusted &&
      requestArgs.getHandlers().length === 0 &&
      !isVisited(app.strapi),
    ...leaseTimes(options.timeoutMs),
    pollMs: options.pollSeconds * 1000,
    announce: (webhook, at) => announceDeliveries(app, webhook, at),
    perform,
    judge: ({ attempt, lease, ok }) => ({
      // Deliveries sent by hand have nothing to do with each other.
      healthy: ok || lease.group === BY_HAND,
      slows: SLOWS.has(attempt.status ?? 0),
      // By the next one of its record.
      awaited: ok && lease.delivery.isOrdered,
      tookMs: attempt.duration_ms,
    }),
    record: (made) => recordAttempts(app, made, tell),
    onClaimed: (leases) => debugEach(app.strapi, leases, claimedLine),
    onUnstarted: (leases) =>
      debugEach(app.strapi, leases, (one) => unsentLine(one, 'no time left')),
    dueTimes: () => heldBack.dueTimes(),
    async onStop() {
      store.claims.stop();
      await Promise.all(telling);
    },
  });
  store.worker = worker;
  return worker;
};
