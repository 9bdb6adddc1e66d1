import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { createFullAccessToken, signInFirstAdmin } from './accounts';
import { count, timed } from './costs';
import { createDatabase, databaseEnv, type DatabaseKind, dropDatabase } from './databases';
import { type Answer, send, type SendOptions } from './http';
import { SCRATCH } from './paths';
import { pluginPath } from './plugin-build';
import { freePort, SiteProcess, staysInItsSite } from './site-process';
import { isPlainEnv } from './spare-processes';
import { createFromTemplate } from './templates';
import { tidyScratch } from './tidy';

export interface SiteOptions {
  /** SQLite by default. */
  database?: DatabaseKind;
  /**
   * The name of a database (a file's path for SQLite) that exists: for a second process on the
   * same data, see `site.sibling()`. It is not dropped at the end.
   */
  databaseName?: string;
  /** Whether a site like this has booted on `databaseName` before. */
  isCopy?: boolean;
  /** On an empty database; else on a copy of what a first boot leaves (`templates.ts`). */
  firstBoot?: boolean;
  /** Fills the new, empty database before the first boot, e.g. from a fixture (`fixtures.ts`). */
  prepare?: (kind: DatabaseKind, databaseName: string) => Promise<void>;
  /** The plugin's options. Loopback addresses are allowed unless `webhooks.allowPrivateNetworks` is given. */
  options?: Record<string, unknown>;
  /** Further environment of the process; `undefined` removes a variable. */
  env?: Record<string, string | undefined>;
  /** `test` by default; `production` and `development` change how the plugin judges addresses. */
  nodeEnv?: string;
  /** Modules with `register`, `bootstrap` and/or `destroy`, run as the site's own `src/index`. */
  setupFiles?: string[];
  /** Loopback port; a free one by default. */
  port?: number;
  /** `false`: no administrator and no token are made; `adminToken` and `apiToken` are empty. */
  accounts?: boolean;
}

export type As =
  'api' | 'admin' | 'nobody' | { token: string } | { basic: [user: string, password: string] };

export interface RequestOptions {
  body?: unknown;
  headers?: SendOptions['headers'];
  /** `api` (full-access API token) by default for /api, `admin` (super admin) else. */
  as?: As;
  timeoutMs?: number;
}

/** What a function given to `evaluate` receives first, inside the site's process. */
export interface InSite {
  // The host's own type wants each method's exact input; tests poke around.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  strapi: any;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  state: Record<string, any>;
  require: NodeJS.Require;
}

export interface Site {
  readonly url: string;
  readonly port: number;
  readonly database: DatabaseKind;
  readonly databaseName: string;
  /** JWT of the first super admin. */
  readonly adminToken: string;
  /** A full-access API token. */
  readonly apiToken: string;
  readonly pid: number | undefined;
  readonly running: boolean;
  request<T = any>(method: string, path: string, options?: RequestOptions): Promise<Answer<T>>; // eslint-disable-line @typescript-eslint/no-explicit-any
  /** An operation in the site's process, outside of any request; tests/support/README.md. */
  control<T = any>(op: string, args?: Record<string, unknown>): Promise<T>; // eslint-disable-line @typescript-eslint/no-explicit-any
  /** Runs a self-contained function in the site's process; arguments and result travel as JSON. */
  evaluate<T, A extends unknown[]>(
    work: (site: InSite, ...args: A) => T | Promise<T>,
    ...args: A
  ): Promise<T>;
  /** Another process on the same database, on a port of its own. */
  sibling(changes?: Omit<SiteOptions, 'database' | 'databaseName'>): Promise<Site>;
  /** Ends the process (`SIGKILL` by default: a crash) and keeps the data. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Ends the site as an operator would; starts it again on the same data and port, with other options if given. */
  restart(changes?: Pick<SiteOptions, 'options' | 'env' | 'nodeEnv' | 'setupFiles'>): Promise<void>;
  /** Ends the process as an operator would (`SIGTERM`) and removes what was made for it. */
  stop(): Promise<void>;
  /** What a command that is run in `SITE_DIR` finds this site's database by. */
  env(): NodeJS.ProcessEnv;
  /** Everything the process printed, restarts included. */
  log(): string;
}

const withLoopback = (options: Record<string, unknown> = {}): Record<string, unknown> => ({
  ...options,
  webhooks: {
    allowPrivateNetworks: ['127.0.0.0/8', '::1/128'],
    ...((options.webhooks as Record<string, unknown>) ?? {}),
  },
});

const environment = (
  settings: SiteOptions,
  where: { kind: DatabaseKind; databaseName: string; port: number; folder: string; isCopy: boolean }
): Record<string, string | undefined> => {
  const { NODE_OPTIONS: _jest, JEST_WORKER_ID: _worker, ...inherited } = process.env;
  return {
    ...inherited,
    NODE_ENV: settings.nodeEnv ?? 'test',
    HOST: '127.0.0.1',
    PORT: String(where.port),
    PUBLIC_URL: `http://127.0.0.1:${where.port}`,
    STRAPI_TELEMETRY_DISABLED: 'true',
    STRAPI_DISABLE_UPDATE_NOTIFICATION: 'true',
    BROWSER: 'none',
    SWITCHBOARD_PATH: pluginPath(),
    SWITCHBOARD_OPTIONS: JSON.stringify(withLoopback(settings.options)),
    SITE_PUBLIC_DIR: path.join(where.folder, 'public'),
    SITE_IS_COPY: where.isCopy ? 'true' : undefined,
    SITE_SETUP_FILES: (settings.setupFiles ?? []).join(path.delimiter),
    ...databaseEnv(where.kind, where.databaseName),
    ...settings.env,
  };
};

const chooseAuthorization = (site: Site, as: As): string | undefined => {
  if (as === 'nobody') return undefined;
  if (as === 'api') return `Bearer ${site.apiToken}`;
  if (as === 'admin') return `Bearer ${site.adminToken}`;
  if ('token' in as) return `Bearer ${as.token}`;
  return `Basic ${Buffer.from(as.basic.join(':')).toString('base64')}`;
};

/** Whether a process in which such a site ran is like any other's afterwards. */
const isPlain = ({ setupFiles = [], env = {} }: SiteOptions): boolean =>
  setupFiles.every((file) => staysInItsSite(fs.readFileSync(file, 'utf8'))) && isPlainEnv(env);

const makeTemplate = (kind: DatabaseKind) => async (databaseName: string) => {
  const { apiToken, adminToken, stop } = await startSite({ database: kind, databaseName });
  await stop();
  return { apiToken, adminToken };
};

/**
 * Boots tests/site in a process of its own, on a database of its own, and signs in.
 * Stop it in `afterAll`: a file that leaves a site running fails.
 */
export const startSite = async (given: SiteOptions = {}): Promise<Site> => {
  tidyScratch();
  let settings = given;
  const kind = given.database ?? 'sqlite';
  const port = given.port ?? (await freePort());
  const folder = path.join(
    SCRATCH,
    'sites',
    `${process.pid}-${crypto.randomBytes(4).toString('hex')}`
  );
  fs.mkdirSync(path.join(folder, 'public/uploads'), { recursive: true });
  const owned = given.databaseName === undefined;
  const isFirstBoot = given.firstBoot ?? (given.accounts === false || given.prepare !== undefined);
  const file = path.join(folder, 'data.db');
  const copy =
    owned && !isFirstBoot
      ? await timed('copying', () => createFromTemplate(kind, file, makeTemplate(kind)))
      : null;
  const databaseName =
    copy?.databaseName ??
    given.databaseName ??
    (kind === 'sqlite' ? file : await createDatabase(kind));

  const isCopy = copy !== null || given.isCopy === true;
  const where = { kind, databaseName, port, folder, isCopy };

  let earlierLog = '';
  let current!: SiteProcess;
  const boot = async (): Promise<void> => {
    const env = environment(settings, where);
    current = new SiteProcess(env, isPlain(settings));
    count('boots');
    await timed('booting', () => current.ready());
    where.isCopy = true;
  };
  const cleanUp = async (): Promise<void> => {
    fs.rmSync(folder, { recursive: true, force: true });
    if (owned && kind !== 'sqlite') await dropDatabase(kind, databaseName);
  };

  const tokens = { admin: '', api: '' };
  const site: Site = {
    url: `http://127.0.0.1:${port}`,
    port,
    database: kind,
    databaseName,
    get adminToken() {
      return tokens.admin;
    },
    get apiToken() {
      return tokens.api;
    },
    get pid() {
      return current.pid;
    },
    get running() {
      return current.running;
    },
    request(method, route, { body, headers, as, timeoutMs } = {}) {
      const who = as ?? (route.startsWith('/api') ? 'api' : 'admin');
      return send({
        method,
        url: `${site.url}${route}`,
        headers: { authorization: chooseAuthorization(site, who), ...headers },
        body,
        timeoutMs,
      });
    },
    control: (op, args = {}) => current.control(op, args) as Promise<never>,
    evaluate: (work, ...args) =>
      current.control('evaluate', { source: work.toString(), args }) as Promise<never>,
    sibling: (changes = {}) =>
      startSite({
        ...given,
        port: undefined,
        ...changes,
        database: kind,
        databaseName,
        isCopy: true,
      }),
    kill: (signal = 'SIGKILL') => current.kill(signal),
    async restart(changes = {}) {
      await timed('stopping', () => current.retire());
      earlierLog += current.log();
      settings = { ...settings, ...changes };
      await boot();
    },
    async stop() {
      await timed('stopping', () => current.retire());
      await cleanUp();
    },
    env: () => environment(settings, where) as NodeJS.ProcessEnv,
    log: () => earlierLog + current.log(),
  };

  try {
    if (owned) await given.prepare?.(kind, databaseName);
    await boot();
    if (given.accounts !== false) {
      tokens.admin = copy?.adminToken ?? (await signInFirstAdmin(site));
      tokens.api = copy?.apiToken ?? (await createFullAccessToken(site));
    }
  } catch (error) {
    await current?.kill('SIGKILL');
    await cleanUp();
    throw error;
  }
  return site;
};
