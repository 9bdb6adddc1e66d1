import type { Core } from '@strapi/strapi';
import { getOptions } from '../config';
import {
  createDetached,
  currentExecutor,
  type Detached,
  inTransaction,
} from '../database/connection';
import { withTransientRetry } from '../database/retry';
import { errorText } from '../error-text';
import type { Claimed } from '../queue/types';
import { createWorker, type Worker } from '../queue/worker';
import { applyBatch, LostLease } from './apply';
import { getRecordQueue, RESERVE_MS } from './queue';
import type { PosEventRow } from './tables';

/** A record whose own fault it is gets this many tries, then it is `failed` and waits for its owner. */
const RETRY_MS = [1_000, 5_000, 30_000, 120_000];

const POLL_SECONDS = 5;
const CONCURRENCY = 200;

/** Records that one of a batch could not be applied; its lease ends with it. */
const recordFailure = async (
  strapi: Core.Strapi,
  claimed: Claimed,
  error: unknown
): Promise<void> => {
  const row = claimed.row as unknown as PosEventRow;
  const delay = RETRY_MS[Number(row.tries)];
  const state = delay === undefined ? 'failed' : row.state;
  strapi.log.error(
    `switchboard: the POS event ${claimed.id} could not be applied: ${errorText(error)}`
  );
  await inTransaction(strapi, ({ trx }) =>
    getRecordQueue(strapi).queue.settle(trx, [
      {
        id: claimed.id,
        owner: claimed.owner,
        dueAt: delay === undefined ? null : Date.now() + delay,
        columns: { state, tries: Number(row.tries) + 1, error: errorText(error).slice(0, 250) },
      },
    ])
  );
};

/** Applies what is still held; one bad record never fails its neighbours. */
const applyAll = async (strapi: Core.Strapi, claimed: readonly Claimed[]): Promise<void> => {
  let batch = [...claimed];
  while (batch.length > 0) {
    try {
      await withTransientRetry(async () =>
        applyBatch(strapi, batch, await currentExecutor(strapi))
      );
      return;
    } catch (error) {
      if (error instanceof LostLease) {
        const { ids } = error;
        batch = batch.filter(({ id }) => !ids.has(id));
        continue;
      }
      if (batch.length === 1) {
        await recordFailure(strapi, batch[0] as Claimed, error);
        return;
      }
      for (const one of batch) await applyAll(strapi, [one]);
      return;
    }
  }
};

/** Applies what was accepted, on this node. */
export const createProcessor = (strapi: Core.Strapi, detached: Detached): Worker =>
  createWorker<Claimed>({
    name: 'switchboard POS events',
    queue: getRecordQueue(strapi).queue,
    log: strapi.log,
    detached,
    concurrency: CONCURRENCY,
    concurrencyPerGroup: CONCURRENCY,
    reserveMs: RESERVE_MS,
    maxSleepMs: POLL_SECONDS * 1000,
    // All the work is done where it is recorded, together with its batch.
    perform: async (claimed) => claimed,
    healthy: () => true,
    record: (claimed) => applyAll(strapi, claimed),
  });

const running = new WeakMap<Core.Strapi, Worker>();

/** Woken by commits, by a timer for grace periods that end, and by cron. */
export const startProcessing = (strapi: Core.Strapi): void => {
  if (!getOptions(strapi).pos.process) return;
  const worker = createProcessor(strapi, createDetached());
  running.set(strapi, worker);
  getRecordQueue(strapi).onWake(worker.wake);
  strapi.cron.add({
    // The backstop: other nodes' records, and those of a node that died.
    switchboardPosEvents: {
      task: async () => worker.wake(),
      options: { rule: `*/${POLL_SECONDS} * * * * *` },
    },
  });
  worker.wake();
};

/** Lets the batch under way commit. */
export const stopProcessing = async (strapi: Core.Strapi): Promise<void> => {
  getRecordQueue(strapi).onWake(null);
  await running.get(strapi)?.stop();
};
