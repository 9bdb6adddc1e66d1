import type { Core } from '@strapi/strapi';
import type { DeliveryStatus } from '../../../../../shared/contracts/webhooks';
import { currentExecutor } from '../../../database/connection';
import { inRetriedTransaction } from '../../../database/retry';
import type { LeasedRow, LeasedRows } from '../../../database/lease-types';
import type { Lease } from '../../../scheduling/types';
import type { DeliveryRow } from '../../tables';
import { lineOfRow, noteEnds } from '../../deliveries/ordering';
import { readBodies } from '../../deliveries/messages';

/** A delivery, as an attempt has to know it. */
export interface QueuedDelivery {
  id: number;
  deliveryId: string;
  event: string;
  body: string;
  status: DeliveryStatus;
  /** Attempts made so far. */
  tries: number;
  /** Those of them that used up nothing of the schedule. */
  extraTries: number;
  /** When its next try is due by the schedule, epoch milliseconds; null: it has none. */
  nextAttemptAt: number | null;
  /** By how much its receiver has put it off so far, in milliseconds. */
  pausedMs: number;
  /** Why the last attempt that counts failed. */
  error: string | null;
  isTest: boolean;
  /** Of the record whose deliveries go one after the other; null: it waits for none. */
  line: string | null;
  /** The line that it would stand in, had its webhook an order; null: it is about no record. */
  ownLine: string | null;
  /** It is an event of the journal, sent later. */
  replayed: boolean;
}

export interface LeasedDelivery extends Lease {
  delivery: QueuedDelivery;
}

/** The cause of a delivery whose message somebody has deleted. */
const BODY_MISSING = 'body_missing';

const toLeased = ({ row, ...lease }: LeasedRow, body: string): LeasedDelivery => {
  const { document_id, event, status, tries, is_test, ...found } = row as unknown as DeliveryRow;
  return {
    ...lease,
    delivery: {
      id: lease.id,
      deliveryId: document_id,
      event,
      body,
      status,
      tries: Number(tries),
      extraTries: Number(found.extra_tries),
      nextAttemptAt: found.next_attempt_at === null ? null : Number(found.next_attempt_at),
      pausedMs: Number(found.paused_ms),
      error: found.error,
      isTest: Boolean(is_test),
      line: found.line,
      ownLine: lineOfRow({ status, is_test, ...found }),
      replayed: Boolean(found.replayed),
    },
  };
};

/** Ends what nothing is left of to send: else it would be taken again and again. */
const endWithoutBody = async (
  strapi: Core.Strapi,
  rows: LeasedRows,
  lost: readonly LeasedRow[]
): Promise<void> => {
  const ids = lost.map(({ id }) => id).join(', ');
  strapi.log.error(`switchboard: the message of these deliveries is gone: ${ids}`);
  const columns = {
    status: 'failed',
    next_attempt_at: null,
    finished_at: rows.now(),
    error: BODY_MISSING,
    line: null,
  };
  await inRetriedTransaction(strapi, async ({ trx }) => {
    await rows.settle(
      trx,
      lost.map(({ id, owner }) => ({ id, owner, dueAt: null, columns }))
    );
    const lines = lost.map(({ group, row }) => ({
      webhook: group,
      line: (row as unknown as DeliveryRow).line,
    }));
    await noteEnds(strapi, trx, lines);
  });
};

/** Rows that were claimed, with what they send. Those whose message is gone end as failed. */
export const toLeasedDeliveries = async (
  strapi: Core.Strapi,
  rows: LeasedRows,
  claimed: readonly LeasedRow[]
): Promise<LeasedDelivery[]> => {
  const found = claimed.map(({ row }) => row as unknown as DeliveryRow);
  const bodies = await readBodies(strapi, await currentExecutor(strapi), found);
  const lost = claimed.filter((_row, at) => bodies[at] === null);
  if (lost.length > 0) await endWithoutBody(strapi, rows, lost);
  return claimed.flatMap((row, at) => {
    const body = bodies[at];
    return typeof body === 'string' ? [toLeased(row, body)] : [];
  });
};
