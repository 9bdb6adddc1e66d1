import type { ChildProcess } from 'node:child_process';
import type { Server } from 'node:http';

const children = new Set<ChildProcess>();
const servers = new Set<Server>();

export const isRunning = (child: ChildProcess): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null;

export const watchChild = (child: ChildProcess): void => {
  children.add(child);
};

/** Its site is stopped, and it waits for another one. */
export const forgetChild = (child: ChildProcess): void => {
  children.delete(child);
};

export const watchServer = (server: Server): void => {
  servers.add(server);
};

/** A test process that is stopped takes its sites with it; they also stop when IPC closes. */
process.once('exit', () => {
  for (const child of children) if (isRunning(child)) child.kill('SIGKILL');
});

/** Ends what is still running and names it; `environment.js` asks when a test file has ended. */
const endLeaks = (): string[] => {
  const leaked: string[] = [];
  for (const child of children) {
    if (!isRunning(child)) continue;
    leaked.push(`a site (pid ${child.pid})`);
    child.kill('SIGKILL');
  }
  for (const server of servers) {
    if (!server.listening) continue;
    leaked.push('a receiver');
    server.closeAllConnections();
    server.close();
  }
  children.clear();
  servers.clear();
  return leaked;
};

(globalThis as { switchboardLeaks?: () => string[] }).switchboardLeaks = endLeaks;
