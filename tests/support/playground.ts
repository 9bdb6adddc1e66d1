import { type ChildProcess, fork } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { isRunning, watchChild } from './leak-check';
import { ROOT, SCRATCH } from './paths';
import { freePort } from './site-process';

export interface Playground {
  siteUrl: string;
  /** The receiver's page. `GET <page>arrivals.json` is what arrived. */
  receiverPage: string;
  /** Where the webhook posts to. */
  receiverUrl: string;
  login: { email: string; password: string };
  /** Full access. */
  apiToken: string;
  dataFolder: string;
  log(): string;
  /** Ends it as Ctrl-C does, and keeps the data. Resolves with the exit code. */
  interrupt(signal?: NodeJS.Signals): Promise<number | null>;
  /** `kill -9` of the site's process; the others end by themselves. */
  killSite(): Promise<void>;
  /** Starts again on the same data and ports. */
  again(): Promise<Playground>;
  /** Ends it and removes the data. */
  stop(): Promise<void>;
}

interface Where {
  dataFolder: string;
  port: number;
  receiverPort: number;
}

/** What `npm start` says once it is up. */
interface Ready {
  siteUrl: string;
  receiverPage: string;
  sitePid: number;
}

const boot = async (where: Where, env: Record<string, string>): Promise<Playground> => {
  const child: ChildProcess = fork(path.join(ROOT, 'scripts/start.mjs'), [], {
    cwd: ROOT,
    env: {
      ...process.env,
      PORT: String(where.port),
      RECEIVER_PORT: String(where.receiverPort),
      PLAYGROUND_DATA: where.dataFolder,
      // Most tests count what they made themselves.
      PLAYGROUND_SHOP: 'empty',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  watchChild(child);
  let output = '';
  const collect = (chunk: Buffer) => {
    output += chunk.toString('utf8');
    if (process.env.SITE_LOG === '1') process.stderr.write(chunk);
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const { sitePid, ...urls } = await new Promise<Ready>((resolve, reject) => {
    child.once('message', resolve as (message: unknown) => void);
    void ended.then((code) => reject(new Error(`npm start ended with ${code}:\n${output}`)));
  });
  const state = JSON.parse(
    fs.readFileSync(path.join(where.dataFolder, 'playground.json'), 'utf8')
  ) as Pick<Playground, 'login' | 'apiToken' | 'receiverUrl'>;

  const interrupt = async (signal: NodeJS.Signals = 'SIGINT') => {
    if (isRunning(child)) child.kill(signal);
    return ended;
  };
  return {
    ...urls,
    ...state,
    dataFolder: where.dataFolder,
    log: () => output,
    interrupt,
    async killSite() {
      process.kill(sitePid, 'SIGKILL');
      await ended;
    },
    async again() {
      await interrupt();
      return boot(where, env);
    },
    async stop() {
      await interrupt();
      fs.rmSync(where.dataFolder, { recursive: true, force: true });
    },
  };
};

/**
 * `npm start` with a database and ports of its own, for tests in a browser. The first call builds
 * the admin panel where it is stale: give it a minute or three.
 * @param from the data folder of one that was stopped, to go on with a copy of
 */
export const startPlayground = async (
  env: Record<string, string> = {},
  from?: string
): Promise<Playground> => {
  const name = `${process.pid}-${crypto.randomBytes(4).toString('hex')}`;
  const dataFolder = path.join(SCRATCH, 'playgrounds', name);
  fs.mkdirSync(dataFolder, { recursive: true });
  if (from) fs.cpSync(from, dataFolder, { recursive: true });
  return boot({ dataFolder, port: await freePort(), receiverPort: await freePort() }, env);
};
