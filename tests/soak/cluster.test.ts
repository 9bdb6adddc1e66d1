import { databases, describeEach } from '../support/databases';
import { createRedis, describeWithRedis } from '../support/redis';
import {
  CAP,
  type Closing,
  type ClusterRun,
  COLD_MS,
  type Extent,
  numbers,
  type Row,
  runCluster,
  TIMEOUT_MS,
} from './lib/cluster-run';
import { unexplainedDoubles } from './lib/doubles';
import { heldTooLong } from './lib/held';
import { committedWrites } from './lib/load';

/**
 * Runs only where `SOAK` is set, because it wants a machine to itself: `SOAK=short npm run test:soak --
 * cluster`. `SOAK=full` is the whole of it, which takes long on two processors; `SOAK_DELIVERIES=1000000`
 * beside it makes it as large as that.
 */
const [DELIVERIES, KILLS, FLUSHES, AWAY_SECONDS] =
  process.env.SOAK === 'full' ? [200_000, 100, 10, 60] : [20_000, 20, 4, 20];
const EXTENT: Extent = {
  deliveries: Number(process.env.SOAK_DELIVERIES ?? DELIVERIES),
  kills: Number(process.env.SOAK_KILLS ?? KILLS),
  flushes: FLUSHES,
  redisAwayMs: AWAY_SECONDS * 1000,
};
const SENT_AGAIN_WITHIN_MS = 15_000;
/** How long a kill may be felt by webhooks that are well: what was held comes back, a process boots. */
const FELT_MS = SENT_AGAIN_WITHIN_MS;
/** Until every process has heard that Redis is there again, and what it began before has ended. */
const SETTLED_MS = TIMEOUT_MS + 7000;
const REDIS_BYTES = 20 * 1024 * 1024;

const p95 = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.ceil(values.length * 0.95) - 1] ?? Number.NaN;

const byId = (rows: readonly Row[]): string[] => rows.map(({ deliveryId }) => deliveryId).sort();

const postgres = databases().filter((kind) => kind === 'postgres');

describeWithRedis('three web processes and two workers that share their work over Redis', () => {
  describeEach(postgres, `killed ${EXTENT.kills} times under load`, (database) => {
    let run: ClusterRun;
    const closing: Closing = [];
    const rows = new Map<number, Row[]>();

    beforeAll(async () => {
      const redis = await createRedis();
      closing.push(() => redis.close());
      run = await runCluster(database, redis, EXTENT, closing);
      for (const webhook of [...numbers.loaded, numbers.trickling]) {
        rows.set(webhook, await run.rowsOf(webhook));
      }
    }, 3_600_000);
    afterAll(async () => {
      for (const close of closing.reverse()) await close();
    }, 180_000);

    const rowsOf = (webhook: number): Row[] => rows.get(webhook) ?? [];

    it('have one delivery for each webhook of each write that was committed', async () => {
      const writes = await committedWrites(run.site.databaseName);
      expect(writes * numbers.loaded.length).toBeGreaterThanOrEqual(EXTENT.deliveries);
      const counts = numbers.loaded.map((webhook) => rowsOf(webhook).length);
      expect(counts).toEqual(numbers.loaded.map(() => writes));
    });

    it('send all of it to webhooks that answer, and nothing that was not committed', () => {
      for (const webhook of numbers.well) {
        expect([...run.receiver.arrivals[webhook].keys()].sort()).toEqual(byId(rowsOf(webhook)));
        expect(rowsOf(webhook).filter(({ status }) => status !== 'sent')).toEqual([]);
      }
    });

    it('keep what webhooks that hang or fail were to be sent, with each attempt', async () => {
      for (const webhook of [...numbers.hanging, ...numbers.failing]) {
        const known = new Set(byId(rowsOf(webhook)));
        const { arrivals } = run.receiver;
        expect([...arrivals[webhook].keys()].filter((id) => !known.has(id))).toEqual([]);
        expect(rowsOf(webhook).filter(({ status }) => status === 'sent')).toEqual([]);
        expect(rowsOf(webhook).filter((row) => row.status === 'failed' && row.tries < 2)).toEqual(
          []
        );
      }
      const tries = await run.count('SELECT SUM(tries) AS n FROM switchboard_deliveries');
      expect(await run.count('SELECT COUNT(*) AS n FROM switchboard_attempts')).toBe(tries);
    });

    it('send twice only what was under way at a kill', () => {
      const doubles = numbers.well.flatMap((webhook) =>
        unexplainedDoubles(run.receiver.arrivals[webhook], run.cluster.kills)
      );
      expect(doubles).toEqual([]);
    });

    it(`send what a killed process held within ${SENT_AGAIN_WITHIN_MS / 1000} s`, () => {
      const finishedAt = new Map(
        numbers.well.flatMap(rowsOf).map((row) => [row.deliveryId, row.finishedAt ?? Infinity])
      );
      expect(run.held.reduce((sum, { leases }) => sum + leases.size, 0)).toBeGreaterThan(0);
      expect(heldTooLong(run.held, finishedAt, SENT_AGAIN_WITHIN_MS)).toEqual([]);
    });

    it('keep to the cap of a webhook together; each for itself while Redis is away', () => {
      const { excesses } = run.receiver;
      const { from, to } = run.redisAway;
      const whileThere = excesses.filter(({ at }) => at < from || at > to + SETTLED_MS);
      expect(whileThere).toEqual([]);
      expect(excesses.filter(({ byOneProcess }) => byOneProcess > CAP)).toEqual([]);
      expect(run.receiver.mostAtOnce()).toBeGreaterThan(1);
    });

    it('send a new event of a webhook that is well within 2 s', () => {
      const { from, to } = run.redisAway;
      const felt = [...run.cluster.kills.map(({ at }) => ({ from: at, to: at })), { from, to }];
      const warm = run.receiver.delays.filter(({ at }) => at > run.startedAt + COLD_MS);
      const quiet = warm.filter(
        ({ at }) => !felt.some((one) => at > one.from - 1000 && at < one.to + FELT_MS)
      );
      expect(quiet.length).toBeGreaterThan(100);
      expect(p95(quiet.map(({ ms }) => ms))).toBeLessThan(2000);
    });

    it('leave little in Redis: below 20 MB under load, and 100 keys at rest', () => {
      expect(run.redisBytes).toBeGreaterThan(0);
      expect(run.redisBytes).toBeLessThan(REDIS_BYTES);
      expect(run.keysAtRest).toBeLessThanOrEqual(100);
    });
  });
});
