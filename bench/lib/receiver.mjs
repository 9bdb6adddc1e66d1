import { fork } from 'node:child_process';
import path from 'node:path';

/**
 * A receiver in a process of its own, so that its work is not counted as the site's.
 * `configure({ delayMs })` sets how long it takes to answer; `count()` how much came since `reset()`,
 * `last()` when the last post came, epoch milliseconds.
 */
export const startReceiver = async () => {
  const child = fork(path.resolve(import.meta.dirname, 'receiver-process.mjs'), {
    stdio: 'inherit',
    execArgv: [],
  });
  const waiting = [];
  child.on('message', (message) => waiting.shift()?.(message));
  const next = () => new Promise((resolve) => waiting.push(resolve));
  const ask = (message) => {
    const answer = next();
    child.send(message);
    return answer;
  };
  const { port } = await next();
  return {
    url: `http://127.0.0.1:${port}/`,
    configure: ({ delayMs = 0 }) => ask({ op: 'configure', delayMs }),
    reset: () => ask({ op: 'reset' }),
    count: async () => (await ask({ op: 'count' })).count,
    last: async () => (await ask({ op: 'count' })).cameAt,
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.disconnect();
      await ended;
    },
  };
};
