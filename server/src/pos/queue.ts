import type { Core } from '@strapi/strapi';
import { createDetached, type Detached } from '../database/connection';
import { createDatabaseQueue } from '../queue/database-engine';
import type { WorkQueue } from '../queue/types';
import { CONNECTIONS_TABLE, POS_EVENTS_TABLE } from './tables';

/** A batch is applied in well under a second; a node that is gone for this long is gone. */
export const LEASE_MS = 30_000;
/** Less than this left of a lease: the record is left to lapse and comes back. */
export const RESERVE_MS = 10_000;

/** The queue of accepted records, and the bell of the processor that serves it. */
export interface RecordQueue {
  queue: WorkQueue;
  /** For work that a commit starts and that must not inherit its finished transaction. */
  detached: Detached;
  wake(): void;
  /** The processor of this process, once it runs. */
  onWake(listener: (() => void) | null): void;
}

const queues = new WeakMap<Core.Strapi, RecordQueue>();

const createRecordQueue = (strapi: Core.Strapi): RecordQueue => {
  let listener: (() => void) | null = null;
  return {
    // Made while the site boots, see `bootstrap` in index.ts.
    detached: createDetached(),
    queue: createDatabaseQueue(strapi, {
      tableName: POS_EVENTS_TABLE,
      groupColumn: 'connection_id',
      columns: {
        state: 'text',
        settled_flags: 'text',
        processed_at: 'bigint',
        location_id: 'integer',
        items: 'text',
        simulated: 'text',
        tries: 'integer',
        error: 'text',
      },
      groups: { tableName: CONNECTIONS_TABLE },
      leaseMs: LEASE_MS,
    }),
    wake: () => listener?.(),
    onWake(next) {
      listener = next;
    },
  };
};

export const getRecordQueue = (strapi: Core.Strapi): RecordQueue => {
  let queue = queues.get(strapi);
  if (!queue) {
    queue = createRecordQueue(strapi);
    queues.set(strapi, queue);
  }
  return queue;
};
