import childProcess, { type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { isRunning } from './leak-check';

/**
 * Processes whose site is stopped and in which another one may boot: most of a boot's time goes into
 * loading the host's modules, and those are loaded already. A module of Node is the one place that
 * all test files of a jest worker share.
 */
const KEY = Symbol.for('switchboard.spareProcesses');
const shared = childProcess as unknown as Record<symbol, ChildProcess[] | undefined>;

/** What a process keeps of each site adds up. */
const SITES_A_PROCESS = 15;
const sites = Symbol.for('switchboard.sites');

const spares = (): ChildProcess[] => (shared[KEY] ??= []);

const handles = (child: ChildProcess): { ref(): void; unref(): void }[] =>
  [child, child.channel, child.stdout as Socket, child.stderr as Socket].filter(
    (handle) => handle !== null && handle !== undefined
  ) as { ref(): void; unref(): void }[];

/** Keeps a process whose site is stopped; it ends with the test process. */
export const addSpare = (child: ChildProcess): void => {
  const counted = child as ChildProcess & { [sites]?: number };
  counted[sites] = (counted[sites] ?? 0) + 1;
  child.removeAllListeners();
  for (const stream of [child.stdout, child.stderr]) stream?.removeAllListeners('data').resume();
  child.on('error', () => {});
  if (counted[sites] >= SITES_A_PROCESS) {
    child.kill('SIGKILL');
    return;
  }
  for (const handle of handles(child)) handle.unref();
  spares().push(child);
};

export const takeSpare = (): ChildProcess | undefined => {
  for (;;) {
    const child = spares().pop();
    if (!child) return undefined;
    if (!isRunning(child) || !child.connected) continue;
    child.removeAllListeners();
    for (const handle of handles(child)) handle.ref();
    return child;
  }
};
