import { getOptions } from '../../config';
import { errorText } from '../../runtime/error-text';
import { installCommand, loadInstalled, versionFault } from '../../runtime/optional-package';
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

const loadClient = (): RedisConstructor => {
  const loaded = loadInstalled('ioredis') as {
    Redis?: RedisConstructor;
    default?: RedisConstructor;
  };
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

const PACKAGES = ['bullmq', 'ioredis'] as const;

/** Packages of the engine whose versions the site would refuse to start with; null: none. */
export const judgePackages = (faultOf: typeof versionFault = versionFault): CheckResult | null => {
  const faults = PACKAGES.flatMap((name) => faultOf(name) ?? []);
  return faults.length === 0 ? null : fail(faults.join('; '), installCommand(PACKAGES, true));
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
    if (scheduler?.engine !== 'bullmq') return null;
    return judgePackages() ?? askRedis(scheduler.redis);
  },
};
