import { AsyncLocalStorage } from 'node:async_hooks';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { MODULE_IDS } from '../../../shared/contracts/modules';
import type { Webhook } from '../../../shared/contracts/webhooks';
import {
  currentExecutor,
  type Executor,
  rowsOf,
  runApart,
  type Statement,
  table,
} from '../database/connection';
import { enabledModules, storedModules } from '../modules';
import { declarations, isOffered } from './catalogue';
import { toWebhook } from './serialize';
import { type WebhookRow, WEBHOOKS_TABLE } from './tables';

/** Who asked for what, as one transaction sees it. */
export interface Subscriptions {
  /** Active webhooks that asked for the event, none where its module is off. */
  subscribersOf(event: string): readonly Webhook[];
  /** Those of some events that somebody asked for. A write asks twice, with the same list. */
  wantedOf(names: readonly string[]): ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();
const NOBODY: Subscriptions = { subscribersOf: () => [], wantedOf: () => NONE };

const subscriptionsOf = (
  webhooks: readonly Webhook[],
  isSent: (event: string) => boolean
): Subscriptions => {
  const wanted = new Map<readonly string[], ReadonlySet<string>>();
  const asksFor = (event: string) => (webhook: Webhook) =>
    webhook.events.includes(event) || webhook.events.includes('*');
  return {
    subscribersOf: (event) => (isSent(event) ? webhooks.filter(asksFor(event)) : []),
    wantedOf(names) {
      const known = wanted.get(names);
      if (known) return known;
      const asked = new Set(names.filter((name) => isSent(name) && webhooks.some(asksFor(name))));
      wanted.set(names, asked);
      return asked;
    },
  };
};

/** A transaction sees one state of the webhooks, so each reads them once. */
const byTransaction = new WeakMap<object, Promise<Subscriptions>>();

/** Every write runs it; building it anew would cost as much as running it. */
const statements = new WeakMap<Core.Strapi, Statement>();

const statementOf = (strapi: Core.Strapi, executor: Executor): Statement => {
  let statement = statements.get(strapi);
  if (!statement) {
    const { sql, bindings } = table(strapi, executor, WEBHOOKS_TABLE)
      .select('*', storedModules(strapi, executor).as('modules'))
      .where({ active: true })
      .orderBy('id')
      .toSQL();
    statement = { sql, bindings: bindings as readonly Knex.RawBinding[] };
    statements.set(strapi, statement);
  }
  return statement;
};

const read = async (strapi: Core.Strapi, answer: unknown): Promise<Subscriptions> => {
  const rows = rowsOf<WebhookRow & { modules: string | null }>(answer);
  if (!rows[0]) return NOBODY;
  const enabled = enabledModules(rows[0].modules);
  if (!enabled.has('webhooks')) return NOBODY;
  // What belongs to which module matters only where one is off.
  const declared = enabled.size === MODULE_IDS.length ? {} : await declarations(strapi);
  return subscriptionsOf(rows.map(toWebhook), (event) => isOffered(declared[event], enabled));
};

/** An answer that a write's transaction may take over instead of asking itself. */
interface Ahead {
  asked: Promise<Subscriptions> | null;
  /** Milliseconds of the process's clock. */
  at: number;
}

const ahead = new AsyncLocalStorage<Ahead>();

/** An answer that is older than this is not taken: a webhook may have been made meanwhile. */
const FRESH_MS = 100;

const load = async (strapi: Core.Strapi, executor: Executor): Promise<Subscriptions> => {
  const { sql, bindings } = statementOf(strapi, executor);
  return read(strapi, await executor.raw(sql, bindings));
};

const loadApart = async (strapi: Core.Strapi): Promise<Subscriptions> =>
  read(strapi, await runApart(strapi, (knex) => statementOf(strapi, knex)));

/**
 * Asks, on a connection of its own, who subscribed, and goes on with a write that is about to open
 * its transaction: on a database server the answer is there by the time the host has checked the
 * write's data, and the write is a round trip shorter. Does nothing within a transaction, so that
 * nobody who holds a connection waits for another one.
 */
export const askAhead = <T>(strapi: Core.Strapi, work: () => T): T => {
  if (strapi.db.inTransaction()) return work();
  const asked = loadApart(strapi);
  // Should it fail, the write asks again in its transaction; perhaps nobody needs the answer.
  asked.catch(() => {});
  return ahead.run({ asked, at: performance.now() }, work);
};

const peekAhead = (): Promise<Subscriptions> | null => {
  const store = ahead.getStore();
  return store && performance.now() - store.at < FRESH_MS ? store.asked : null;
};

/** One transaction may have it: what comes after that one asks anew. */
const takeAhead = (): Promise<Subscriptions> | null => {
  const asked = peekAhead();
  const store = ahead.getStore();
  if (store) store.asked = null;
  return asked;
};

/**
 * Reads the active webhooks from the database, for the current transaction where there is one. Never
 * from memory: another node may have changed them a moment ago.
 */
export const currentSubscriptions = async (strapi: Core.Strapi): Promise<Subscriptions> => {
  const executor = await currentExecutor(strapi);
  if (!strapi.db.inTransaction()) return peekAhead() ?? load(strapi, executor);
  let subscriptions = byTransaction.get(executor);
  if (!subscriptions) {
    const asked = takeAhead();
    subscriptions = asked ? asked.catch(() => load(strapi, executor)) : load(strapi, executor);
    byTransaction.set(executor, subscriptions);
  }
  return subscriptions;
};

/** After a change of webhooks, the events to come of the same call or transaction must see it. */
export const forgetSubscriptions = async (strapi: Core.Strapi): Promise<void> => {
  takeAhead();
  if (strapi.db.inTransaction()) byTransaction.delete(await currentExecutor(strapi));
};
