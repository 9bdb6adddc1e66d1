import { setTimeout as sleep } from 'node:timers/promises';
import type { Core } from '@strapi/strapi';
import { SITE_TABLE } from '../database/site';
import type { Feature } from '../feature';
import { isOn } from '../parts';
import { errorText, isRecord } from '../runtime/text';
import { type FollowedFacts, ownFacts, readFollowed } from '../webhooks/nodes';
import { proxyWarning } from '../net/client-address';
import { describePrivateAddresses } from '../net/guard';
import { hasEncryptionKey, MISSING_KEY_HELP } from '../secrets/secret-box';
import { type App, appOf } from '../app';
import type { Knex } from 'knex';
import { countOf } from '../database/retry';
import { POS_EVENTS_TABLE, RECORD_QUEUE_TABLE } from '../pos/tables';
import { QUEUE_STATES } from '../queue/queue';
import { SECTIONS } from '../webhooks/rules/delivery-state';
import { FROM_ELSEWHERE } from '../webhooks/webhook';
import { DELIVERY_QUEUE_TABLE, WEBHOOKS_TABLE } from '../webhooks/tables';
import type { Redis } from 'ioredis';
import { WORK_KINDS } from '../overview/health';
import { installCommand, loadInstalled, versionFault } from '../runtime/optional-package';
import {
  describeMistyped,
  findMistyped,
  pausedField,
  queueName,
} from '../scheduling/bullmq/mistyped-keys';

interface CheckResult {
  /** `warn`: to know, or to fix at leisure; `fail`: no work is done until it is fixed. */
  state: 'ok' | 'warn' | 'fail';
  /** The state, in one line. */
  message: string;
  /** The remedy, in one line. */
  advice: string;
}

/** Looks at one thing and changes nothing. @returns null if it does not concern this site */
type Check = (app: App) => CheckResult | null | Promise<CheckResult | null>;

const result =
  (state: CheckResult['state']) =>
  (message: string, advice: string): CheckResult => ({ state, message, advice });

const ok = (message: string, advice = 'nothing to do') => result('ok')(message, advice);
const warn = result('warn');
const fail = result('fail');

/** A warning with the advice of the first condition that holds; else all is well. */
const warnIf = (message: string, ...conditions: readonly [holds: boolean, advice: string][]) => {
  const [, advice] = conditions.find(([holds]) => holds) ?? [];
  return advice === undefined ? ok(message) : warn(message, advice);
};

/** No longer than a person waits. */
const ANSWERS_WITHIN_MS = 5000;

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
  client.on('error', (error) => (cause = error));
  try {
    await client.connect();
    return await question(client);
  } catch (error) {
    return fail(
      `Redis does not answer: ${errorText(cause ?? error)}`,
      'start it, or fix scheduler.redis; until then each process works by itself from the database'
    );
  } finally {
    client.disconnect();
  }
};

/** Asks a Redis for its eviction policy; its settings are as for `ask`. */
export const askRedis = (settings: unknown, load: () => RedisConstructor = loadClient) =>
  ask(settings, load, async (client) => {
    const policy = /^maxmemory_policy:(\S+)/m.exec(await client.info('memory'))?.[1] ?? 'not told';
    return warnIf(`Redis answers; its eviction policy is ${policy}`, [
      policy !== 'noeviction',
      'set maxmemory-policy to noeviction, so that Redis throws no ticket away when its memory is full',
    ]);
  });

const redis: Check = (app) => {
  const { engine, redis: settings } = app.options.scheduler;
  if (engine !== 'bullmq') return null;
  return judgePackages() ?? askRedis(settings);
};

/** Finds queues of the site that are paused on Redis, or that contain foreign data. */
const queues: Check = async (app) => {
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
      return ok('no queue on Redis is paused, and no other program wrote to its keys');
    }
    return warn(
      `paused on Redis: ${paused.join(', ')}; each process works on without them, from the database`,
      'resume them where they were paused, for example in a dashboard'
    );
  });
};

const encryptionKey: Check = (app) =>
  hasEncryptionKey(app)
    ? ok('admin.secrets.encryptionKey is set')
    : fail(
        'admin.secrets.encryptionKey is not set: secrets can neither be stored nor read',
        MISSING_KEY_HELP
      );

const SAID_BY: Readonly<Record<FollowedFacts['from'], string>> = {
  running: 'the site that runs says',
  stopped: 'no node of the site runs; the last said',
  command: 'the site has said nothing yet; of this command',
};

/** The site's facts; the command's own environment if the database cannot be read. */
const followed = async (app: App): Promise<FollowedFacts> => {
  const own: FollowedFacts = { ...ownFacts(app), from: 'command' };
  const reading = readFollowed(app).catch(() => own);
  return Promise.race([reading, sleep(ANSWERS_WITHIN_MS, own, { ref: false })]);
};

/** Checks the environment of the site's own process; the command's may differ. */
const environment: Check = async (app) => {
  const facts = await followed(app);
  const given = facts.nodeEnv === 'unknown' ? undefined : facts.nodeEnv.given;
  const state = given === undefined ? 'may be set or not' : `is ${given ?? 'not set'}`;
  const addresses = describePrivateAddresses(facts, null);
  const both = addresses.includes('NODE_ENV') ? addresses : `NODE_ENV ${state}; ${addresses}`;
  return warnIf(
    `${SAID_BY[facts.from]}: ${both}`,
    [
      facts.open,
      'on a live site set NODE_ENV=production, or name the networks in webhooks.allowPrivateNetworks',
    ],
    [given !== 'production', 'set NODE_ENV=production on a live site']
  );
};

/** Variables by which programs and libraries find a proxy. */
const PROXY_VARIABLES = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'GLOBAL_AGENT_HTTP_PROXY',
  'GLOBAL_AGENT_HTTPS_PROXY',
  'NODE_USE_ENV_PROXY',
];

const namedProxies = (proxy: unknown): string[] => {
  const { global, http, https, fetch } = isRecord(proxy) ? proxy : {};
  const configured = Object.entries({ global, http, https, fetch }).filter(([, value]) => value);
  const variables = PROXY_VARIABLES.filter(
    (name) => process.env[name] || process.env[name.toLowerCase()]
  );
  return [...configured.map(([name]) => `server.proxy.${name}`), ...variables];
};

const proxy: Check = (app) => {
  const settings: unknown = app.strapi.config.get('server.proxy');
  const wrong = proxyWarning(settings);
  if (wrong) return warn(wrong, 'set proxy.maxIpsCount in config/server');
  const named = namedProxies(settings);
  if (named.length > 0) {
    return ok(
      `posts to webhooks go out directly: ${named.join(', ')} is not used for them`,
      'let the process reach the receivers directly'
    );
  }
  return isRecord(settings) && settings.koa === true
    ? ok('proxies before this site are trusted and counted')
    : ok(
        'no proxy before this site is trusted',
        'set proxy.koa and proxy.maxIpsCount where the site is behind one'
      );
};

const mcp: Check = (app) =>
  app.strapi.config.get('server.mcp.enabled')
    ? ok('server.mcp.enabled is on: assistants with a token may use the tools of the site')
    : ok(
        'server.mcp.enabled is off: no tools are offered to assistants',
        'set mcp.enabled to true in config/server to offer them'
      );

/** Beyond this a receiver may refuse signatures, and tills may be refused that keep the time. */
const CLOCKS_APART_MS = 5000;

/** The node's clock is in signatures, and tills are judged against it; all else is the database's. */
const clocks: Check = async (app) => {
  await app.clock.sync();
  const offset = Date.now() - app.clock.now();
  return warnIf(
    `this node's clock and the database's are ${Math.abs(offset)} ms apart (node ${offset < 0 ? 'behind' : 'ahead'})`,
    [Math.abs(offset) > CLOCKS_APART_MS, 'set the clocks with NTP or chrony on both machines']
  );
};

/** So many are named; of a site that was never started there are some fifty. */
const NAMED = 5;

/** @param expected the plain tables of the features that the site has */
export const tables =
  (expected: (app: App) => readonly string[]): Check =>
  async (app) => {
    const types = Object.values(app.strapi.contentTypes)
      .filter(({ uid }) => uid.startsWith('plugin::switchboard.'))
      .map(({ collectionName }) => String(collectionName));
    const names = [...new Set([...types, ...expected(app)])];
    const present = new Set(await app.strapi.db.dialect.schemaInspector.getTables());
    const missing = names.filter((name) => !present.has(name)).sort();
    if (missing.length === 0) return ok(`all ${names.length} tables are there`);
    const named = missing.slice(0, NAMED).join(', ');
    const others = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : '';
    return warn(
      missing.length === names.length
        ? `none of the ${names.length} tables exists yet`
        : `${missing.length} of ${names.length} tables are missing: ${named}${others}`,
      'start the site once with this version: it creates them'
    );
  };

const sqlite: Check = async (app) => {
  const warnings = await app.db.sqliteWarnings();
  if (!warnings) return null;
  if (warnings.length === 0) return ok('SQLite has its write-ahead log (WAL)');
  return warn(
    warnings.join(' '),
    "set journal_mode = WAL and busy_timeout = 50 in afterCreate of the database's pool"
  );
};

/** Due for longer than this means that no process serves it, or too slowly. */
const LATE_MS = 60_000;

const hasTable = (app: App, name: string): Promise<boolean> =>
  app.strapi.db.getSchemaConnection().hasTable(name);

/** For how long the row that has waited longest has been due, milliseconds; 0 where none is late. */
const lateness = async (rows: Knex.QueryBuilder, now: number): Promise<number> => {
  const { oldest } = (await rows.where('due_at', '>', 0).min({ oldest: 'due_at' }).first()) as {
    oldest: number | string | null;
  };
  return Math.max(0, now - Number(oldest ?? now));
};

const lateText = (late: number): string =>
  late > LATE_MS ? `; the oldest has been due for ${Math.round(late / 1000)} seconds` : '';

const deliveries: Check = async (app) => {
  if (!(await hasTable(app, DELIVERY_QUEUE_TABLE))) return null;
  const db = await app.db.current();
  const served = db.table(WEBHOOKS_TABLE).where({ active: true }).select('id');
  const queue = () => db.table(DELIVERY_QUEUE_TABLE);
  // Deliveries of a webhook that was deleted are about to be ended.
  const known = db.table(WEBHOOKS_TABLE).select('id');
  const inSection = (section: number) =>
    countOf(queue().where({ section }).whereIn('group_id', known));
  const waiting = await inSection(SECTIONS.waiting);
  const failing = await inSection(SECTIONS.failing);
  const off = () =>
    db.table(WEBHOOKS_TABLE).where({ active: false }).whereNotNull('disabled_reason');
  const elsewhere = await countOf(off().where('disabled_reason', 'like', `${FROM_ELSEWHERE}%`));
  const broken = (await countOf(off())) - elsewhere;
  const due = queue().where({ state: QUEUE_STATES.ready }).whereIn('group_id', served);
  const late = await lateness(due, app.clock.now());
  const message = `deliveries: ${waiting} waiting, ${failing} failing; ${broken} webhooks were switched off${elsewhere > 0 ? `, ${elsewhere} more came from another site` : ''}${lateText(late)}`;
  return warnIf(
    message,
    [
      late > LATE_MS,
      'make sure that a process sends: a node with webhooks.dispatch, or switchboard worker',
    ],
    [
      failing > 0 || broken > 0,
      'check the causes in the admin panel: CRM > Webhooks > Deliveries, and fix the receivers',
    ],
    [elsewhere > 0, 'switch on the webhooks that should send from this site']
  );
};

const posEvents: Check = async (app) => {
  if (!app.options.features.pos || !(await hasTable(app, RECORD_QUEUE_TABLE))) return null;
  const db = await app.db.current();
  const rows = () => db.table(POS_EVENTS_TABLE);
  const inState = (...states: string[]) => countOf(rows().whereIn('state', states));
  const waiting = await inState('pending');
  const mapping = await inState('needs_mapping', 'partially_applied');
  const failed = await inState('failed');
  const queued = db.table(RECORD_QUEUE_TABLE).where({ state: QUEUE_STATES.ready });
  const late = await lateness(queued, app.clock.now());
  const message = `records of tills: ${waiting} waiting, ${mapping} waiting for a mapping, ${failed} failed${lateText(late)}`;
  return warnIf(
    message,
    [
      late > LATE_MS,
      'make sure that a process applies them: a node with pos.process, or switchboard worker',
    ],
    [failed > 0 || mapping > 0, 'check them in the admin panel: CRM > Shop > Till records']
  );
};

/** A check that cannot run reports that; the others still run. */
const examine = async (app: App, checks: Readonly<Record<string, Check>>) => {
  const results: (CheckResult & { name: string })[] = [];
  for (const [name, look] of Object.entries(checks)) {
    try {
      const result = await look(app);
      if (result) results.push({ name, ...result });
    } catch (error) {
      const message = `could not be checked: ${errorText(error)}`;
      results.push({ name, ...fail(message, 'see the log of the site and the database') });
    }
  }
  return results;
};

/** The plugin's part of `switchboard doctor` (docs/alerts.md#is-everything-in-order), with tables of all `features`. */
export const doctorOf = (features: readonly Feature[]): Feature => {
  const expected = (app: App): string[] => [
    SITE_TABLE,
    ...features
      .filter((feature) => isOn(feature, app.options.features))
      .flatMap((feature) => (feature.tables ?? []).map(({ tableName }) => tableName)),
  ];
  return {
    services: {
      doctor: ({ strapi }: { strapi: Core.Strapi }) => {
        const app = appOf(strapi);
        return {
          /** Checks that need no database. */
          examineSite: () =>
            examine(app, { encryption_key: encryptionKey, environment, proxy, mcp, redis }),
          /** The rest, once the database is connected; nothing has to be bootstrapped. */
          examineDatabase: () =>
            examine(app, {
              clocks,
              tables: tables(expected),
              sqlite,
              deliveries,
              pos_events: posEvents,
              queues,
            }),
        };
      },
    },
  };
};
