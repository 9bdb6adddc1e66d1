import type { Core } from '@strapi/strapi';
import { currentExecutor, type Executor } from '../../database/connection';
import { loadSubscriptions, loadSubscriptionsApart, type Subscriptions } from './subscriptions';

/** Counts the changes of webhooks on this node: what was read before the last one is out of date. */
let revision = 0;

/** After a change of webhooks: the events to come of the same call or transaction must see it. */
export const forgetSubscriptions = (): void => {
  revision += 1;
};

/** Subscriptions that were asked for before a transaction, for that transaction to take over. */
export interface PrefetchedSubscriptions {
  /** null once a transaction has taken it. */
  answer: Promise<Subscriptions> | null;
  readonly revision: number;
  /** When it was asked for, in milliseconds of the process's clock. */
  readonly at: number;
}

/** What was asked for longer ago is not used: another node may have changed webhooks meanwhile. */
const FRESH_MS = 100;

/**
 * Asks who subscribed on a connection of its own, for a write that is about to open its transaction:
 * on a database server the answer is there by the time the host has checked the write's data, and
 * the write is a round trip shorter. Never within a transaction: who holds a connection must not
 * wait for another one.
 */
export const prefetchSubscriptions = (strapi: Core.Strapi): PrefetchedSubscriptions => {
  const answer = loadSubscriptionsApart(strapi);
  // Should it fail, the write asks again in its transaction; perhaps nobody needs the answer.
  answer.catch(() => {});
  return { answer, revision, at: performance.now() };
};

const freshAnswer = (prefetched: PrefetchedSubscriptions | null): Promise<Subscriptions> | null =>
  prefetched?.revision === revision && performance.now() - prefetched.at < FRESH_MS
    ? prefetched.answer
    : null;

/** A transaction reads them once, however many events it publishes. */
const byTransaction = new WeakMap<Executor, { answer: Promise<Subscriptions>; revision: number }>();

/**
 * Who subscribed, as the current transaction sees it where there is one. It comes from the database
 * and never from memory: another node may have changed webhooks a moment ago.
 * @param prefetched is used instead, while it is fresh, and by one transaction only
 */
export const currentSubscriptions = async (
  strapi: Core.Strapi,
  prefetched: PrefetchedSubscriptions | null = null
): Promise<Subscriptions> => {
  const executor = await currentExecutor(strapi);
  const ask = () => loadSubscriptions(strapi, executor);
  if (!strapi.db.inTransaction()) return freshAnswer(prefetched)?.catch(ask) ?? ask();

  const known = byTransaction.get(executor);
  if (known?.revision === revision) return known.answer;
  const answer = freshAnswer(prefetched)?.catch(ask) ?? ask();
  if (prefetched) prefetched.answer = null;
  byTransaction.set(executor, { answer, revision });
  return answer;
};
