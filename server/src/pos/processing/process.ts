import type { Core } from '@strapi/strapi';
import { getOptions } from '../../config';
import { currentExecutor, inTransaction } from '../../database/connection';
import { isInfrastructureFault } from '../../database/errors/faults';
import { withTransientRetry } from '../../database/retry';
import { inParts } from '../../database/statement-size';
import { measures } from '../../observability/measures';
import { inSpan } from '../../observability/spans';
import { debugEach, debugLog } from '../../runtime/debug-log';
import { errorText } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { whenLoaded } from '../../runtime/when-loaded';
import { getScheduler } from '../../scheduling';
import { createBatchWorker } from '../../scheduling/batch-worker';
import type { GroupHandler } from '../../scheduling/types';
import { claimedLine, failedLine, unappliedLine } from '../debug-lines';
import { stateAfter } from '../rules/states';
import { startComparing, stopComparing, wakeComparing } from '../closings/due-closings';
import { startAttaching, stopAttaching, wakeAttaching } from '../customers';
import { keepFilling, stopFilling } from '../money/fill-figures';
import { tellOfSilentTills } from '../silence';
import { applyBatch, LostLease } from './apply';
import { wakeForProducts, wakeKnown } from './waits';
import { getRecordStore, LEASE_MS, type LeasedRecord, RECORDS, RESERVE_MS } from './record-store';

/** A record whose own fault it is gets this many tries, then it is `failed` and waits for its owner. */
const RETRY_MS = [1_000, 5_000, 30_000, 120_000];

const POLL_SECONDS = 5;
const SILENCE_SECONDS = 15;
/** How often what waits for something that is known is looked for; see `wakeKnown`. */
const KNOWN_MINUTES = 10;
/** What is applied in one transaction: so many records of usual size, a few of the largest. */
const BATCH = 200;
const BATCH_BYTES = 1024 * 1024;

/** Records that one of a batch could not be applied; its lease ends with it. */
const recordFailure = async (
  strapi: Core.Strapi,
  lease: LeasedRecord,
  error: unknown
): Promise<void> => {
  const store = getRecordStore(strapi);
  const delay = RETRY_MS[lease.tries];
  const dueAt = delay === undefined ? null : store.now() + delay;
  strapi.log.error(
    `switchboard: the POS event ${lease.id} could not be applied: ${errorText(error)}`
  );
  const tries = lease.tries + 1;
  const held = await inTransaction(strapi, async ({ trx }) => {
    // As it is now: since it was claimed, its group may have been settled, and it with them.
    const now = await store.lockState(trx, lease.id);
    if (!now) return false;
    const state = delay === undefined ? stateAfter(now, 'failed') : now;
    const outcome = {
      state,
      tries,
      error: errorText(error).slice(0, 250),
      // Its try is to come, whatever its group comes to meanwhile.
      woken_by: delay === undefined ? null : ('retry' as const),
    };
    const settled = await store.settle(trx, [{ lease, dueAt, outcome }]);
    return settled.has(lease.id);
  });
  if (held) debugLog(strapi)?.(failedLine(lease.id, tries, dueAt));
};

/** Applies what is still held; one bad record never fails its neighbours. */
const applyAll = async (strapi: Core.Strapi, claimed: readonly LeasedRecord[]): Promise<void> => {
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
        debugEach(strapi, ids, (id) => unappliedLine(id, 'lease lost'));
        batch = batch.filter(({ id }) => !ids.has(id));
        continue;
      }
      // Nobody's fault: it counts no try. The worker keeps the batch and comes again.
      if (isInfrastructureFault(error)) throw error;
      if (batch.length === 1) {
        await recordFailure(strapi, batch[0] as LeasedRecord, error);
        return;
      }
      for (const one of batch) {
        await nextTurn();
        await applyAll(strapi, [one]);
      }
      return;
    }
  }
};

/** Applies what was accepted, on this node. */
export const createProcessor = (strapi: Core.Strapi): GroupHandler => {
  const store = getRecordStore(strapi);
  return createBatchWorker<LeasedRecord>({
    name: RECORDS,
    store,
    log: strapi.log,
    claimAtOnce: BATCH,
    reserveMs: RESERVE_MS,
    pollMs: POLL_SECONDS * 1000,
    // Nothing has been done that could be forgotten: after a lease they are simply applied later.
    keepMs: 2 * LEASE_MS,
    announce: store.announce,
    async consume(leases) {
      const limits = { count: BATCH, bytes: BATCH_BYTES };
      for (const part of inParts(leases, limits, ({ size }) => size)) {
        const attributes = { 'switchboard.records': part.length };
        await inSpan('switchboard.apply', attributes, () => applyAll(strapi, part));
        measures().applied.add(part.length);
      }
    },
    onClaimed: (leases) => debugEach(strapi, leases, claimedLine),
    onLate: (leases) => debugEach(strapi, leases, ({ id }) => unappliedLine(id, 'no time left')),
  });
};

/** A node that was killed may have made something known and told nobody. */
const lookForKnown = async (strapi: Core.Strapi, { products }: { products: boolean }) => {
  try {
    await wakeKnown(strapi);
    if (products) await wakeForProducts(strapi);
  } catch (error) {
    strapi.log.warn(`switchboard: waiting events were not looked at again: ${errorText(error)}`);
  }
};

const starts = new WeakMap<Core.Strapi, () => void>();
const looks = new WeakMap<Core.Strapi, Promise<void>>();

/**
 * Starts once the whole site has: woken by commits, by a timer for grace periods that end, and by
 * cron.
 */
export const startProcessing = (strapi: Core.Strapi): void => {
  if (!getOptions(strapi).pos.process) return;
  const handler = createProcessor(strapi);
  const { announce } = getRecordStore(strapi);
  const giveUpStart = whenLoaded(strapi, () => {
    getScheduler(strapi).serve(RECORDS, handler);
    strapi.cron.add({
      // The backstop: other nodes' records, and those of a node that died.
      switchboardPosEvents: {
        task: async () => {
          announce();
          wakeAttaching(strapi);
          wakeComparing(strapi);
        },
        options: { rule: `*/${POLL_SECONDS} * * * * *` },
      },
      switchboardSilentTills: {
        task: () => tellOfSilentTills(strapi),
        options: { rule: `*/${SILENCE_SECONDS} * * * * *` },
      },
      switchboardKnownValues: {
        task: () => lookForKnown(strapi, { products: false }),
        options: { rule: `0 */${KNOWN_MINUTES} * * * *` },
      },
    });
    announce();
    looks.set(strapi, lookForKnown(strapi, { products: true }));
    keepFilling(strapi);
    startAttaching(strapi);
    startComparing(strapi);
  });
  starts.set(strapi, giveUpStart);
};

/** Lets the batch under way commit. */
export const stopProcessing = async (strapi: Core.Strapi): Promise<void> => {
  starts.get(strapi)?.();
  await Promise.all([
    looks.get(strapi),
    stopFilling(strapi),
    stopAttaching(strapi),
    stopComparing(strapi),
  ]);
  await getScheduler(strapi).stop(RECORDS);
};
