import { type DatabaseKind, runSql } from '../../support/databases';
import type { RedisServer } from '../../support/redis';
import { type Site, startSite } from '../../support/site';
import { sleep, waitFor } from '../../support/wait';
import { createWebhook, updateWebhook } from '../../api/delivery-support';
import { type Cluster, startCluster } from './cluster';
import { type CountingReceiver, type Manner, startCountingReceiver } from './counting-receiver';
import { heldNow, type HeldThen } from './held';
import { LOAD, startLoad, startTrickle, TRICKLE } from './load';
import { watchRedis } from './redis-watch';

/** How large a run is. */
export interface Extent {
  deliveries: number;
  kills: number;
  flushes: number;
  redisAwayMs: number;
}

const [HANGING, FAILING, LOADED] = [2, 5, 50];
const times = (count: number, manner: Manner): Manner[] => Array<Manner>(count).fill(manner);

/** The webhooks of the load: some hang, some fail, the others are well; and the trickle's own. */
export const MANNERS: readonly Manner[] = [
  ...times(HANGING, { hangs: true }),
  ...times(FAILING, { status: 500, delayMs: 5 }),
  ...times(LOADED - HANGING - FAILING, { status: 200, delayMs: 20 }),
  { status: 200, delayMs: 0 },
];
const TRICKLING = LOADED;
const isWell = (webhook: number): boolean => webhook >= HANGING + FAILING;

export const numbers = {
  hanging: [...MANNERS.keys()].slice(0, HANGING),
  failing: [...MANNERS.keys()].slice(HANGING, HANGING + FAILING),
  well: [...MANNERS.keys()].filter(isWell),
  loaded: [...MANNERS.keys()].slice(0, LOADED),
  trickling: TRICKLING,
};

/** Attempts under way at once to one webhook: the default of `webhooks.concurrencyPerWebhook`. */
export const CAP = 16;
export const TIMEOUT_MS = 3000;
/** Before the first kill, for the trickle. */
const CALM_MS = 20_000;
/** How long processes that have just booted, all of them at the same time, are slow for want of compiled code. */
export const COLD_MS = 6_000;
const TRICKLE_EVERY_MS = 100;
const WEBS = 3;
const WORKERS = 2;

/** A delivery as the database has it at the end. */
export interface Row {
  deliveryId: string;
  status: string;
  tries: number;
  /** Epoch milliseconds; null while it is pending. */
  finishedAt: number | null;
}

export interface ClusterRun {
  site: Site;
  cluster: Cluster;
  receiver: CountingReceiver;
  /** What was held by whom after each kill, of webhooks that are well. */
  held: readonly HeldThen[];
  /** When all processes had booted and the load began, epoch milliseconds. */
  startedAt: number;
  /** From when until when Redis was stopped, epoch milliseconds. */
  redisAway: { from: number; to: number };
  /** The most memory that Redis used. */
  redisBytes: number;
  /** Keys in Redis once nothing was due any more. */
  keysAtRest: number;
  /** All deliveries of a webhook, by its number. */
  rowsOf(webhook: number): Promise<Row[]>;
  count(statement: string): Promise<number>;
}

/** Undoes what was started, the last first. */
export type Closing = (() => Promise<unknown> | void)[];

const startProcesses = async (
  database: DatabaseKind,
  redis: RedisServer,
  receiver: CountingReceiver,
  closing: Closing
): Promise<{ site: Site; cluster: Cluster; ids: number[] }> => {
  const site = await startSite({
    database,
    setupFiles: [require.resolve('../../support/handlers/say-process.js')],
    options: {
      scheduler: { engine: 'bullmq', redis: redis.url },
      webhooks: {
        timeoutMs: TIMEOUT_MS,
        pollSeconds: 1,
        concurrencyPerWebhook: CAP,
        retryScheduleSeconds: [2],
        disableAfterFailures: 1_000_000,
      },
    },
  });
  closing.push(() => site.stop());
  const ids: number[] = [];
  for (const webhook of MANNERS.keys()) {
    const events = [webhook === TRICKLING ? TRICKLE : LOAD];
    ids.push((await createWebhook(site, receiver.urlOf(webhook), { events })).id);
  }
  const siblings: Site[] = [];
  while (siblings.length < WEBS - 1) {
    const sibling = await site.sibling();
    siblings.push(sibling);
    closing.push(() => sibling.stop());
  }
  const cluster = await startCluster([site, ...siblings], WORKERS);
  closing.push(() => cluster.stop());
  return { site, cluster, ids };
};

/**
 * Has five processes of one site carry a load while they are killed, and their Redis is flushed and
 * stopped, until nothing of it is left to do.
 * @param closing gets what ends the run's processes, whether it fails or not
 */
export const runCluster = async (
  database: DatabaseKind,
  redis: RedisServer,
  extent: Extent,
  closing: Closing
): Promise<ClusterRun> => {
  await redis.start();
  const receiver = await startCountingReceiver(MANNERS, CAP, TRICKLING);
  closing.push(() => receiver.close());
  const { site, cluster, ids } = await startProcesses(database, redis, receiver, closing);
  const { databaseName } = site;
  const well = ids.filter((_id, webhook) => isWell(webhook));
  const held: HeldThen[] = [];
  const redisAway = { from: 0, to: 0 };
  const count = async (statement: string): Promise<number> =>
    Number((await runSql('postgres', databaseName, statement))[0]?.n);

  /** After so large a share of all kills. */
  const isKilled = (share: number): Promise<unknown> =>
    waitFor(() => cluster.kills.length >= share * extent.kills, 7_200_000, 'so many kills');

  const killProcesses = async (allow: (share: number) => void): Promise<void> => {
    for (let kills = 1; kills <= extent.kills; kills += 1) {
      await sleep(Math.random() * 1000);
      await cluster.killOne();
      held.push(await heldNow(databaseName, well, cluster.kills.at(-1)?.at ?? 0));
      allow((kills + 1) / (extent.kills + 1));
    }
    await cluster.whole();
  };

  const flushRedis = async (): Promise<void> => {
    for (let flush = 0; flush < extent.flushes; flush += 1) {
      await isKilled((flush + 0.5) / extent.flushes);
      await redis.call('FLUSHALL').catch(() => {});
    }
  };

  const stopRedis = async (): Promise<void> => {
    await isKilled(0.4);
    redisAway.from = Date.now();
    await redis.kill();
    await sleep(extent.redisAwayMs);
    await redis.start();
    redisAway.to = Date.now();
  };

  const watch = watchRedis(redis);
  closing.push(() => watch.stop());
  const startedAt = Date.now();
  const stopTrickle = startTrickle(cluster, TRICKLE_EVERY_MS);
  closing.push(stopTrickle);
  const load = startLoad(cluster, databaseName, Math.ceil(extent.deliveries / LOADED));
  closing.push(() => load.stop());

  load.allow(1 / (extent.kills + 1));
  await sleep(CALM_MS);
  await Promise.all([killProcesses(load.allow), flushRedis(), stopRedis()]);
  await load.done;
  stopTrickle();
  const waiting = `SELECT COUNT(*) AS n FROM switchboard_delivery_queue WHERE group_id IN (${well.join(', ')})`;
  await waitFor(async () => (await count(waiting)) === 0, 3_600_000, 'all deliveries to be sent');

  // Webhooks that hang have always something due.
  for (const webhook of [...numbers.hanging, ...numbers.failing]) {
    await updateWebhook(site, ids[webhook], { active: false });
  }
  await sleep(2 * TIMEOUT_MS);
  const keysAtRest = Number(await redis.call('DBSIZE'));
  watch.stop();

  return {
    site,
    cluster,
    receiver,
    held,
    startedAt,
    redisAway,
    redisBytes: watch.mostBytes(),
    keysAtRest,
    count,
    async rowsOf(webhook) {
      const rows = await runSql(
        'postgres',
        databaseName,
        `SELECT document_id, status, tries, finished_at FROM switchboard_deliveries WHERE webhook_id = ${ids[webhook]}`
      );
      return rows.map(({ document_id, status, tries, finished_at }) => ({
        deliveryId: String(document_id),
        status: String(status),
        tries: Number(tries),
        finishedAt: finished_at === null ? null : Number(finished_at),
      }));
    },
  };
};
