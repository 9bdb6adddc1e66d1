import { fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { fileURLToPath } from 'node:url';

const EVERY_MS = 5;

const postAtPace = async ({ url, rate, bytes }) => {
  const { got } = await import('got');
  const client = got.extend({
    method: 'POST',
    isStream: true,
    agent: { http: new http.Agent({ keepAlive: true }) },
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ data: '.'.repeat(bytes) }),
    retry: { limit: 0 },
    decompress: false,
  });
  const started = performance.now();
  let made = 0;
  setInterval(() => {
    for (; made < (rate * (performance.now() - started)) / 1000; made += 1) client(url).resume();
  }, EVERY_MS);
};

/**
 * A process that posts with bare got and keeps nothing: `rate` a second, each of about `bytes`, to `url`.
 * @returns what ends it; that rejects if the process has ended by then
 */
export const startPoster = async (options) => {
  const child = fork(fileURLToPath(import.meta.url), { stdio: 'inherit', execArgv: [] });
  await once(child, 'spawn');
  child.send(options);
  return async () => {
    if (child.exitCode !== null || child.signalCode)
      throw new Error('the other process ended early');
    const ended = once(child, 'exit');
    child.kill();
    await ended;
  };
};

// True in that process alone: the bench has no parent that sends to it.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.once('message', postAtPace);
  process.on('disconnect', () => process.exit(0));
}
