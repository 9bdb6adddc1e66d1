import type { Core } from '@strapi/strapi';
import { getClock } from '../../database/clock';
import { errorText } from '../../runtime/text';
import { getScheduler } from '../../scheduling';
import type { GroupHandler } from '../../scheduling/types';
import { createDeliveriesSource } from './deliveries-source';
import { createJournalSource } from '../recoveries/sources';
import { createRecoveryJob } from '../recoveries/job';
import { dueRecoveries, removeRecoveries } from '../recoveries/store';

/** The kind of work that recoveries are, as the scheduler and its log lines name it. */
export const RECOVERIES = 'switchboard recoveries';

const DAY_MS = 86_400_000;
/** A preview that nobody has started by then. */
const PREVIEW_DAYS = 1;
/** At once on a node. */
const TURNS = 4;
/** When a recovery is looked at again whose look failed. */
const FAILED_AGAIN_MS = 5000;

/** Says that a recovery, or any (`null`), may be looked at now. For the moment after a commit; never throws. */
export const announceRecoveries = (strapi: Core.Strapi, id: number | null): void =>
  getScheduler(strapi).announce(RECOVERIES, id, getClock(strapi).now());

/**
 * Works on recoveries from this node. Any number of nodes may: each look is taken by one of them, and
 * changes all it changes in one transaction.
 */
export const createRecoveryHandler = (strapi: Core.Strapi, pollMs: number): GroupHandler => {
  const job = createRecoveryJob(strapi, {
    deliveries: createDeliveriesSource(strapi),
    journal: createJournalSource(strapi),
  });
  const underWay = new Set<Promise<unknown>>();
  /** Looks that were begun here and that nobody waits for, by their recoveries. */
  const begun = new Map<number, Promise<void>>();
  /** When recoveries are tried again whose look failed, epoch milliseconds. */
  const restUntil = new Map<number, number>();
  const now = () => getClock(strapi).now();
  let stopping = false;

  const look = async (id: number): Promise<number | null> => {
    if (stopping) return null;
    const looking = job.look(id);
    const settled = looking.catch(() => undefined).finally(() => underWay.delete(settled));
    underWay.add(settled);
    return looking;
  };

  /** Looks at a recovery, and says when it is to be looked at again. */
  const lookApart = async (id: number): Promise<void> => {
    let again: number | null = null;
    try {
      again = await look(id);
      restUntil.delete(id);
    } catch (error) {
      strapi.log.error(`switchboard: recovery ${id} could not go on: ${errorText(error)}`);
      again = now() + FAILED_AGAIN_MS;
      restUntil.set(id, again);
    } finally {
      begun.delete(id);
    }
    if (again !== null) getScheduler(strapi).announce(RECOVERIES, null, again);
  };

  return {
    pollMs,
    now,
    async dueTimes() {
      await getClock(strapi).sync();
      const due = await dueRecoveries(strapi);
      for (const [id, at] of due) due.set(id, Math.max(at, restUntil.get(id) ?? 0));
      return due;
    },
    // One that fails, or that has a million deliveries to collect, keeps no other waiting.
    async work(groups) {
      for (const id of groups) {
        while (begun.size >= TURNS) await Promise.race(begun.values());
        if (!begun.has(id)) begun.set(id, lookApart(id));
      }
      return null;
    },
    takeTurn: look,
    turns: { groups: TURNS, nodes: 1 },
    async stop() {
      stopping = true;
      job.stop();
      await Promise.all(underWay);
    },
  };
};

/** Removes previews that nobody started, and recoveries that ended before the log's days. */
export const removeOldRecoveries = (
  strapi: Core.Strapi,
  logDays: number,
  pause: () => Promise<void>,
  now = Date.now()
): Promise<void> =>
  removeRecoveries(
    strapi,
    { previews: now - PREVIEW_DAYS * DAY_MS, ended: now - logDays * DAY_MS },
    pause
  );
