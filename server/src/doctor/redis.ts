import type { Redis } from 'ioredis';
import { SITE_TABLE } from '../database/site';
import { WORK_KINDS } from '../overview/health';
import { errorText } from '../runtime/text';
import { installCommand, loadInstalled, versionFault } from '../runtime/optional-package';
import {
  describeMistyped,
  findMistyped,
  pausedField,
  queueName,
} from '../scheduling/bullmq/mistyped-keys';
import type { App } from '../app';

/** A finding of `switchboard doctor`. */
export interface CheckResult {
  /** `warn`: to know, or to fix at leisure; `fail`: no work is done until it is fixed. */
  state: 'ok' | 'warn' | 'fail';
  /** The state, in one line. */
  message: string;
  /** The remedy, in one line. */
  advice: string;
}

/** Looks at one thing and changes nothing. @returns null if it does not concern this site */
export type Check = (app: App) => CheckResult | null | Promise<CheckResult | null>;

const result =
  (state: CheckResult['state']) =>
  (message: string, advice: string): CheckResult => ({ state, message, advice });

export const ok = (message: string, advice = 'nothing to do') => result('ok')(message, advice);
export const warn = result('warn');
export const fail = result('fail');

/** A warning with the advice of the first condition that holds; else all is well. */
export const warnIf = (
  message: string,
  ...conditions: readonly [holds: boolean, advice: string][]
): CheckResult => {
  const [, advice] = conditions.find(([holds]) => holds) ?? [];
  return advice === undefined ? ok(message) : warn(message, advice);
};

/** No longer than a person waits. */
export const ANSWERS_WITHIN_MS = 5000;

/** The used part of the Redis client, which a site installs only if it uses Redis. */
export type RedisClient = Pick<
  Redis,
  'on' | 'connect' | 'info' | 'scan' | 'type' | 'hexists' | 'disconnect'
>;

export type RedisConstructor = new (...settings: unknown[]) => RedisClient;

const loadClient = (): RedisConstructor => {
  const loaded = loadInstalled('ioredis') as RedisConstructor & { Redis?: RedisConstructor };
  return loaded.Redis ?? loaded;
};

/** One attempt. */
const ONCE = {
  lazyConnect: true,
  connectTimeout: ANSWERS_WITHIN_MS,
  commandTimeout: ANSWERS_WITHIN_MS,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
};

const PACKAGES = ['bullmq', 'ioredis'] as const;

/** Packages of the engine whose versions the site would refuse to start with; null: none. */
export const judgePackages = (faultOf: typeof versionFault = versionFault): CheckResult | null => {
  const faults = PACKAGES.flatMap((name) => faultOf(name) ?? []);
  return faults.length === 0 ? null : fail(faults.join('; '), installCommand(PACKAGES, true));
};

/** Asks a Redis that may be away. @param settings a URL or connection options */
const ask = async (
  settings: unknown,
  load: () => RedisConstructor,
  question: (client: RedisClient) => Promise<CheckResult>
): Promise<CheckResult> => {
  let Client: RedisConstructor;
  try {
    Client = load();
  } catch {
    return fail(
      'scheduler.engine is bullmq and its client is missing',
      'npm install bullmq ioredis'
    );
  }
  const client =
    typeof settings === 'string'
      ? new Client(settings, ONCE)
      : new Client({ ...(settings as object | undefined), ...ONCE });
  let cause: unknown;
  client.on('error', (error) => {
    cause = error;
  });
  try {
    await client.connect();
    return await question(client);
  } catch (error) {
    return fail(
      `Redis does not answer: ${errorText(cause ?? error)}`,
      'start it, or mend scheduler.redis; until then each process works by itself from the database'
    );
  } finally {
    client.disconnect();
  }
};

/** Asks a Redis for its eviction policy; its settings are as for `ask`. */
export const askRedis = (
  settings: unknown,
  load: () => RedisConstructor = loadClient
): Promise<CheckResult> =>
  ask(settings, load, async (client) => {
    const info = await client.info('memory');
    const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'not told';
    return warnIf(`Redis answers; its eviction policy is ${policy}`, [
      policy !== 'noeviction',
      'set maxmemory-policy to noeviction, so that Redis throws no ticket away when its memory is full',
    ]);
  });

export const redis: Check = (app) => {
  const { engine, redis: settings } = app.options.scheduler;
  if (engine !== 'bullmq') return null;
  return judgePackages() ?? askRedis(settings);
};

/** Asks a Redis which of the site's queues somebody paused, or wrote something else into. */
export const queues: Check = async (app) => {
  const { engine, redis: settings, prefix } = app.options.scheduler;
  const isThere = await app.strapi.db.getSchemaConnection().hasTable(SITE_TABLE);
  const site = engine === 'bullmq' && isThere ? await app.site.read() : null;
  if (site === null) return null;
  const names = WORK_KINDS.map((kind) => queueName(kind, site));
  return ask(settings, loadClient, async (client) => {
    const mistyped = await findMistyped(client, prefix, names);
    if (mistyped.length > 0) {
      return warn(
        `on Redis something else was written to ${describeMistyped(mistyped)}: no ticket of such a queue can be written, and each process works from the database`,
        `delete these keys, or let a node that works on them remove them; let no other program write keys that begin with "${prefix}:"`
      );
    }
    const paused: string[] = [];
    for (const name of names) {
      if ((await client.hexists(...pausedField(prefix, name))) === 1) paused.push(name);
    }
    if (paused.length === 0) {
      return ok('no queue on Redis is paused, and nobody wrote into their keys');
    }
    return warn(
      `paused on Redis: ${paused.join(', ')}; each process works on without them, from the database`,
      'resume them where they were paused, for example in a dashboard'
    );
  });
};
