import childProcess, { type ChildProcess, fork } from 'node:child_process';
import fs from 'node:fs';
import type { Socket } from 'node:net';
import path from 'node:path';
import { count } from './costs';
import { forgetChild, isRunning, watchChild } from './leak-check';
import { SITE_DIR } from './paths';

/**
 * Processes whose site is stopped and in which another one may boot: most of a boot's time goes into
 * loading the host's modules, and those are loaded already. A module of Node is the one place that
 * all test files of a jest worker share.
 */
const KEY = Symbol.for('switchboard.spareProcesses');
const shared = childProcess as unknown as Record<symbol, Spare[] | undefined>;

/** What a process keeps of each site adds up, though a boot takes no longer for it. */
const SITES_A_PROCESS = 45;
const RESIDENT_BYTES = 800e6;
const sites = Symbol.for('switchboard.sites');

/** 0 where the system does not tell. */
const residentBytes = (pid: number | undefined): number => {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096;
  } catch {
    return 0;
  }
};

/**
 * The `NODE_ENV` for which the plugin looks at what the process was started with: the host calls a missing
 * one development.
 */
const DEVELOPMENT = ['development', undefined];
const startedWith = Symbol.for('switchboard.startedWith');

interface Spare extends ChildProcess {
  [sites]?: number;
  [startedWith]?: string;
}

const spares = (): Spare[] => (shared[KEY] ??= []);

const handles = (child: ChildProcess): { ref(): void; unref(): void }[] =>
  [child, child.channel, child.stdout as Socket, child.stderr as Socket].filter(
    (handle) => handle !== null && handle !== undefined
  ) as { ref(): void; unref(): void }[];

/** Keeps a process whose site is stopped; it ends with the test process. */
export const addSpare = (child: Spare): void => {
  forgetChild(child);
  child[sites] = (child[sites] ?? 0) + 1;
  child.removeAllListeners();
  for (const stream of [child.stdout, child.stderr]) stream?.removeAllListeners('data').resume();
  child.on('error', () => {});
  if (child[sites] >= SITES_A_PROCESS || residentBytes(child.pid) > RESIDENT_BYTES) {
    child.kill('SIGKILL');
    return;
  }
  for (const handle of handles(child)) handle.unref();
  spares().push(child);
};

const takeSpare = (environment: string | undefined): Spare | undefined => {
  const fits = DEVELOPMENT.includes(environment)
    ? (one: Spare) => one[startedWith] === environment
    : (one: Spare) => !DEVELOPMENT.includes(one[startedWith]);
  for (;;) {
    const at = spares().findLastIndex(fits);
    const [child] = at < 0 ? [] : spares().splice(at, 1);
    if (!child) return undefined;
    if (!isRunning(child) || !child.connected) continue;
    child.removeAllListeners();
    for (const handle of handles(child)) handle.ref();
    return child;
  }
};

/** Environment that only what is made anew at each boot looks at. */
const READ_AT_EACH_BOOT =
  /^(DATABASE_\w+|ENCRYPTION_KEY|NODE_ENV|SITE_(AUTO_RELOAD|MCP|MIDDLEWARES_FILE|PLUGINS|PROXY)|SQLITE_\w+|SWITCHBOARD_\w+)$/;

/** Whether a process whose environment has these is like any other's afterwards. */
export const isPlainEnv = (env: Record<string, string | undefined>): boolean =>
  Object.keys(env).every((name) => READ_AT_EACH_BOOT.test(name));

const forkSite = (env: NodeJS.ProcessEnv): ChildProcess =>
  fork(path.join(SITE_DIR, 'run.js'), [], {
    cwd: SITE_DIR,
    env,
    // Source maps make each error several times dearer, which no site of production pays. A boot
    // makes so many short-lived objects that Node's own young generation is a tenth of its time.
    execArgv: [
      '--expose-gc',
      ...(process.env.SITE_AS_USED === '1' ? [] : ['--max-semi-space-size=32']),
      ...(process.env.SITE_SOURCE_MAPS === '1' ? ['--enable-source-maps'] : []),
    ],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });

/**
 * A process that runs tests/site/run.js and waits to be told what to do.
 * @param isPlain whether it may be one that ran something else before
 */
export const takeProcess = (env: NodeJS.ProcessEnv, isPlain: boolean): ChildProcess => {
  const spare = isPlain ? takeSpare(env.NODE_ENV) : undefined;
  if (!spare) count('processes');
  const child: Spare = spare ?? forkSite(env);
  if (!spare) child[startedWith] = env.NODE_ENV;
  watchChild(child);
  child.on('error', () => {});
  return child;
};
