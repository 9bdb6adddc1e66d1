import { runSql } from '../../support/databases';
import type { Site } from '../../support/site';
import { sleep } from '../../support/wait';
import type { Cluster } from './cluster';

/** Events of the catalogue, which nothing else in the site publishes here. */
export const LOAD = 'task.created';
export const TRICKLE = 'deal.won';

/** How many of the load's writes have committed; each has one event. */
export const committedWrites = async (databaseName: string): Promise<number> => {
  const [row] = await runSql(
    'postgres',
    databaseName,
    "SELECT COUNT(*) AS n FROM labels WHERE title LIKE 'load %'"
  );
  return Number(row?.n);
};

/** Writes that each have an event, in the same transaction. */
const write = (web: Site, name: string, count: number): Promise<void> =>
  web.evaluate(
    async ({ strapi }, prefix, total) => {
      const events = strapi.service('plugin::switchboard.events');
      for (let n = 0; n < total; n += 1) {
        const title = `load ${prefix} ${n}`;
        await strapi.db.transaction(async () => {
          await strapi.db.query('api::label.label').create({ data: { title } });
          await events.send('task.created', { title, text: 'x'.repeat(500) });
        });
      }
    },
    name,
    count
  );

export interface Load {
  /** Lets so much of all writes be made by now, as a share of 1. */
  allow(share: number): void;
  /** Resolves when all of them have committed. */
  readonly done: Promise<void>;
  stop(): void;
}

const WRITES_AT_ONCE = 5;
const LANES = 3;

/** Has web processes write, whichever are there: what a killed one had begun is counted by the database. */
export const startLoad = (cluster: Cluster, databaseName: string, writes: number): Load => {
  let allowed = 0;
  let committed = 0;
  let isStopped = false;
  let serial = 0;

  const lane = async (): Promise<void> => {
    while (!isStopped && committed < writes) {
      const web = cluster.someWeb();
      if (!web || committed >= allowed) {
        await sleep(20);
        continue;
      }
      serial += 1;
      // A process that is killed meanwhile takes its answer with it.
      await write(web, String(serial), WRITES_AT_ONCE).catch(() => {});
      committed = await committedWrites(databaseName);
    }
  };

  return {
    allow(share) {
      allowed = share * writes;
    },
    done: Promise.all(Array.from({ length: LANES }, lane)).then(() => {}),
    stop() {
      isStopped = true;
    },
  };
};

/** An event every so many milliseconds that says when it was committed, at the latest. @returns how to stop it. */
export const startTrickle = (cluster: Cluster, everyMs: number): (() => void) => {
  const timer = setInterval(() => {
    const data = { at: Date.now() };
    cluster
      .someWeb()
      ?.control('send', { event: TRICKLE, data })
      .catch(() => {});
  }, everyMs);
  return () => clearInterval(timer);
};
