import {
  askRedis,
  judgePackages,
  type RedisClient,
  type RedisConstructor,
} from '../../../server/src/doctor';
import { versionFault } from '../../../server/src/runtime/optional-package';

/** A client whose Redis is what the test says; what it was made with is kept. */
const clientOf = (redis: Partial<RedisClient>) => {
  const made: unknown[][] = [];
  let disconnected = 0;
  class Client {
    constructor(...settings: unknown[]) {
      made.push(settings);
    }
    on() {}
    connect = redis.connect ?? (async () => undefined);
    info = redis.info ?? (async () => 'maxmemory_policy:noeviction\r\n');
    disconnect() {
      disconnected += 1;
    }
  }
  const load = () => Client as unknown as RedisConstructor;
  return { load, made, disconnects: () => disconnected };
};

it('is content with a Redis that evicts nothing, and leaves it', async () => {
  const { load, made, disconnects } = clientOf({});
  expect(await askRedis('redis://cache:6379', load)).toMatchObject({ state: 'ok' });
  expect(made[0]![0]).toBe('redis://cache:6379');
  expect(made[0]![1]).toMatchObject({ lazyConnect: true });
  expect(disconnects()).toBe(1);
});

it('takes connection options, too', async () => {
  const { load, made } = clientOf({});
  await askRedis({ host: 'cache', tls: {} }, load);
  expect(made).toEqual([[expect.objectContaining({ host: 'cache', tls: {}, lazyConnect: true })]]);
});

it.each([
  ['used_memory:1\r\nmaxmemory_policy:allkeys-lru\r\nx:1', /allkeys-lru/],
  ['used_memory:1\r\n', /not told/],
])('warns of a Redis that may throw keys away', async (info, message) => {
  const { load } = clientOf({ info: async () => info });
  expect(await askRedis('redis://cache', load)).toEqual({
    state: 'warn',
    message: expect.stringMatching(message),
    advice: expect.stringContaining('noeviction'),
  });
});

it('says that a Redis is away, and leaves nothing open', async () => {
  const { load, disconnects } = clientOf({
    connect: () => Promise.reject(new Error('connect ECONNREFUSED 127.0.0.1:6379')),
  });
  expect(await askRedis('redis://cache', load)).toMatchObject({
    state: 'fail',
    message: expect.stringContaining('ECONNREFUSED'),
  });
  expect(disconnects()).toBe(1);
});

it('says what to install where the client is missing', async () => {
  const missing = () => {
    throw new Error("Cannot find module 'ioredis'");
  };
  expect(await askRedis('redis://cache', missing)).toMatchObject({
    state: 'fail',
    advice: 'npm install bullmq ioredis',
  });
});

it('names a package that the site would refuse to start with, and what installs another', () => {
  const versions = { bullmq: '4.18.3', ioredis: '5.0.0' };
  expect(judgePackages((name) => versionFault(name, versions[name]))).toMatchObject({
    state: 'fail',
    message: 'bullmq is 4.18.3, and supported are 5 and 6',
  });
  expect(judgePackages(() => null)).toBeNull();
});
