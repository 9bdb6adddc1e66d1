import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { Redis } from 'ioredis';
import { isRunning, watchChild } from './leak-check';
import { freePort } from './site-process';
import { waitFor } from './wait';

/** A Redis server of a test's own, on a port of its own, that keeps nothing on disk. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Everything that is stored: each key with what it holds, as text. */
  dump(): Promise<Map<string, string>>;
  /** Runs a command. */
  call(command: string, ...args: string[]): Promise<unknown>;
  /** Ends the process at once; what it held is gone. */
  kill(): Promise<void>;
  /** Starts it, at first or again, on the same port. */
  start(): Promise<void>;
  close(): Promise<void>;
}

let found: boolean | undefined;

/** Whether there is a `redis-server` here; with `REQUIRE_ALL=1` there has to be one. */
export const hasRedis = (): boolean => {
  found ??=
    process.env.REQUIRE_ALL === '1' || spawnSync('redis-server', ['--version']).status === 0;
  return found;
};

/** As `describe`; skipped, visibly, where there is no Redis. */
export const describeWithRedis = (name: string, body: () => void): void => {
  if (hasRedis()) describe(name, body);
  else {
    describe.skip(`${name} (no redis-server found)`, () => {
      it('needs redis-server', () => {});
    });
  }
};

/** What a key holds, whatever its type. */
const read = async (client: Redis, key: string): Promise<unknown> => {
  switch (await client.type(key)) {
    case 'string':
      return client.get(key);
    case 'hash':
      return client.hgetall(key);
    case 'list':
      return client.lrange(key, 0, -1);
    case 'set':
      return client.smembers(key);
    case 'zset':
      return client.zrange(key, '0', '-1', 'WITHSCORES');
    case 'stream':
      return client.xrange(key, '-', '+');
    default:
      return null;
  }
};

/** Takes a free port; `start` has to be called. Close it in `afterAll`. */
export const createRedis = async (): Promise<RedisServer> => {
  const port = await freePort();
  let child: ChildProcess | undefined;
  const client = new Redis({ port, lazyConnect: true, retryStrategy: () => 50 });
  client.on('error', () => {});

  const kill = async (): Promise<void> => {
    const running = child;
    if (!running || !isRunning(running)) return;
    const gone = new Promise((resolve) => running.once('exit', resolve));
    running.kill('SIGKILL');
    await gone;
  };

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    async dump() {
      const keys = await client.keys('*');
      const held = await Promise.all(keys.map(async (key) => [key, await read(client, key)]));
      return new Map(held.map(([key, value]) => [String(key), JSON.stringify(value)]));
    },
    call: (command, ...args) => client.call(command, args),
    kill,
    async start() {
      const settings = `--port ${port} --bind 127.0.0.1 --appendonly no --save`.split(' ');
      child = spawn('redis-server', [...settings, ''], { stdio: 'ignore' });
      watchChild(child);
      await waitFor(async () => (await client.ping()) === 'PONG', 10_000, 'Redis to answer');
    },
    async close() {
      client.disconnect();
      await kill();
    },
  };
};
