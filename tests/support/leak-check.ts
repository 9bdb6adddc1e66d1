import type { ChildProcess } from 'node:child_process';
import type { Server } from 'node:http';

const children = new Set<ChildProcess>();
const servers = new Set<Server>();

export const isRunning = (child: ChildProcess): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null;

export const watchChild = (child: ChildProcess): void => {
  children.add(child);
};

export const watchServer = (server: Server): void => {
  servers.add(server);
};

/** A test process that is stopped takes its sites with it; they also stop when IPC closes. */
process.once('exit', () => {
  for (const child of children) if (isRunning(child)) child.kill('SIGKILL');
});

/**
 * Runs after the hooks of the test file, because it is registered first: a site or a receiver that
 * a file left running is ended, and the file fails.
 */
if (typeof afterAll === 'function') {
  afterAll(() => {
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
    if (leaked.length > 0) {
      throw new Error(`Still running after the last test of this file: ${leaked.join(', ')}`);
    }
  });
}
