import type { Core } from '@strapi/strapi';
import { getOptions } from '../config';
import { createDatabaseQueue } from '../queue/database-engine';
import type { WorkQueue } from '../queue/types';
import { DELIVERIES_TABLE, WEBHOOKS_TABLE } from './tables';

/** Left of a lease beyond an attempt's deadline: time for slow hooks and for recording. */
const LEASE_MARGIN_MS = 20_000;
/** Less than this beyond the deadline left: the attempt is not started. */
const RESERVE_MARGIN_MS = 5_000;

/** How long a node may hold a delivery, and how much of that an attempt needs, in milliseconds. */
export const leaseTimes = (timeoutMs: number): { leaseMs: number; reserveMs: number } => ({
  leaseMs: timeoutMs + LEASE_MARGIN_MS,
  reserveMs: timeoutMs + RESERVE_MARGIN_MS,
});

/** The queue of deliveries, and the bell of the dispatcher that serves it. */
export interface Outbox {
  queue: WorkQueue;
  wake(): void;
  /** The dispatcher of this process, once it runs. */
  onWake(listener: (() => void) | null): void;
}

const outboxes = new WeakMap<Core.Strapi, Outbox>();

const createOutbox = (strapi: Core.Strapi): Outbox => {
  let listener: (() => void) | null = null;
  return {
    queue: createDatabaseQueue(strapi, {
      tableName: DELIVERIES_TABLE,
      groupColumn: 'webhook_id',
      columns: {
        status: 'text',
        tries: 'integer',
        next_attempt_at: 'bigint',
        finished_at: 'bigint',
        error: 'text',
        attempts: 'text',
      },
      groups: { tableName: WEBHOOKS_TABLE, where: { active: true } },
      leaseMs: leaseTimes(getOptions(strapi).webhooks.timeoutMs).leaseMs,
    }),
    wake: () => listener?.(),
    onWake(next) {
      listener = next;
    },
  };
};

export const getOutbox = (strapi: Core.Strapi): Outbox => {
  let outbox = outboxes.get(strapi);
  if (!outbox) {
    outbox = createOutbox(strapi);
    outboxes.set(strapi, outbox);
  }
  return outbox;
};
