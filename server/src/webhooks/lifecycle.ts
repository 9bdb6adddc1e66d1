import { createDetached, type Detached } from '../database/connection';
import { nextTurn } from '../runtime/event-loop';
import { errorText } from '../runtime/text';
import { whenLoaded } from '../runtime/background-work';
import type { ServedHandler } from '../scheduling/types';
import { removeFinishedDeliveries } from './deliveries/log';
import { announceDeliveries, DELIVERIES, getDeliveryStore } from './deliveries/store';
import { removeOldestHour } from './figures/rollups';
import { removeOldEntries } from './journal';
import {
  announceRecoveries,
  createRecoveryHandler,
  RECOVERIES,
  removeOldRecoveries,
} from './recoveries/job';
import { settleArrivedWebhooksLater } from './imported-webhooks';
import { createDeliveryHandler } from './sending/deliver';
import { HeldBack } from './sending/modules-off';
import { Sender } from './sending/send';
import type { App, Slot } from '../app';

const AT_ONCE = 500;

const endAll = async (app: App, webhooks: readonly (number | null)[]): Promise<number> => {
  let total = 0;
  for (const webhook of webhooks) {
    for (;;) {
      const ended = await getDeliveryStore(app).endLost(webhook, AT_ONCE);
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
export const endLostDeliveries = async (app: App): Promise<void> => {
  await endAll(app, await getDeliveryStore(app).queue.lostGroups());
};

const BATCH = 500;
const DAY_MS = 86_400_000;
/** The longest span of the screens, and a day for the hour that it begins in. */
const FIGURES_DAYS = 31;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

const logDays = async (app: App): Promise<number> => {
  const configured = app.options.webhooks.logDays;
  const said = await app.hooks.get('service_crm_webhook_log_days').call(configured);
  return typeof said === 'number' && Number.isFinite(said) && said > 0 ? said : configured;
};

/**
 * Removes what is older than it is kept, in small batches so that no lock lasts: hourly figures (31 days
 * at least), events of the journal, recoveries that ended, finished deliveries. Pending ones never are
 * removed; those of deleted webhooks end first. docs/contract-webhooks.md#limits
 */
const removeOld = async (app: App): Promise<void> => {
  const now = Date.now();
  const days = await logDays(app);
  const figuresBefore = now - Math.max(days, FIGURES_DAYS) * DAY_MS;
  while (await removeOldestHour(app, figuresBefore)) await pause();
  while (await removeOldEntries(app, now)) await pause();
  await removeOldRecoveries(app, days, pause);
  const ended = await endAll(app, await getDeliveryStore(app).lostWebhooks());
  if (ended > 0) app.log.info(`switchboard: ${ended} deliveries of deleted webhooks ended`);
  let removed = 0;
  for (let after: Parameters<typeof removeFinishedDeliveries>[3] = null; ;) {
    const some = await removeFinishedDeliveries(app, now - days * DAY_MS, BATCH, after);
    removed += some.removed;
    if (!some.last) break;
    after = some.last;
    await pause();
  }
  if (removed > 0) app.log.info(`switchboard: ${removed} old deliveries removed`);
};

interface Running {
  sender: Sender;
  heldBack: HeldBack;
  giveUpStart?: () => void;
}

const running = (): Slot<Running> => ({});

/** On every node, whether it sends or not: what it queues is due by the database's clock. */
const keepClock = (app: App, detached: Detached): void => {
  app.strapi.cron.add({
    switchboardClock: {
      task: () =>
        detached(async () => {
          try {
            await app.clock.sync();
          } catch (error) {
            app.log.debug(`switchboard: the database's clock was not read: ${errorText(error)}`);
          }
        }),
      options: { rule: '*/30 * * * * *' },
    },
  });
};

export const getSender = (app: App): Sender => {
  const now = app.part(running).value;
  if (!now) throw new Error('The plugin switchboard is not running.');
  return now.sender;
};

const everySeconds = (seconds: number): string =>
  seconds < 60 ? `*/${seconds} * * * * *` : `0 */${Math.max(1, Math.round(seconds / 60))} * * * *`;

const dispatch = (
  app: App,
  handler: ServedHandler,
  heldBack: HeldBack,
  detached: Detached
): void => {
  app.scheduler.serve(DELIVERIES, handler);
  const { pollSeconds } = app.options.webhooks;
  app.scheduler.serve(RECOVERIES, createRecoveryHandler(app, pollSeconds * 1000));
  app.strapi.cron.add({
    // The backstop: those that another node was asked for, or that a node was at that died.
    switchboardRecoveries: {
      task: async () => announceRecoveries(app, null),
      options: { rule: everySeconds(pollSeconds) },
    },
    // The backstop: other nodes' rows, those of a node that died, and what a transfer brought.
    switchboardDeliveries: {
      task: async () => {
        await detached(() => settleArrivedWebhooksLater(app));
        announceDeliveries(app, null);
      },
      options: { rule: everySeconds(app.options.webhooks.pollSeconds) },
    },
    // The backstop: the node that was told to switch a module on may have died at once.
    switchboardHeldBack: {
      task: async () => heldBack.release(),
      options: { rule: `${Math.floor(Math.random() * 60)} */5 * * * *` },
    },
    // A minute of its own each site, so that not all of a host's sites clean up at once.
    switchboardDeliveryRetention: {
      task: () =>
        detached(async () => {
          try {
            await removeOld(app);
          } catch (error) {
            app.log.error(`switchboard: old deliveries could not be removed: ${errorText(error)}`);
          }
        }),
      options: {
        rule: `${Math.floor(Math.random() * 60)} ${Math.floor(Math.random() * 60)} 3 * * *`,
      },
    },
  });
  announceDeliveries(app, null);
  announceRecoveries(app, null);
};

/**
 * Starts sending from this node, once the whole site has started: woken by commits, by a timer for
 * due retries, and by cron.
 */
export const startSending = (app: App): void => {
  const detached = createDetached();
  keepClock(app, detached);
  const sender = new Sender(app);
  const heldBack = new HeldBack(app, detached);
  // By the node that was told to switch, whether it sends or not.
  app.modules.onChanged(() => heldBack.release());
  if (!app.options.webhooks.dispatch) {
    app.part(running).value = { sender, heldBack };
    return;
  }
  const handler = createDeliveryHandler(app, sender, heldBack, detached);
  const giveUpStart = whenLoaded(app.strapi, () => dispatch(app, handler, heldBack, detached));
  app.part(running).value = { sender, heldBack, giveUpStart };
};

/** Lets attempts that are under way end and be recorded. Sending by hand goes on. */
export const stopSending = async (app: App): Promise<void> => {
  const now = app.part(running).value;
  now?.giveUpStart?.();
  const scheduler = app.scheduler;
  await Promise.all([DELIVERIES, RECOVERIES].map((kind) => scheduler.stop(kind)));
  await now?.heldBack.stop();
};

/** Closes the connections to receivers, once nothing is sent any more. */
export const closeSender = (app: App): void => app.part(running).value?.sender.close();
