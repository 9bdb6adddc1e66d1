import { createRequire } from 'node:module';
import path from 'node:path';
import { getOptions } from '../../config';
import { errorText } from '../../runtime/error-text';
import { type Check, type CheckResult, fail, ok, warn } from '../types';

const ANSWERS_WITHIN_MS = 5000;

/** What is used of the Redis client, which a site installs only where it uses Redis. */
export interface RedisClient {
  on(event: 'error', listener: (error: Error) => void): unknown;
  connect(): Promise<unknown>;
  info(section: string): Promise<string>;
  disconnect(): void;
}

export type RedisConstructor = new (...settings: unknown[]) => RedisClient;

/** From the site's folder, where a plugin's optional packages are installed. */
const loadClient = (): RedisConstructor => {
  const load = createRequire(path.resolve('package.json'));
  const loaded = load('ioredis') as { Redis?: RedisConstructor; default?: RedisConstructor };
  return loaded.Redis ?? loaded.default ?? (loaded as unknown as RedisConstructor);
};

/** Once, and no longer than a person waits. */
const ONCE = {
  lazyConnect: true,
  connectTimeout: ANSWERS_WITHIN_MS,
  commandTimeout: ANSWERS_WITHIN_MS,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
};

const judgePolicy = (info: string): CheckResult => {
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
  if (policy === 'noeviction') return ok('Redis answers; its eviction policy is noeviction');
  return warn(
    `Redis answers; its eviction policy is ${policy ?? 'not told'}`,
    'set maxmemory-policy to noeviction, so that Redis throws no ticket away when its memory is full'
  );
};

/**
 * Asks a Redis for its eviction policy.
 * @param settings a URL or connection options
 */
export const askRedis = async (
  settings: unknown,
  load: () => RedisConstructor = loadClient
): Promise<CheckResult> => {
  let Redis: RedisConstructor;
  try {
    Redis = load();
  } catch {
    return fail(
      'scheduler.engine is bullmq and its client is missing',
      'npm install bullmq ioredis'
    );
  }
  const isUrl = typeof settings === 'string';
  const client = isUrl
    ? new Redis(settings, ONCE)
    : new Redis({ ...(settings as Record<string, unknown> | undefined), ...ONCE });
  let cause: unknown;
  client.on('error', (error) => {
    cause = error;
  });
  try {
    await client.connect();
    return judgePolicy(await client.info('memory'));
  } catch (error) {
    return fail(
      `Redis does not answer: ${errorText(cause ?? error)}`,
      'start it, or mend scheduler.redis; until then each process works by itself from the database'
    );
  } finally {
    client.disconnect();
  }
};

interface SchedulerOptions {
  engine?: string;
  redis?: unknown;
}

export const redis: Check = {
  name: 'redis',
  look(strapi) {
    const { scheduler } = getOptions(strapi) as { scheduler?: SchedulerOptions };
    return scheduler?.engine === 'bullmq' ? askRedis(scheduler.redis) : null;
  },
};
