import { randomUUID } from 'node:crypto';
import { errors } from '@strapi/utils';
import type { Knex } from 'knex';
import type { ModuleId } from '../../../../shared/contracts/modules';
import type { TestResult } from '../../../../shared/contracts/webhooks';
import type { Detached } from '../../database/connection';
import { createFaultLog, withTransientRetry } from '../../database/retry';
import type { PlainTable } from '../../database/tables/plain-tables';
import { debugLog, errorText } from '../../runtime/text';
import { STOP_MARGIN_MS, stopWithin } from '../../scheduling/recorder';
import type { GroupHandler } from '../../scheduling/types';
import { declaredEvents, PING } from '../catalogue';
import { claimedLine, queuedLine } from '../debug-lines';
import { findDelivery } from '../deliveries/log';
import { getDeliveryStore, type LeasedDelivery, leaseTimes } from '../deliveries/store';
import { freezeEnvelope, thinEvent } from '../publish';
import { uuidV7 } from '../rules/uuid-v7';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { moduleHolding } from './modules-off';
import { recordAttempts, tellDelivered } from './record';
import type { AttemptResult, Sender } from './send';
import type { App } from '../../app';

/**
 * Why a delivery is not sent again: an attempt of it is under way, it belongs to another site, which
 * alone may send it, or the module of its event, named here, is switched off.
 */
export type RetryRefusal = 'held' | 'foreign' | { off: ModuleId };

const missing = () => new errors.NotFoundError('Delivery not found');

/** NotFoundError (404) where there is no such webhook. */
export const webhookRow = async (app: App, id: number): Promise<WebhookRow> => {
  const db = await app.db.current();
  const row = (await db.table(WEBHOOKS_TABLE).where({ id }).first()) as WebhookRow | undefined;
  if (!row) throw new errors.NotFoundError('Webhook not found');
  return row;
};

/**
 * Whether a delivery may be sent by hand, whichever process would do it.
 * @returns null where it may. NotFoundError (404) for an unknown id.
 */
export const judgeRetry = async (app: App, id: number): Promise<RetryRefusal | null> => {
  const delivery = await findDelivery(app, id);
  if (!delivery) throw missing();
  if (delivery.foreign) return 'foreign';
  const enabled = await app.modules.enabled();
  const module = await moduleHolding(app, delivery.event, enabled);
  return module ? { off: module } : null;
};

const attemptNow = async (
  app: App,
  sender: Sender,
  lease: LeasedDelivery
): Promise<AttemptResult> => {
  const webhook = await webhookRow(app, lease.group);
  const result = await sender.attempt(lease.delivery, webhook, true);
  await recordAttempts(app, [{ lease, webhook, result }], (recorded) =>
    tellDelivered(app, recorded)
  );
  return result;
};

/**
 * Makes one attempt of a delivery, now and from this process, and records it.
 * @returns null once the attempt is recorded. NotFoundError (404) for an unknown id.
 */
export const retryNow = async (
  app: App,
  sender: Sender,
  id: number
): Promise<RetryRefusal | null> => {
  const refusal = await judgeRetry(app, id);
  if (refusal) return refusal;
  const lease = await getDeliveryStore(app).claimOne(id);
  if (lease === 'absent') throw missing();
  if (lease === 'held') return 'held';
  debugLog(app.strapi)?.(claimedLine(lease));
  await attemptNow(app, sender, lease);
  return null;
};

const exampleOf = async (app: App, { id, payload }: WebhookRow, event: string) => {
  if (event === PING) {
    return { webhook_id: Number(id), message: 'This is a test from Switchboard.' };
  }
  const example = (await declaredEvents(app))[event]?.example ?? {};
  return payload === 'thin' ? thinEvent(event, example) : example;
};

/**
 * Sends a `ping`, or an event's example, now and from this process; logged, never tried again, also
 * while the webhook is inactive. NotFoundError (404) where there is no such webhook.
 */
export const testNow = async (
  app: App,
  sender: Sender,
  webhookId: number,
  event: string
): Promise<TestResult> => {
  const webhook = await webhookRow(app, webhookId);
  const data = await exampleOf(app, webhook, event);
  const store = getDeliveryStore(app);
  const at = store.now();
  const deliveryId = uuidV7(at);
  const delivery = {
    deliveryId,
    webhook: Number(webhook.id),
    url: webhook.url,
    event,
    body: freezeEnvelope(app, { deliveryId, event, at, data }),
    at,
    isTest: true,
  };
  const lease = await store.insertLeased(delivery);
  debugLog(app.strapi)?.(queuedLine(delivery));
  const { ok, attempt } = await attemptNow(app, sender, lease);
  return {
    ok,
    response_code: attempt.answer?.status ?? null,
    error: attempt.error,
    duration_ms: attempt.duration_ms,
    delivery_id: deliveryId,
  };
};

const MANUAL_REQUESTS_TABLE = 'switchboard_manual_requests';

/**
 * What somebody asked a process that does not send to have sent now, for another process to do. A row
 * lives for seconds: whoever asked removes it with its answer. Times are epoch milliseconds of the
 * database's clock; `target_id` is the id of a delivery's row (`retry`) or of a webhook's (`test`);
 * `answer` is JSON.
 */
export const manualRequestsTable: PlainTable = {
  tableName: MANUAL_REQUESTS_TABLE,
  attributes: {
    id: { type: 'increments' },
    token: { type: 'string' },
    kind: { type: 'string' },
    target_id: { type: 'integer' },
    event: { type: 'string' },
    asked_at: { type: 'biginteger' },
    expires_at: { type: 'biginteger' },
    taken_at: { type: 'biginteger' },
    answer: { type: 'text' },
  },
  indexes: [{ name: 'sb_manual_token', columns: ['token'], type: 'unique' }],
};

/** A row of `switchboard_manual_requests`, as the database driver hands it out. */
interface ManualRequestRow {
  id: number;
  token: string;
  kind: 'retry' | 'test';
  target_id: number;
  event: string | null;
  asked_at: number | string;
  expires_at: number | string;
  taken_at: number | string | null;
  answer: string | null;
}

/** What another process shall send now. */
export type ManualRequest =
  { kind: 'retry'; delivery: number } | { kind: 'test'; webhook: number; event: string };

/** What came of it; `failed` where it could not be done, with the words for the log. */
export type ManualAnswer =
  | { kind: 'retry'; refusal: RetryRefusal | null }
  | { kind: 'test'; result: TestResult }
  | { kind: 'missing'; message: string }
  | { kind: 'failed'; message: string };

/** A request that this process has taken and has to answer. */
interface TakenRequest {
  token: string;
  request: ManualRequest;
}

/** How a request stands, for the process that made it. */
type RequestState =
  { state: 'waiting' } | { state: 'taken' } | { state: 'answered'; answer: ManualAnswer };

/**
 * The requests of processes that do not send. Over the database alone, because that is all that the
 * processes of a site are sure to share.
 */
interface ManualRequestStore {
  /** Epoch milliseconds, by the database's clock. */
  now(): number;
  /** Asks. @returns the token by which the request is looked at and taken back. */
  ask(request: ManualRequest, forMs: number): Promise<string>;
  look(token: string): Promise<RequestState>;
  /** Takes a request back unless another process has taken it. @returns whether it was taken back. */
  withdraw(token: string): Promise<boolean>;
  remove(token: string): Promise<void>;
  /** Whether somebody waits for a process that sends. */
  isWaiting(): Promise<boolean>;
  /** Takes up to `limit` requests that somebody still waits for, each by one process only. */
  take(limit: number): Promise<TakenRequest[]>;
  answer(token: string, answer: ManualAnswer): Promise<void>;
  /** Removes what processes left that died while they waited. */
  removeOlderThan(ms: number): Promise<void>;
}

const toRequest = ({ kind, target_id: id, event }: ManualRequestRow): ManualRequest =>
  kind === 'retry'
    ? { kind, delivery: Number(id) }
    : { kind, webhook: Number(id), event: String(event) };

const createManualRequestStore = (app: App): ManualRequestStore => {
  const now = () => app.clock.now();

  /** Each is a single statement, so one that a lock got in the way of may simply be run again. */
  const run = <T>(statement: (rows: Knex.QueryBuilder) => PromiseLike<T>): Promise<T> =>
    withTransientRetry(async () =>
      statement((await app.db.current()).table(MANUAL_REQUESTS_TABLE))
    );

  const waiting = (rows: Knex.QueryBuilder): Knex.QueryBuilder =>
    rows.whereNull('taken_at').where('expires_at', '>', now());

  return {
    now,

    async ask(request, forMs) {
      const token = randomUUID();
      const at = now();
      await run((rows) =>
        rows.insert({
          token,
          kind: request.kind,
          target_id: request.kind === 'retry' ? request.delivery : request.webhook,
          event: request.kind === 'test' ? request.event : null,
          asked_at: at,
          expires_at: at + forMs,
          taken_at: null,
          answer: null,
        })
      );
      return token;
    },

    async look(token) {
      const row = await run<Pick<ManualRequestRow, 'taken_at' | 'answer'> | undefined>((rows) =>
        rows.where({ token }).first('taken_at', 'answer')
      );
      if (row?.answer) return { state: 'answered', answer: JSON.parse(row.answer) as ManualAnswer };
      return { state: row && row.taken_at === null ? 'waiting' : 'taken' };
    },

    withdraw: async (token) =>
      (await run<number>((rows) => rows.where({ token }).whereNull('taken_at').delete())) > 0,

    async remove(token) {
      await run((rows) => rows.where({ token }).delete());
    },

    isWaiting: async () => Boolean(await run((rows) => waiting(rows).first('id'))),

    async take(limit) {
      const found = await run<ManualRequestRow[]>((rows) =>
        waiting(rows).orderBy('id').limit(limit).select('*')
      );
      const taken: TakenRequest[] = [];
      for (const row of found) {
        const { token } = row;
        const changed = await run<number>((rows) =>
          waiting(rows.where({ token })).update({ taken_at: now() })
        );
        if (changed === 1) taken.push({ token, request: toRequest(row) });
      }
      return taken;
    },

    async answer(token, answer) {
      await run((rows) => rows.where({ token }).update({ answer: JSON.stringify(answer) }));
    },

    async removeOlderThan(ms) {
      await run((rows) => rows.where('asked_at', '<', now() - ms).delete());
    },
  };
};

/** The kind of work that requests to send by hand are, as the scheduler and its log lines name it. */
export const MANUAL_REQUESTS = 'switchboard sending by hand';

/** All requests are one group: there are few, and each is done beside the others. */
const MANUAL_GROUP = 1;

const LOOK_EVERY_MS = 100;
/** Beyond an attempt's deadline: time for slow hooks and for recording. */
const TAKEN_MARGIN_MS = 10_000;

/** Why nobody answered: no process took the request, or the one that did has not said what came of it. */
export type Unanswered = 'nobody sends' | 'no answer';

const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, LOOK_EVERY_MS);
  });

/**
 * Has another process of the site send something now, and waits for what came of it. Other processes
 * look for requests once a second, or at once where the scheduler reaches them.
 * @returns `nobody sends` after `timeoutMs` and `pollSeconds` (docs/operations.md#several-nodes); the
 * request is taken back then, and nothing was sent.
 */
export const askAnotherProcess = async (
  app: App,
  request: ManualRequest
): Promise<ManualAnswer | Unanswered> => {
  const { timeoutMs, pollSeconds } = app.options.webhooks;
  const store = createManualRequestStore(app);
  const patience = timeoutMs + pollSeconds * 1000;
  const token = await store.ask(request, patience);
  app.scheduler.announce(MANUAL_REQUESTS, MANUAL_GROUP, store.now());
  const giveUpAt = performance.now() + patience;
  let takenUntil: number | undefined;
  for (;;) {
    await pause();
    const found = await store.look(token);
    if (found.state === 'answered') {
      await store.remove(token);
      return found.answer;
    }
    const now = performance.now();
    if (found.state === 'taken') takenUntil ??= now + timeoutMs + TAKEN_MARGIN_MS;
    if (takenUntil !== undefined) {
      if (now < takenUntil) continue;
      await store.remove(token);
      return 'no answer';
    }
    if (now >= giveUpAt && (await store.withdraw(token))) return 'nobody sends';
  }
};

const POLL_MS = 1000;
const TAKEN_AT_ONCE = 16;
/** Nobody waits so long: whoever made such a request has died, or its answer was lost. */
const FORGOTTEN_AFTER_MS = 3_600_000;

const perform = async (app: App, sender: Sender, request: ManualRequest): Promise<ManualAnswer> => {
  try {
    if (request.kind === 'retry') {
      return { kind: 'retry', refusal: await retryNow(app, sender, request.delivery) };
    }
    const { webhook, event } = request;
    return { kind: 'test', result: await testNow(app, sender, webhook, event) };
  } catch (error) {
    const kind = error instanceof errors.NotFoundError ? 'missing' : 'failed';
    return { kind, message: kind === 'missing' ? (error as Error).message : errorText(error) };
  }
};

/**
 * Does what processes that do not send ask for: tests and retries by hand. They are beside the limits
 * of simultaneous attempts, as on a node that sends by itself, because somebody waits for the answer.
 */
export const createManualRequestHandler = (
  app: App,
  sender: Sender,
  detached: Detached
): GroupHandler => {
  const store = createManualRequestStore(app);
  const logFault = createFaultLog(app.log);
  const underWay = new Set<Promise<void>>();
  let stopping = false;

  const answer = async ({ token, request }: TakenRequest): Promise<void> => {
    try {
      await store.answer(token, await perform(app, sender, request));
    } catch (error) {
      logFault('switchboard sending by hand: an answer could not be written', error);
    }
  };

  const start = (taken: TakenRequest): void => {
    const work: Promise<void> = detached(() => answer(taken)).finally(() => underWay.delete(work));
    underWay.add(work);
  };

  const take = async (): Promise<number | null> => {
    if (stopping) return null;
    const taken = await store.take(TAKEN_AT_ONCE);
    for (const one of taken) start(one);
    if (taken.length > 0) await store.removeOlderThan(FORGOTTEN_AFTER_MS);
    return taken.length < TAKEN_AT_ONCE ? null : store.now();
  };

  return {
    pollMs: POLL_MS,
    now: () => store.now(),
    dueTimes: async () =>
      new Map((await store.isWaiting()) ? [[MANUAL_GROUP, store.now()] as const] : []),
    work: take,
    /** For engines that share groups with other nodes: one node takes what there is. */
    takeTurn: take,
    turns: { groups: 1, nodes: 1 },
    stop() {
      stopping = true;
      const { longestMs } = leaseTimes(app.options.webhooks.timeoutMs);
      const end = Promise.all(underWay).then(() => undefined);
      return stopWithin(longestMs + STOP_MARGIN_MS, end);
    },
  };
};
