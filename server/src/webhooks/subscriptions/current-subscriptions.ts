import type { Core } from '@strapi/strapi';
import { currentExecutor, type Executor } from '../../database/connection';
import { loadSubscriptions, loadSubscriptionsApart, type Subscriptions } from '../subscriptions';

/** Counts the changes of webhooks on this node: what was read before the last one is out of date. */
let revision = 0;

/** After a change of webhooks: the events to come of the same call or transaction must see it. */
export const forgetSubscriptions = (): void => {
  revision += 1;
};

/** Subscriptions that were asked for before a transaction, for that transaction to take over. */
export interface PrefetchedSubscriptions {
  readonly events: readonly string[];
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
export const prefetchSubscriptions = (
  strapi: Core.Strapi,
  events: readonly string[]
): PrefetchedSubscriptions => {
  const answer = loadSubscriptionsApart(strapi, events);
  // Should it fail, the write asks again in its transaction; perhaps nobody needs the answer.
  answer.catch(() => {});
  return { events, answer, revision, at: performance.now() };
};

const freshAnswer = (
  prefetched: PrefetchedSubscriptions | null,
  events: readonly string[]
): Promise<Subscriptions> | null =>
  prefetched?.revision === revision &&
  performance.now() - prefetched.at < FRESH_MS &&
  events.every((event) => prefetched.events.includes(event))
    ? prefetched.answer
    : null;

/** What a transaction has asked already. */
interface Answers {
  revision: number;
  known: { events: ReadonlySet<string>; answer: Promise<Subscriptions> }[];
}

/** A transaction reads them once for each kind of events, however many events it publishes. */
const byTransaction = new WeakMap<Executor, Answers>();

const answersOf = (executor: Executor): Answers => {
  let answers = byTransaction.get(executor);
  if (answers?.revision !== revision) {
    answers = { revision, known: [] };
    byTransaction.set(executor, answers);
  }
  return answers;
};

/**
 * Who subscribed to these events, as the current transaction sees it where there is one. It comes
 * from the database and never from memory: another node may have changed webhooks a moment ago.
 * @param prefetched is used instead, while it is fresh, and by one transaction only
 */
export const currentSubscriptions = async (
  strapi: Core.Strapi,
  events: readonly string[],
  prefetched: PrefetchedSubscriptions | null = null
): Promise<Subscriptions> => {
  const executor = await currentExecutor(strapi);
  const ahead = freshAnswer(prefetched, events);
  const asked = (ahead && prefetched?.events) ?? events;
  const ask = () => loadSubscriptions(strapi, executor, asked);
  if (!strapi.db.inTransaction()) return ahead?.catch(ask) ?? ask();

  const { known } = answersOf(executor);
  const same = known.find((one) => events.every((event) => one.events.has(event)));
  if (same) return same.answer;
  const answer = ahead?.catch(ask) ?? ask();
  if (prefetched && ahead) prefetched.answer = null;
  known.push({ events: new Set(asked), answer });
  return answer;
};
