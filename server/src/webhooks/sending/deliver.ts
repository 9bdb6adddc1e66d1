import type { Knex } from 'knex';
import type { ModuleId } from '../../../../shared/contracts/modules';
import { type Detached, padded, rowsOf, type Statement } from '../../database/connection';
import { enabledModules, storedModules } from '../../modules/modules';
import { createGathering } from '../../runtime/background-work';
import { debugEach, debugLog } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { SlotWorker } from '../../scheduling/slot-worker';
import type { GroupHandler } from '../../scheduling/types';
import { claimedLine, unsentLine } from '../debug-lines';
import {
  announceDeliveries,
  BY_HAND,
  DELIVERIES,
  getDeliveryStore,
  type LeasedDelivery,
  leaseTimes,
} from '../deliveries/store';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { settleArrivedWebhooksLater } from '../imported-webhooks';
import { patienceOf } from './by-hand';
import type { HeldBack } from './modules-off';
import { type MadeAttempt, recordAttempts, type RecordedAttempt, tellDelivered } from './record';
import type { AttemptResult, Sender } from './send';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** What an attempt has to know of its webhook, as it is now. */
interface LoadedWebhook {
  webhook: WebhookRow;
  /** The modules that are on. */
  enabled: ReadonlySet<ModuleId>;
}

type Answer = Promise<LoadedWebhook | null>;

/** What is gathered for one query. */
interface Batch {
  ids: number[];
  /** When the database was asked, in milliseconds of the process's clock; null: it is about to be. */
  askedAt: number | null;
  rows: Promise<(id: number) => LoadedWebhook | null>;
}

/**
 * How long a row that was read is good for further attempts, in milliseconds of the process's clock. No
 * longer than an attempt that has read its webhook may wait for its turn to be posted.
 */
const FRESH_MS = 5;

/**
 * Reads webhooks for attempts. Each attempt must see the secret, the address and the switches as they
 * are now (rotation holds at once, for queued deliveries too), yet a query an attempt would be the
 * dearest part of it: whatever is asked for in one turn of the event loop is one query, and what
 * was asked of the database less than 5 ms ago is not asked again.
 */
const createRowLoader = (app: App): ((id: number) => Answer) => {
  const recent = new Map<number, { batch: Batch; answer: Answer }>();
  let gathering: Batch | null = null;
  /** By how many ids they ask for. */
  const statements = new Map<number, Statement>();

  /** For some ids; the statement is built once for each number of them. */
  const statementOf = (db: Db, ids: readonly number[]): Statement => {
    const { sql, bindings } = db
      .table(WEBHOOKS_TABLE)
      .select('*', storedModules(db).as('modules'))
      .whereIn('id', [...ids])
      .toSQL();
    return { sql, bindings: bindings as readonly Knex.RawBinding[] };
  };

  const load = async (ids: readonly number[]): Promise<(id: number) => LoadedWebhook | null> => {
    const db = await app.db.current();
    const asked = padded([...new Set(ids)]);
    const { sql, bindings } = statements.get(asked.length) ?? statementOf(db, asked);
    statements.set(asked.length, { sql, bindings });
    // The ids are what its statement ends with.
    const values = [...bindings.slice(0, -asked.length), ...asked];
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

  /** Of the next query, which is sent when this turn of the event loop is over. */
  const nextBatch = (): Batch => {
    const ids: number[] = [];
    const rows = nextTurn().then(() => {
      gathering = null;
      batch.askedAt = performance.now();
      // Its row and the secret in it leave the memory, whether anybody asks again or not.
      setTimeout(() => forget(batch), FRESH_MS).unref();
      return load(ids);
    });
    const batch: Batch = { ids, askedAt: null, rows };
    return batch;
  };

  const forget = (batch: Batch): void => {
    for (const id of batch.ids) if (recent.get(id)?.batch === batch) recent.delete(id);
  };

  const isFresh = ({ askedAt }: Batch): boolean =>
    askedAt === null || performance.now() - askedAt < FRESH_MS;

  return (id) => {
    const known = recent.get(id);
    if (known && isFresh(known.batch)) return known.answer;
    gathering ??= nextBatch();
    gathering.ids.push(id);
    const answer = gathering.rows.then((find) => find(id));
    recent.set(id, { batch: gathering, answer });
    return answer;
  };
};

const TELL_AT_ONCE = 1000;
const ENDED_AT_ONCE = 500;
/** Answers that say that too much comes at once. */
const SLOWS: ReadonlySet<number> = new Set([429, 502, 504]);

/** What is to be done with a delivery that is due, decided with its webhook as it is now. */
type Decision =
  | { kind: 'send'; webhook: WebhookRow }
  /** A test that a crash interrupted is not sent late: whoever pressed the button has long gone. */
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
 * Works on due deliveries, from this node. Each goes through this file from top to bottom: it is
 * claimed by the worker, `decide` says what is to be done, `perform` does it, `recordAttempts` writes
 * what came of it together with others, and `tell` lets handlers hear of it.
 */
export const createDeliveryHandler = (
  app: App,
  sender: Sender,
  heldBack: HeldBack,
  detached: Detached
): GroupHandler => {
  const options = app.options.webhooks;
  const store = getDeliveryStore(app);
  const loadWebhook = createRowLoader(app);
  const release = createGathering((leases: readonly LeasedDelivery[]) => store.release(leases));

  const decide = async ({ group, delivery }: LeasedDelivery): Promise<Decision> => {
    const loaded = await loadWebhook(delivery.webhook);
    if (!loaded) return { kind: 'webhook deleted' };
    const { webhook, enabled } = loaded;
    const isByHand = group === BY_HAND;
    if (delivery.isTest) {
      const isAsked =
        delivery.status !== 'pending' || delivery.createdAt + patienceOf(app) > store.now();
      const isAwaited = isByHand && isAsked;
      return { kind: isAwaited ? 'send' : 'interrupted test', webhook };
    }
    if (isByHand) return { kind: 'send', webhook };
    const foreign = app.site.isForeign(webhook);
    if (foreign) await settleArrivedWebhooksLater(app);
    if (foreign || !webhook.active) return { kind: 'webhook switched off' };
    if (Number(webhook.paused_until) > store.now()) return { kind: 'webhook paused' };
    if (await heldBack.isOff(delivery.event, enabled)) return { kind: 'module switched off' };
    return { kind: 'send', webhook };
  };

  /** @returns the attempt that was made; null where none was, and the delivery is somewhere safe */
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

  /** Has the next of the retries looked for when it is due. */
  const announceRetries = (recorded: readonly RecordedAttempt[]): void => {
    const times = recorded.flatMap(({ next }) => next.nextAttemptAt ?? []);
    if (times.length > 0) announceDeliveries(app, null, Math.min(...times));
  };

  /**
   * Handlers run beside the recording: one that hangs must not hold the outcomes of others until
   * their leases end. So many at once, no more: memory must not follow a slow handler.
   */
  const telling = new Set<Promise<void>>();
  let untold = 0;
  const tell = async (recorded: readonly RecordedAttempt[]): Promise<void> => {
    announceRetries(recorded);
    untold += recorded.length;
    const told: Promise<void> = tellDelivered(app, recorded).finally(() => {
      untold -= recorded.length;
      telling.delete(told);
    });
    telling.add(told);
    if (untold >= TELL_AT_ONCE) await Promise.race(telling);
  };

  const worker = new SlotWorker<LeasedDelivery, MadeAttempt>({
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
      for (const timer of again.values()) clearTimeout(timer);
      await Promise.all(telling);
    },
  });

  /** One timer a webhook, for when its rate allows more. */
  const again = new Map<number, NodeJS.Timeout>();
  store.claims.onAgain = (webhook, at) => {
    clearTimeout(again.get(webhook));
    const timer = setTimeout(
      () => {
        again.delete(webhook);
        announceDeliveries(app, webhook);
      },
      Math.max(0, at - store.now())
    );
    timer.unref();
    again.set(webhook, timer);
  };

  return worker;
};
