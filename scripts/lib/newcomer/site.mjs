import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { environment } from './project.mjs';

export const freePort = () =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

export const waitFor = async (what, condition, milliseconds = 60_000) => {
  const until = Date.now() + milliseconds;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > until) throw new Error(`${what} did not happen within ${milliseconds} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

/** JSON over HTTP; throws where the answer is no 2xx. */
export const ask = async (method, url, { token, body } = {}) => {
  const answer = await fetch(url, {
    method,
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${text}`);
  return text === '' ? null : JSON.parse(text);
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

/** Starts a site and waits until it answers. */
export const startSite = async (command, project, port, env = {}) => {
  const site = start(command, project, env);
  const url = `http://localhost:${port}`;
  try {
    await waitFor(
      `the start of ${command}`,
      () => {
        if (site.exited()) throw new Error(`${command} ended`);
        return fetch(`${url}/_health`).then(
          (answer) => answer.ok,
          () => false
        );
      },
      180_000
    );
  } catch (error) {
    throw new Error(`${error.message}:\n${site.output().slice(-5000)}`);
  }
  return { ...site, url };
};

/** What is done on screen at a site's beginning: the first administrator, and an API token. */
export const makeAccounts = async (url) => {
  const { data } = await ask('POST', `${url}/admin/register-admin`, {
    body: {
      firstname: 'Ada',
      lastname: 'Site',
      email: 'ada@example.com',
      password: 'Check-1234',
    },
  });
  const admin = data.token ?? data.accessToken;
  const token = await ask('POST', `${url}/admin/api-tokens`, {
    token: admin,
    body: { name: 'check', description: '', type: 'full-access', lifespan: null },
  });
  return { admin, token: token.data.accessKey };
};
