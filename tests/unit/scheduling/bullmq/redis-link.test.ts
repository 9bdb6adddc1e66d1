import { Redis } from 'ioredis';
import { RedisLink } from '../../../../server/src/scheduling/bullmq/scheduler';
import { createRedis, describeWithRedis, type RedisServer } from '../../../support/redis';

/** As a site that boots on a busy machine: nothing else has a turn meanwhile. */
const holdTheLoop = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

describeWithRedis('the connection to Redis', () => {
  let redis: RedisServer;
  let link: RedisLink | undefined;
  beforeAll(async () => {
    redis = await createRedis();
    await redis.start();
  });
  afterEach(() => link?.close());
  afterAll(() => redis?.close());

  it('does not call Redis away because the process was busy', async () => {
    const said: string[] = [];
    const log = {
      warn: (line: string) => said.push(line),
      info: (line: string) => said.push(line),
    };
    link = new RedisLink({ Redis }, redis.url, 'busy', log);
    holdTheLoop(3500);
    await link.known;
    expect(link.isThere()).toBe(true);
    expect(said).toEqual([]);
  });
});
