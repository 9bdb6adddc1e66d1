import type { Core } from '@strapi/strapi';
import type { Attempt } from '../../../../../shared/contracts/webhooks';
import type { Executor } from '../../../database/connection';
import type { LeasedRows, Settlement } from '../../../database/lease-types';
import type { NextState } from '../../rules/transition';
import { appendAttempts, mayHaveMany } from '../../deliveries/attempts';
import type { LeasedDelivery } from './leased-deliveries';
import { type Line, noteEnds } from '../../deliveries/ordering';
import type { KnownManners } from '../../deliveries/limits';

/** What an attempt made of a delivery; `attempt` is appended to its log. */
export interface DeliveryOutcome {
  lease: LeasedDelivery;
  next: NextState;
  attempt: Attempt;
  /** When the attempt ended, epoch milliseconds. */
  endedAt: number;
}

/** What becomes of deliveries under a lease. */
export interface Settling {
  /** The line of a delivery, also where its webhook was given an order after the claim; null: it stands in none. */
  lineOf(lease: LeasedDelivery): Line | null;
  /**
   * Records attempts, each delivery only while its lease holds.
   * @returns the ids whose lease held; of the others nothing was written.
   */
  settle(executor: Executor, outcomes: readonly DeliveryOutcome[]): Promise<Set<number>>;
}

const toSettlement = ({ lease, next, attempt, endedAt }: DeliveryOutcome): Settlement => ({
  id: lease.id,
  owner: lease.owner,
  dueAt: next.nextAttemptAt,
  columns: {
    status: next.status,
    tries: next.tries,
    extra_tries: next.extraTries ?? 0,
    next_attempt_at: next.nextAttemptAt,
    finished_at: next.nextAttemptAt === null ? endedAt : null,
    error: next.pausedMs ? lease.delivery.error : attempt.error,
    paused_ms: lease.delivery.pausedMs + (next.pausedMs ?? 0),
  },
});

const hasMany = ({ lease: { delivery }, next, attempt }: DeliveryOutcome): boolean =>
  mayHaveMany({
    tries: next.tries,
    pausedMs: delivery.pausedMs + (next.pausedMs ?? 0),
    manual: attempt.manual,
  });

export const createSettling = (
  strapi: Core.Strapi,
  leased: LeasedRows,
  known: Pick<KnownManners, 'get'>
): Settling => {
  const isOrdered = ({ group }: LeasedDelivery): boolean => known.get(group)?.isOrdered ?? false;

  const lineOf = (lease: LeasedDelivery): Line | null =>
    lease.delivery.line ?? (isOrdered(lease) ? lease.delivery.ownLine : null);

  /**
   * The line that is written; undefined: it stays as it is. It may have been put into one since the claim,
   * which is nothing to those whose webhook has no order.
   */
  const newLine = ({ lease, next }: DeliveryOutcome): Line | null | undefined => {
    const line = lineOf(lease);
    if (line === null) return undefined;
    if (next.nextAttemptAt === null) return null;
    return isOrdered(lease) ? line : undefined;
  };

  return {
    lineOf,
    async settle(executor, outcomes) {
      const plain: Settlement[] = [];
      const ofLines: Settlement[] = [];
      const left = new Map<number, Line | null>();
      for (const outcome of outcomes) {
        const settlement = toSettlement(outcome);
        const line = newLine(outcome);
        if (line === undefined) plain.push(settlement);
        else ofLines.push({ ...settlement, columns: { ...settlement.columns, line } });
        if (line === null) left.set(outcome.lease.id, lineOf(outcome.lease));
      }
      const held = await leased.settle(executor, plain);
      for (const id of await leased.settle(executor, ofLines)) held.add(id);
      const written = outcomes.filter(({ lease }) => held.has(lease.id));
      await noteEnds(
        strapi,
        executor,
        written.map(({ lease }) => ({ webhook: lease.group, line: left.get(lease.id) ?? null }))
      );
      await appendAttempts(
        strapi,
        executor,
        written.map(({ lease, attempt }) => ({
          delivery: lease.id,
          webhook: lease.group,
          attempt,
        })),
        written.filter(hasMany).map(({ lease }) => lease.id)
      );
      return held;
    },
  };
};
