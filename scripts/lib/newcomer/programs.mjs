// Starts programs as a new user would, without anything that an install brings.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';

/** A newcomer's environment: nothing of the npm or the test run that this may be part of. */
export const environment = (more = {}) => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_ENV$|INIT_CWD$)/.test(name))
  ),
  STRAPI_TELEMETRY_DISABLED: 'true',
  ...more,
});

const isFree = (port) =>
  new Promise((resolve) => {
    const server = net.createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** Below the ports that systems give to connections: a program that starts in a minute still finds it free. */
export const freePort = async () => {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (await isFree(port)) return port;
  }
};

export const waitFor = async (what, condition, milliseconds = 60_000) => {
  const until = Date.now() + milliseconds;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > until) throw new Error(`${what} did not happen within ${milliseconds} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

const running = new Set();

/**
 * A command of a project that goes on running, such as `npm run develop`, in a process group.
 * @returns {{ output(): string, answer(): string, stop(): Promise<void>, exited(): boolean }}
 *   `answer` is its standard output, `output` what else it said, too
 */
export const start = (command, project, env = {}) => {
  const child = spawn('bash', ['-euc', command], {
    cwd: project,
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  let answer = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => (output += text));
  }
  child.stdout.on('data', (text) => (answer += text));
  const ended = once(child, 'close');
  const exited = () => child.exitCode !== null || child.signalCode !== null;
  const signal = (name) => {
    try {
      process.kill(-child.pid, name);
    } catch {
      // It has already gone.
    }
  };
  const stop = async () => {
    signal('SIGTERM');
    const timer = setTimeout(() => signal('SIGKILL'), 30_000);
    await ended;
    clearTimeout(timer);
    running.delete(stop);
  };
  running.add(stop);
  return { output: () => output, answer: () => answer, stop, exited };
};

export const stopAll = async () => {
  for (const stop of [...running]) await stop();
};
