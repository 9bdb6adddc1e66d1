import { startWorker } from '../../support/command';
import type { Site } from '../../support/site';
import { waitFor } from '../../support/wait';

export interface Kill {
  pid: number;
  /** Epoch milliseconds, just before the signal. */
  at: number;
}

/** A process of a site, with or without HTTP, that can be killed and started anew. */
interface Node {
  pid(): number;
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Whether it works, and may be killed. */
  isUp: boolean;
}

export interface Cluster {
  readonly kills: readonly Kill[];
  /** A web process that works now; null while none does. */
  someWeb(): Site | null;
  /** Kills one of the processes that work, and has it started anew. Resolves when it is gone. */
  killOne(): Promise<void>;
  /** Resolves when everything that was killed works again; rejects where something did not start. */
  whole(): Promise<void>;
  /** Ends all workers; the sites are their owner's. */
  stop(): Promise<void>;
}

/** A boot takes a processor for seconds: more of them at once would only wait for each other. */
const STARTING_AT_ONCE = 2;

const webNode = (site: Site): Node => ({
  pid: () => site.pid ?? 0,
  kill: () => site.kill(),
  start: () => site.restart(),
  isUp: true,
});

const workerNode = async (env: NodeJS.ProcessEnv): Promise<Node> => {
  let worker = await startWorker(env);
  return {
    pid: () => worker.pid ?? 0,
    async kill() {
      await worker.stop('SIGKILL');
    },
    async start() {
      worker = await startWorker(env);
    },
    isUp: true,
  };
};

/** So many workers beside the given web processes, all of one site. */
export const startCluster = async (
  sites: readonly [Site, ...Site[]],
  workerCount: number
): Promise<Cluster> => {
  const env = sites[0].env();
  const webs = sites.map(webNode);
  const workers = await Promise.all(Array.from({ length: workerCount }, () => workerNode(env)));
  const nodes = [...webs, ...workers];
  const kills: Kill[] = [];
  const starts = new Set<Promise<void>>();
  const failures: unknown[] = [];

  const startAgain = (node: Node): void => {
    const starting: Promise<void> = node
      .start()
      .then(() => {
        node.isUp = true;
      })
      .catch((error: unknown) => void failures.push(error))
      .finally(() => starts.delete(starting));
    starts.add(starting);
  };

  const pick = (): Node | undefined => {
    if (failures.length > 0) throw failures[0];
    if (starts.size >= STARTING_AT_ONCE) return undefined;
    const up = nodes.filter(({ isUp }) => isUp);
    return up[Math.floor(Math.random() * up.length)];
  };

  return {
    kills,
    someWeb() {
      const up = sites.filter((_site, at) => webs[at]?.isUp);
      return up[Math.floor(Math.random() * up.length)] ?? null;
    },
    async killOne() {
      const node = await waitFor(pick, 120_000, 'a process that may be killed');
      node.isUp = false;
      kills.push({ pid: node.pid(), at: Date.now() });
      await node.kill();
      startAgain(node);
    },
    async whole() {
      await Promise.all(starts);
      if (failures.length > 0) throw failures[0];
    },
    async stop() {
      await Promise.all(starts);
      await Promise.all(workers.map((worker) => worker.kill()));
    },
  };
};
