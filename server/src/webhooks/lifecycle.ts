import { setTimeout as sleep } from 'node:timers/promises';
import { byClock, nextTurn, whenLoaded } from '../runtime/event-loop';
import { DAY_MS, logFailure } from '../runtime/text';
import { getDeliveryChanges } from './deliveries/changes';
import { removeFinishedDeliveries } from './deliveries/log';
import { announceDeliveries, DELIVERIES, getDeliveryStore } from './deliveries/store';
import { removeOldestHour } from './figures/rollups';
import { removeOldEntries } from './journal';
import {
  announceRecoveries,
  RECOVERIES,
  RecoveryHandler,
  removeOldRecoveries,
} from './recoveries/job';
import { settleArrivedWebhooksLater } from './imported-webhooks';
import { announcePrivateAddresses, awaitOtherNodes } from './nodes';
import { createDeliveryHandler } from './sending/deliver';
import { HeldBack } from './modules-off';
import { Sender } from './sending/send';
import { subscribersOf } from './subscriptions';
import type { App, Slot } from '../app';

const AT_ONCE = 500;

const endAll = async (app: App, webhooks: readonly (number | null)[]): Promise<number> => {
  let total = 0;
  for (const webhook of webhooks) {
    for (;;) {
      const ended = await getDeliveryChanges(app).endLost(webhook, AT_ONCE);
      total += ended;
      if (ended < AT_ONCE) break;
      await nextTurn();
    }
  }
  return total;
};

/** Ends deliveries that a write queued while their webhook was deleted. To be called before deliveries are read. */
export const endLostDeliveries = async (app: App): Promise<void> => {
  await endAll(app, await getDeliveryStore(app).queue.lostGroups());
};

/** The longest span of the screens, and a day for the hour that it begins in. */
const FIGURES_DAYS = 31;

const pause = (): Promise<void> => sleep(10);

const logDays = async (app: App): Promise<number> => {
  const configured = app.options.webhooks.logDays;
  const said = await app.hooks.get('service_crm_webhook_log_days').call(configured);
  return typeof said === 'number' && Number.isFinite(said) && said > 0 ? said : configured;
};

/**
 * Removes expired data in small batches, so that no lock lasts: hourly figures (at least 31 days), journal, ended
 * recoveries, finished deliveries. Pending ones stay; those of deleted webhooks end first.
 * docs/contract-webhooks.md#limits
 */
const removeOld = async (app: App): Promise<void> => {
  const now = Date.now();
  const days = await logDays(app);
  const figuresBefore = now - Math.max(days, FIGURES_DAYS) * DAY_MS;
  while (await removeOldestHour(app, figuresBefore)) await pause();
  while (await removeOldEntries(app, now)) await pause();
  await removeOldRecoveries(app, days, pause);
  const ended = await endAll(app, await getDeliveryChanges(app).lostWebhooks());
  if (ended > 0) app.log.info(`switchboard: ${ended} deliveries of deleted webhooks ended`);
  const removed = await removeFinishedDeliveries(app, now - days * DAY_MS, pause);
  if (removed > 0) app.log.info(`switchboard: ${removed} old deliveries removed`);
};

interface Running {
  sender: Sender;
  heldBack: HeldBack;
  /** End the wait for the whole site's start, for a site that is stopped before. */
  giveUps: (() => void)[];
  isStopped?: true;
}

const running = (): Slot<Running> => ({});

export const getSender = (app: App): Sender => {
  const now = app.part(running).value;
  if (!now) throw new Error('The plugin switchboard is not running.');
  return now.sender;
};

const everySeconds = (seconds: number): string =>
  seconds < 60 ? `*/${seconds} * * * * *` : `0 */${Math.max(1, Math.round(seconds / 60))} * * * *`;

const dispatch = (app: App, { sender, heldBack }: Running): void => {
  const { detached } = app;
  app.scheduler.serve(DELIVERIES, createDeliveryHandler(app, sender, heldBack));
  const { pollSeconds } = app.options.webhooks;
  app.scheduler.serve(RECOVERIES, new RecoveryHandler(app, pollSeconds * 1000));
  const often = everySeconds(pollSeconds);
  const [second, minute] = [Math.floor(Math.random() * 60), Math.floor(Math.random() * 60)];
  const lookAll = async (): Promise<void> => {
    await detached(() => settleArrivedWebhooksLater(app));
    announceDeliveries(app, null);
  };
  const failed = logFailure(app, 'old deliveries could not be removed');
  byClock(app.strapi, {
    // The backstop: those that another node was asked for, or that a node was at that died.
    switchboardRecoveries: [often, () => announceRecoveries(app, null)],
    // The backstop: other nodes' rows, those of a node that died, and what a transfer brought.
    switchboardDeliveries: [often, lookAll],
    // The fallback: the node that switched a module on may have crashed right away.
    switchboardHeldBack: [`${second} */5 * * * *`, () => heldBack.release()],
    // A minute of its own each site, so that not all of a host's sites clean up at once.
    switchboardDeliveryRetention: [
      `${second} ${minute} 3 * * *`,
      () => detached(() => removeOld(app)).catch(failed),
    ],
  });
  announceDeliveries(app, null);
  announceRecoveries(app, null);
};

/** Starts sending once the whole site has started: woken by commits, by a timer for retries, and by cron. */
export const startSending = (app: App): void => {
  const failed = logFailure(app, "the database's clock was not read", 'debug');
  byClock(app.strapi, {
    // On every node, whether it sends or not: what it queues is due by the database's clock.
    switchboardClock: ['*/30 * * * * *', () => app.detached(() => app.clock.sync()).catch(failed)],
  });
  const sender = new Sender(app);
  const heldBack = new HeldBack(app);
  // By the node that switched it, whether or not it sends.
  app.modules.onChange({
    changing: () => subscribersOf(app).forget(),
    changed: () => heldBack.release(),
    answering: () => awaitOtherNodes(app),
  });
  const now: Running = { sender, heldBack, giveUps: [announcePrivateAddresses(app)] };
  app.part(running).value = now;
  if (!app.options.webhooks.dispatch) return;
  now.giveUps.push(whenLoaded(app.strapi, () => dispatch(app, now)));
};

/** Lets attempts that are under way end and be recorded. */
export const stopSending = async (app: App): Promise<void> => {
  const now = app.part(running).value;
  if (now) now.isStopped = true;
  now?.giveUps.forEach((giveUp) => giveUp());
  await Promise.all([DELIVERIES, RECOVERIES].map((kind) => app.scheduler.stop(kind)));
  await now?.heldBack.stop();
};

/** True if this process begins no more attempts, because its site is about to end. */
export const hasStopped = (app: App): boolean => app.part(running).value?.isStopped ?? false;

/** Closes the connections to receivers, when sending has ended. */
export const closeSender = (app: App): void => app.part(running).value?.sender.close();
