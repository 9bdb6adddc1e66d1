import type { Core } from '@strapi/strapi';
import { SITE_TABLE } from '../database/site';
import type { Feature } from '../feature';
import { isOn } from '../parts';
import { errorText } from '../runtime/text';
import { queues, redis, type CheckResult } from './redis';
import { type FollowedFacts, ownFacts, readFollowed } from '../webhooks/nodes';
import { proxyWarning } from '../net/client-address';
import { describePrivateAddresses, type GivenNodeEnv } from '../net/guard';
import { stopWithin } from '../scheduling/recorder';
import { hasEncryptionKey, MISSING_KEY_HELP } from '../secrets/secret-box';
import { type Check, fail, ok, warn } from './redis';
import { type App, appOf } from '../app';
import type { Knex } from 'knex';
import { POS_EVENTS_TABLE, RECORD_QUEUE_TABLE } from '../pos/tables';
import { QUEUE_STATES } from '../queue/queue';
import { SECTIONS } from '../webhooks/rules/delivery-state';
import { FROM_ELSEWHERE } from '../webhooks/webhook';
import { DELIVERY_QUEUE_TABLE, WEBHOOKS_TABLE } from '../webhooks/tables';

/** Checks of a site's settings and environment. */

const encryptionKey: Check = (app) =>
  hasEncryptionKey(app)
    ? ok('admin.secrets.encryptionKey is set')
    : fail(
        'admin.secrets.encryptionKey is not set: secrets can neither be stored nor read',
        MISSING_KEY_HELP
      );

const describeNodeEnv = (environment: GivenNodeEnv): { text: string; isProduction: boolean } => {
  if (environment === 'unknown') return { text: 'NODE_ENV may be set or not', isProduction: false };
  const { given } = environment;
  if (given === null) return { text: 'NODE_ENV is not set', isProduction: false };
  return { text: `NODE_ENV is ${given}`, isProduction: given === 'production' };
};

const SAID_BY: Readonly<Record<FollowedFacts['from'], string>> = {
  running: 'the site that runs says',
  stopped: 'no node of the site runs; the last said',
  command: 'the site has said nothing yet; of this command',
};

const ANSWERS_WITHIN_MS = 5000;

/** The site's facts; the command's own environment if the database cannot be read. */
const followed = async (app: App): Promise<FollowedFacts> => {
  let facts: FollowedFacts = { ...ownFacts(app), from: 'command' };
  const reading = readFollowed(app).then(
    (said) => {
      facts = said;
    },
    () => {}
  );
  await stopWithin(ANSWERS_WITHIN_MS, reading);
  return facts;
};

/** Checks the environment of the site's own process; the command's may differ. */
const environment: Check = async (app) => {
  const facts = await followed(app);
  const { text, isProduction } = describeNodeEnv(facts.nodeEnv);
  const addresses = describePrivateAddresses(facts, null);
  const both = addresses.includes('NODE_ENV') ? addresses : `${text}; ${addresses}`;
  const message = `${SAID_BY[facts.from]}: ${both}`;
  if (facts.open) {
    return warn(
      message,
      'on a live site set NODE_ENV=production, or name the networks in webhooks.allowPrivateNetworks'
    );
  }
  if (!isProduction) return warn(message, 'set NODE_ENV=production on a live site');
  return ok(message);
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
  const { global, http, https, fetch } = (
    typeof proxy === 'object' && proxy !== null ? proxy : {}
  ) as Record<string, unknown>;
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
  const { koa } = (typeof settings === 'object' && settings !== null ? settings : {}) as {
    koa?: unknown;
  };
  return ok(
    koa === true
      ? 'proxies before this site are trusted and counted'
      : 'no proxy before this site is trusted',
    koa === true ? undefined : 'set proxy.koa and proxy.maxIpsCount where the site is behind one'
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
  const clock = app.clock;
  await clock.sync();
  const offset = Date.now() - clock.now();
  const message = `this node's clock and the database's are ${Math.abs(offset)} ms apart (node ${offset < 0 ? 'behind' : 'ahead'})`;
  if (Math.abs(offset) <= CLOCKS_APART_MS) return ok(message);
  return warn(message, 'set the clocks with NTP or chrony on both machines');
};

/** So many are named; of a site that was never started there are some fifty. */
const NAMED = 5;

const namedOf = (missing: readonly string[]): string => {
  const others = missing.length - NAMED;
  return `${missing.slice(0, NAMED).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
};

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
    return warn(
      missing.length === names.length
        ? `none of the ${names.length} tables exists yet`
        : `${missing.length} of ${names.length} tables are missing: ${namedOf(missing)}`,
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

/** Due for longer than this: nobody serves it, or not fast enough. */
const LATE_MS = 60_000;

const hasTable = (app: App, name: string): Promise<boolean> =>
  app.strapi.db.getSchemaConnection().hasTable(name);

const count = async (rows: Knex.QueryBuilder): Promise<number> => {
  const [row] = (await rows.count({ n: '*' })) as { n: number | string }[];
  return Number(row?.n ?? 0);
};

/** For how long the row that has waited longest has been due, milliseconds; 0 where none is late. */
const lateness = async (rows: Knex.QueryBuilder, now: number): Promise<number> => {
  const [row] = (await rows.where('due_at', '>', 0).min({ oldest: 'due_at' })) as {
    oldest: number | string | null;
  }[];
  const oldest = Number(row?.oldest ?? now);
  return Math.max(0, now - oldest);
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
    count(queue().where({ section }).whereIn('group_id', known));
  const waiting = await inSection(SECTIONS.waiting);
  const failing = await inSection(SECTIONS.failing);
  const off = () =>
    db.table(WEBHOOKS_TABLE).where({ active: false }).whereNotNull('disabled_reason');
  const elsewhere = await count(off().where('disabled_reason', 'like', `${FROM_ELSEWHERE}%`));
  const broken = (await count(off())) - elsewhere;
  const due = queue().where({ state: QUEUE_STATES.ready }).whereIn('group_id', served);
  const late = await lateness(due, app.clock.now());
  const message = `deliveries: ${waiting} waiting, ${failing} failing; ${broken} webhooks were switched off${elsewhere > 0 ? `, ${elsewhere} more came from another site` : ''}${lateText(late)}`;
  if (late > LATE_MS) {
    return warn(
      message,
      'see to it that a process sends: a node with webhooks.dispatch, or switchboard worker'
    );
  }
  if (failing > 0 || broken > 0) {
    return warn(message, 'look at the causes in the log of deliveries, and fix the receivers');
  }
  if (elsewhere > 0) {
    return warn(message, 'switch on those that are to send from here');
  }
  return ok(message);
};

const posEvents: Check = async (app) => {
  if (!app.options.features.pos || !(await hasTable(app, RECORD_QUEUE_TABLE))) return null;
  const db = await app.db.current();
  const rows = () => db.table(POS_EVENTS_TABLE);
  const inState = (...states: string[]) => count(rows().whereIn('state', states));
  const waiting = await inState('pending');
  const mapping = await inState('needs_mapping', 'partially_applied');
  const failed = await inState('failed');
  const queued = db.table(RECORD_QUEUE_TABLE).where({ state: QUEUE_STATES.ready });
  const late = await lateness(queued, app.clock.now());
  const message = `records of tills: ${waiting} waiting, ${mapping} waiting for a mapping, ${failed} failed${lateText(late)}`;
  if (late > LATE_MS) {
    return warn(
      message,
      'see to it that a process applies them: a node with pos.process, or switchboard worker'
    );
  }
  if (failed > 0 || mapping > 0) {
    return warn(message, 'look at them in the admin panel, Point of sale, Events');
  }
  return ok(message);
};

/** The service for `switchboard doctor` (docs/operations.md#is-everything-in-order). */
interface Doctor {
  /** Checks that need no database. */
  examineSite(): Promise<NamedResult[]>;
  /** The rest, once the database is connected; nothing has to be bootstrapped. */
  examineDatabase(): Promise<NamedResult[]>;
}

interface NamedResult extends CheckResult {
  name: string;
}

/** One check that cannot be made says so, and the others are made all the same. */
const examine = async (
  app: App,
  checks: Readonly<Record<string, Check>>
): Promise<NamedResult[]> => {
  const results: NamedResult[] = [];
  for (const [name, look] of Object.entries(checks)) {
    try {
      const result = await look(app);
      if (result) results.push({ name, ...result });
    } catch (error) {
      const message = `could not be looked at: ${errorText(error)}`;
      results.push({ name, ...fail(message, 'see the log of the site and the database') });
    }
  }
  return results;
};

/** The command's half of the plugin. @param features all others, whose tables are looked for */
export const doctorOf = (features: readonly Feature[]): Feature => {
  const expected = (app: App): string[] => [
    SITE_TABLE,
    ...features
      .filter((feature) => isOn(feature, app.options.features))
      .flatMap((feature) => (feature.tables ?? []).map(({ tableName }) => tableName)),
  ];
  return {
    services: {
      doctor: ({ strapi }: { strapi: Core.Strapi }): Doctor => {
        const app = appOf(strapi);
        return {
          examineSite: () =>
            examine(app, { encryption_key: encryptionKey, environment, proxy, mcp, redis }),
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
