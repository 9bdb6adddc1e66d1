import type { Subject, Webhook } from '../../../../../shared/contracts/webhooks';
import type { Executor } from '../../../database/connection';
import type { CappedWorkStore, GroupLimits } from '../../../scheduling/types';
import type { LeasedDelivery } from './leased-deliveries';
import type { SharedMessage } from '../../deliveries/messages';
import type { DeliveryOutcome } from './settling';

/** A delivery that is about to be queued. Times are epoch milliseconds. */
export interface NewDelivery {
  /** Its id for the receiver: a UUID. */
  deliveryId: string;
  webhook: number;
  /** The webhook's address at this moment, for the log. */
  url: string;
  event: string;
  /** The frozen body of every attempt, or the message that it shares with others. */
  body: string | SharedMessage;
  at: number;
  isTest: boolean;
  /** The record that its event is about, as it is now. */
  subject?: Subject | null;
  /** Whether it waits for the earlier ones of its record. */
  isOrdered?: boolean;
  /** It is an event of the journal, sent later. */
  replayed?: boolean;
}

/** The cause of a delivery that an import brought as pending. */
export const IMPORTED = 'imported';
/** The cause of one that somebody has ended. */
export const SKIPPED = 'skipped';

/** Why nothing was done with a delivery by hand. */
export type HandRefusal = 'absent' | 'finished' | 'held';
export interface Freed {
  webhook: number;
}

/** The cause of a delivery that somebody did not want to be sent any more. */
export const DISCARDED = 'discarded';

/** The cause of a delivery whose webhook is gone. */
export const WEBHOOK_DELETED = 'webhook_deleted';

/**
 * The queue of deliveries: with `delivery-log.ts` the only code that knows their rows. Groups are
 * webhooks; those that are switched off have nothing due.
 */
export interface DeliveryStore extends CappedWorkStore<LeasedDelivery> {
  /**
   * Queues deliveries in `executor`'s transaction: they exist if and only if it commits. A message that
   * they share is stored with the first of them.
   */
  insert(executor: Executor, deliveries: readonly NewDelivery[]): Promise<void>;

  /** Logs a test, under a lease from the start, so that nobody sends it a second time. */
  insertLeased(delivery: NewDelivery): Promise<LeasedDelivery>;

  /** Takes one, due or not, finished or not; `held` while an attempt of it is under way. */
  claimOne(id: number): Promise<LeasedDelivery | 'held' | 'absent'>;

  /**
   * Records attempts, each delivery only while its lease holds.
   * @returns the ids whose lease held; of the others nothing was written.
   */
  settle(executor: Executor, outcomes: readonly DeliveryOutcome[]): Promise<Set<number>>;

  /** The line of a delivery that was claimed, also where its webhook was given an order since; null: it stands in none. */
  lineOf(lease: LeasedDelivery): string | null;

  /** What a webhook has of its own, as this process last heard. */
  limitsOf(webhook: number): GroupLimits;

  /** Says how a webhook is now that was changed, after the commit: this process then claims of it as it wants it. */
  heard(webhook: Webhook): void;

  /** Says how a webhook was when it was read (`performance.now()`), however long ago. */
  mentioned(webhook: Webhook, readAt: number): void;

  /** Says that a webhook is to be left alone until then (epoch milliseconds), after the commit. */
  paused(webhook: number, until: number): void;

  /** Has a listener told when more of a webhook may be claimed that its rate held back; epoch milliseconds. */
  onAgain(listener: (webhook: number, at: number) => void): void;

  /**
   * Ends a delivery that waits, as `failed` by hand, for which nothing counts.
   * @returns why it cannot be; NotFoundError (404) is the caller's
   */
  skip(id: number): Promise<HandRefusal | Freed>;

  /** Has later deliveries of its record no longer wait for it; its schedule stays. */
  letPass(id: number): Promise<HandRefusal | Freed>;

  /**
   * Brings what waits into line with a webhook's new order: when it answers, what had been queued
   * before goes by it.
   */
  reorder(webhook: Webhook): Promise<void>;

  /** The same for what a process left that died, of all webhooks. */
  reorderLeft(): Promise<void>;

  /** Removes what is kept of a webhook that is gone, but for its log. */
  forget(webhook: number): Promise<void>;

  /** Puts leased deliveries aside until `bringBack`: due for nobody, their schedule as it was. */
  putAside(leases: readonly LeasedDelivery[]): Promise<void>;

  /** Webhooks with deliveries that are put aside. */
  webhooksAside(): Promise<number[]>;

  /** The events of a webhook's deliveries that are put aside. */
  eventsAside(webhook: number): Promise<string[]>;

  /** Makes up to `limit` deliveries of these events due again. @returns how many there were. */
  bringBack(webhook: number, events: readonly string[], limit: number): Promise<number>;

  /**
   * Ends up to `limit` pending deliveries of these webhooks that an import brought, or that belong to
   * another site: the original did, or will. @returns how many there were.
   */
  endImported(webhooks: readonly number[], limit: number): Promise<number>;

  /** Webhooks that are gone and of which deliveries wait, as the queue sees it at little cost. */
  lostWebhooks(): Promise<number[]>;

  /** The same by the whole log, those included that are due for nobody; null: the delivery names no webhook. */
  allLostWebhooks(): Promise<(number | null)[]>;

  /**
   * Ends up to `limit` pending deliveries of a webhook that is gone, tests too, but for those whose attempt
   * is under way. @returns how many there were.
   */
  endLost(webhook: number | null, limit: number): Promise<number>;

  /**
   * Ends up to `limit` pending deliveries of a webhook without an attempt, and without counting for
   * anything; tests are left out.
   * @param force those, too, whose attempt is under way: what comes of it is not recorded
   * @returns how many ended, and whether there are more
   */
  discard(
    webhook: number,
    limit: number,
    force: boolean
  ): Promise<{ ended: number; isLeft: boolean }>;
}
