import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { MODULE_IDS } from '../../../../shared/contracts/modules';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import { type Executor, rowsOf, runApart, type Statement, table } from '../../database/connection';
import { siteInstance } from '../../database/site-instance';
import { createTimeSlice } from '../../runtime/event-loop';
import { getEventHook } from '../../hooks';
import { enabledModules, storedModules } from '../../modules';
import { declarations, moduleOff } from './catalogue';
import { toWebhook } from '../serialize';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';

/** Who subscribed to what, as the database had it at one moment. */
export interface Subscriptions {
  /** Active webhooks that asked for the event, by their ids; none where its module is off. */
  subscribersOf(event: string): readonly Webhook[];
  /** Whether handlers of `service_crm_webhook` hear the event; not where its module is off. */
  isListenedTo(event: string): boolean;
  /** Whether the event reaches anybody: a webhook that asked for it, or a handler that listens. */
  isSubscribed(event: string): boolean;
}

const NOBODY: Subscriptions = {
  subscribersOf: () => [],
  isListenedTo: () => false,
  isSubscribed: () => false,
};

/** The webhooks that asked for each event, in the order in which they are given. */
const indexByEvent = (webhooks: readonly Webhook[]): ((event: string) => readonly Webhook[]) => {
  const byEvent = new Map<string, Webhook[]>();
  const ofEveryEvent: Webhook[] = [];
  for (const webhook of webhooks) {
    if (webhook.events.includes('*')) {
      for (const subscribers of [ofEveryEvent, ...byEvent.values()]) subscribers.push(webhook);
      continue;
    }
    for (const event of new Set(webhook.events)) {
      const subscribers = byEvent.get(event);
      if (subscribers) subscribers.push(webhook);
      else byEvent.set(event, [...ofEveryEvent, webhook]);
    }
  }
  return (event) => byEvent.get(event) ?? ofEveryEvent;
};

const createSubscriptions = (
  webhooks: readonly Webhook[],
  hasHandlers: boolean,
  isSent: (event: string) => boolean
): Subscriptions => {
  const subscribers = indexByEvent(webhooks);
  return {
    subscribersOf: (event) => (isSent(event) ? subscribers(event) : []),
    isListenedTo: (event) => hasHandlers && isSent(event),
    isSubscribed: (event) => (hasHandlers || subscribers(event).length > 0) && isSent(event),
  };
};

/** Handlers of `service_crm_webhook` hear events that no webhook asked for. */
const hasListeners = (strapi: Core.Strapi): boolean =>
  getEventHook(strapi).getHandlers().length > 0;

/** The most webhooks that one statement reads: SQLite's driver reads all of them in one turn. */
const READ_AT_ONCE = 500;

/** The active webhooks of this site, by their ids, from the one after `after`. */
const activeWebhooks = (strapi: Core.Strapi, executor: Executor, after?: number) => {
  const active = table(strapi, executor, WEBHOOKS_TABLE)
    .select('*')
    .where({ active: true })
    .andWhere((ours) => {
      ours.where({ site_instance: siteInstance(strapi) }).orWhereNull('site_instance');
    })
    .orderBy('id')
    .limit(READ_AT_ONCE);
  return after === undefined ? active : active.andWhere('id', '>', after);
};

const toStatement = (query: Knex.QueryBuilder): Statement => {
  const { sql, bindings } = query.toSQL();
  return { sql, bindings: bindings as readonly Knex.RawBinding[] };
};

/**
 * The first active webhooks, each with the switches of the modules. Where handlers listen, the
 * switches are needed without any webhook, too: there is then one row, which has nothing else.
 */
const buildFirstStatement = (
  strapi: Core.Strapi,
  executor: Executor,
  hasHandlers: boolean
): Statement => {
  const active = activeWebhooks(strapi, executor);
  const modules = storedModules(strapi, executor).as('modules');
  if (!hasHandlers) return toStatement(active.select(modules));
  const knex = executor as Knex;
  return toStatement(
    knex
      .select('w.*', modules)
      .from(knex.raw('(select 1 as one) as o'))
      .leftJoin(active.as('w'), (on) => void on.on('o.one', '=', 'o.one'))
      .orderBy('w.id')
  );
};

/** By whether handlers listen. Every write runs one; building it would cost as much as running it. */
const firstStatements = new WeakMap<Core.Strapi, Map<boolean, Statement>>();

const firstStatement = (strapi: Core.Strapi, executor: Executor): Statement => {
  const built = firstStatements.get(strapi) ?? new Map<boolean, Statement>();
  firstStatements.set(strapi, built);
  const hasHandlers = hasListeners(strapi);
  const statement = built.get(hasHandlers) ?? buildFirstStatement(strapi, executor, hasHandlers);
  built.set(hasHandlers, statement);
  return statement;
};

type Row = WebhookRow & { modules: string | null };

/** Reads the webhooks after an id. */
type ReadMore = (after: number) => Promise<unknown>;

/** Leaves the event loop now and then: a site may have thousands of webhooks. */
const readWebhooks = async (first: readonly Row[], readMore: ReadMore): Promise<Webhook[]> => {
  const webhooks: Webhook[] = [];
  const slice = createTimeSlice();
  let rows: readonly WebhookRow[] = first;
  for (;;) {
    for (const row of rows) {
      // The row that has the switches of the modules and no webhook.
      if (row.id === null) continue;
      webhooks.push(toWebhook(row));
      if (slice.isOver()) await slice.next();
    }
    if (rows.length < READ_AT_ONCE) return webhooks;
    rows = rowsOf(await readMore(Number(rows.at(-1)?.id)));
  }
};

/** @param answer of the first statement */
const toSubscriptions = async (
  strapi: Core.Strapi,
  answer: unknown,
  readMore: ReadMore
): Promise<Subscriptions> => {
  const rows = rowsOf<Row>(answer);
  if (!rows[0]) return NOBODY;
  const enabled = enabledModules(rows[0].modules);
  if (!enabled.has('webhooks')) return NOBODY;
  // What belongs to which module matters only where one is off.
  const declared = enabled.size === MODULE_IDS.length ? {} : await declarations(strapi);
  const webhooks = await readWebhooks(rows, readMore);
  return createSubscriptions(
    webhooks,
    hasListeners(strapi),
    (event) => moduleOff(declared, event, enabled) === null
  );
};

/** Reads the subscriptions on a connection or in a transaction. */
export const loadSubscriptions = async (
  strapi: Core.Strapi,
  executor: Executor
): Promise<Subscriptions> => {
  const { sql, bindings } = firstStatement(strapi, executor);
  return toSubscriptions(strapi, await executor.raw(sql, bindings), (after) => {
    const next = toStatement(activeWebhooks(strapi, executor, after));
    return executor.raw(next.sql, next.bindings) as unknown as Promise<unknown>;
  });
};

/**
 * Reads the subscriptions on a connection of its own, with one statement: a second one could wait for
 * the connection of the very write that waits for it.
 * @throws where one statement does not read all webhooks
 */
export const loadSubscriptionsApart = async (strapi: Core.Strapi): Promise<Subscriptions> =>
  toSubscriptions(strapi, await runApart(strapi, (knex) => firstStatement(strapi, knex)), () =>
    Promise.reject(new Error('There are more webhooks than one statement reads.'))
  );
