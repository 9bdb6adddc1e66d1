import type { Core } from '@strapi/strapi';
import { getOptions } from '../config';
import { getClock } from '../database/clock';
import { createDetached, type Detached } from '../database/connection';
import { getHook } from '../hooks';
import { onModulesChanged } from '../modules';
import { nextTurn } from '../runtime/event-loop';
import { errorText } from '../runtime/text';
import { whenLoaded } from '../runtime/background-work';
import { getScheduler } from '../scheduling';
import type { GroupHandler } from '../scheduling/types';
import { removeFinishedDeliveries } from './deliveries/log';
import { announceDeliveries, DELIVERIES, getDeliveryStore } from './deliveries/store';
import { createRollupFill, type RollupFill } from './figures/fill-rollups';
import { removeOldestHour } from './figures/rollups';
import { removeOldEntries } from './journal';
import {
  announceRecoveries,
  createRecoveryHandler,
  RECOVERIES,
  removeOldRecoveries,
} from './recoveries/job';
import { settleArrivedWebhooksLater } from './sending/arrivals';
import { createManualRequestHandler, MANUAL_REQUESTS } from './sending/by-hand';
import { createDeliveryHandler } from './sending/deliver';
import { createHeldBack, type HeldBack } from './sending/modules-off';
import { createSender, type Sender } from './sending/send';

const AT_ONCE = 500;

const endAll = async (
  strapi: Core.Strapi,
  webhooks: readonly (number | null)[]
): Promise<number> => {
  let total = 0;
  for (const webhook of webhooks) {
    for (;;) {
      const ended = await getDeliveryStore(strapi).endLost(webhook, AT_ONCE);
      total += ended;
      if (ended < AT_ONCE) break;
      await nextTurn();
    }
  }
  return total;
};

/**
 * Ends what waits for webhooks that are gone: a write that was open when its webhook was deleted queues for
 * it all the same, for its row is not locked by writes. To be called before somebody looks at what waits. A
 * clock would leave them waiting in the log until its next turn, for webhooks that nobody can look up.
 */
export const endLostDeliveries = async (strapi: Core.Strapi): Promise<void> => {
  await endAll(strapi, await getDeliveryStore(strapi).lostWebhooks());
};

/** The same by the whole log, for the daily retention. @returns how many ended */
const endAllLostDeliveries = async (strapi: Core.Strapi): Promise<number> =>
  endAll(strapi, await getDeliveryStore(strapi).allLostWebhooks());

const BATCH = 500;
const DAY_MS = 86_400_000;
/** What screens look back to at most, and a day for the hour that it begins in. */
const FIGURES_DAYS = 31;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

const logDays = async (strapi: Core.Strapi): Promise<number> => {
  const configured = getOptions(strapi).webhooks.logDays;
  const said = await getHook(strapi, 'service_crm_webhook_log_days').call(configured);
  return typeof said === 'number' && Number.isFinite(said) && said > 0 ? said : configured;
};

/**
 * Removes finished deliveries older than the log's days (30, or what `service_crm_webhook_log_days`
 * says), in small batches so that no lock lasts. docs/contract-webhooks.md#limits.
 * @returns how many were removed. Pending deliveries never are.
 */
const removeOldDeliveries = async (strapi: Core.Strapi, now = Date.now()): Promise<number> => {
  const days = await logDays(strapi);
  let total = 0;
  for (;;) {
    const { found, removed } = await removeFinishedDeliveries(strapi, now - days * DAY_MS, BATCH);
    total += removed;
    if (found < BATCH) return total;
    await pause();
  }
};

/** Removes recoveries that ended before the log's days, and previews of yesterday. */
const removeEndedRecoveries = async (strapi: Core.Strapi): Promise<void> =>
  removeOldRecoveries(strapi, await logDays(strapi), pause);

/** Removes hourly figures older than the log's days, or than 31 days where those are fewer; an hour at a time. */
const removeOldRollups = async (strapi: Core.Strapi, now = Date.now()): Promise<void> => {
  const days = Math.max(await logDays(strapi), FIGURES_DAYS);
  while (await removeOldestHour(strapi, now - days * DAY_MS)) await pause();
};

/** Removes what is older than the journal's days, in small batches; docs/management-api.md#the-journal. */
const removeOldJournal = async (strapi: Core.Strapi, now = Date.now()): Promise<void> => {
  while (await removeOldEntries(strapi, now)) await pause();
};

interface Running {
  sender: Sender;
  heldBack: HeldBack;
  rollupFill: RollupFill;
  giveUpStart?: () => void;
}

const running = new WeakMap<Core.Strapi, Running>();

/** On every node, whether it sends or not: what it queues is due by the database's clock. */
const keepClock = (strapi: Core.Strapi, detached: Detached): void => {
  strapi.cron.add({
    switchboardClock: {
      task: () =>
        detached(async () => {
          try {
            await getClock(strapi).sync();
          } catch (error) {
            strapi.log.debug(`switchboard: the database's clock was not read: ${errorText(error)}`);
          }
        }),
      options: { rule: '*/30 * * * * *' },
    },
  });
};

export const getSender = (strapi: Core.Strapi): Sender => {
  const now = running.get(strapi);
  if (!now) throw new Error('The plugin switchboard is not running.');
  return now.sender;
};

const everySeconds = (seconds: number): string =>
  seconds < 60 ? `*/${seconds} * * * * *` : `0 */${Math.max(1, Math.round(seconds / 60))} * * * *`;

/** Whatever ended deliveries of an ordered webhook without a word: what waits for them goes on. */
const reorderLeft = async (strapi: Core.Strapi): Promise<void> => {
  try {
    await getDeliveryStore(strapi).reorderLeft();
    announceDeliveries(strapi, null);
  } catch (error) {
    strapi.log.error(
      `switchboard: deliveries that waited for others could not be let go: ${errorText(error)}`
    );
  }
};

/** Tests and retries that somebody asked a process for that does not send. */
const serveRequests = (strapi: Core.Strapi, sender: Sender, detached: Detached): void => {
  const scheduler = getScheduler(strapi);
  scheduler.serve(MANUAL_REQUESTS, createManualRequestHandler(strapi, sender, detached));
  strapi.cron.add({
    // Each second: somebody waits for the answer.
    switchboardManualRequests: {
      task: async () => scheduler.announce(MANUAL_REQUESTS, null, getClock(strapi).now()),
      options: { rule: everySeconds(1) },
    },
  });
};

const dispatch = (
  strapi: Core.Strapi,
  handler: GroupHandler,
  { sender, heldBack, rollupFill }: Running,
  detached: Detached
): void => {
  getScheduler(strapi).serve(DELIVERIES, handler);
  serveRequests(strapi, sender, detached);
  const { pollSeconds } = getOptions(strapi).webhooks;
  getScheduler(strapi).serve(RECOVERIES, createRecoveryHandler(strapi, pollSeconds * 1000));
  strapi.cron.add({
    // The backstop: those that another node was asked for, or that a node was at that died.
    switchboardRecoveries: {
      task: async () => announceRecoveries(strapi, null),
      options: { rule: everySeconds(pollSeconds) },
    },
    // The backstop: other nodes' rows, those of a node that died, and what a transfer brought.
    switchboardDeliveries: {
      task: async () => {
        await detached(() => settleArrivedWebhooksLater(strapi));
        announceDeliveries(strapi, null);
      },
      options: { rule: everySeconds(getOptions(strapi).webhooks.pollSeconds) },
    },
    // The backstop: the node that was told to switch a module on may have died at once.
    switchboardHeldBack: {
      task: () =>
        detached(async () => {
          await heldBack.release();
          await reorderLeft(strapi);
        }),
      options: { rule: `${Math.floor(Math.random() * 60)} */5 * * * *` },
    },
    // What an earlier version recorded, once; then it does nothing.
    switchboardRollups: {
      task: () => rollupFill.run(),
      options: { rule: everySeconds(getOptions(strapi).webhooks.pollSeconds) },
    },
    // A minute of its own each site, so that not all of a host's sites clean up at once.
    switchboardDeliveryRetention: {
      task: () =>
        detached(async () => {
          try {
            await removeOldRollups(strapi);
            await removeOldJournal(strapi);
            await removeEndedRecoveries(strapi);
            const ended = await endAllLostDeliveries(strapi);
            if (ended > 0) {
              strapi.log.info(`switchboard: ${ended} deliveries of deleted webhooks ended`);
            }
            const removed = await removeOldDeliveries(strapi);
            if (removed > 0) strapi.log.info(`switchboard: ${removed} old deliveries removed`);
          } catch (error) {
            strapi.log.error(
              `switchboard: old deliveries could not be removed: ${errorText(error)}`
            );
          }
        }),
      options: {
        rule: `${Math.floor(Math.random() * 60)} ${Math.floor(Math.random() * 60)} 3 * * *`,
      },
    },
  });
  announceDeliveries(strapi, null);
  announceRecoveries(strapi, null);
};

/**
 * Starts sending from this node, once the whole site has started: woken by commits, by a timer for
 * due retries, and by cron.
 */
export const startSending = (strapi: Core.Strapi): void => {
  const detached = createDetached();
  keepClock(strapi, detached);
  const sender = createSender(strapi);
  const heldBack = createHeldBack(strapi, detached);
  const rollupFill = createRollupFill(strapi, detached);
  // By the node that was told to switch, whether it sends or not.
  onModulesChanged(strapi, () => void heldBack.release());
  if (!getOptions(strapi).webhooks.dispatch) {
    running.set(strapi, { sender, heldBack, rollupFill });
    return;
  }
  const handler = createDeliveryHandler(strapi, sender, heldBack, detached);
  const giveUpStart = whenLoaded(strapi, () =>
    dispatch(strapi, handler, { sender, heldBack, rollupFill }, detached)
  );
  running.set(strapi, { sender, heldBack, rollupFill, giveUpStart });
};

/** Lets attempts that are under way end and be recorded. Sending by hand goes on. */
export const stopSending = async (strapi: Core.Strapi): Promise<void> => {
  const now = running.get(strapi);
  now?.giveUpStart?.();
  const scheduler = getScheduler(strapi);
  await Promise.all([DELIVERIES, MANUAL_REQUESTS, RECOVERIES].map((kind) => scheduler.stop(kind)));
  await Promise.all([now?.heldBack.stop(), now?.rollupFill.stop()]);
};

/** Closes the connections to receivers, once nothing is sent any more. */
export const closeSender = (strapi: Core.Strapi): void => running.get(strapi)?.sender.close();
