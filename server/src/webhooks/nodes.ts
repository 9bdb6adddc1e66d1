import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PlainTable } from '../database/tables/plain-tables';
import { parseCidrList } from '../net/address';
import {
  type AddressGuard,
  createAddressGuard,
  describePrivateAddresses,
  type GivenNodeEnv,
  givenNodeEnv,
  judgePrivateAddresses,
  type PrivateAddressPolicy,
} from '../net/guard';
import { whenLoaded } from '../runtime/event-loop';
import { logFailure } from '../runtime/text';
import { REMEMBERED_MS, subscribersOf } from './subscriptions';
import { WEBHOOK } from './tables';
import type { App, Slot } from '../app';

/**
 * The site's nodes with their environments, for `switchboard` commands, which have an environment of their own. Nodes
 * cache subscribers for half a second, so changes of webhooks are answered later if others run.
 */
export const nodesTable: PlainTable = {
  tableName: 'switchboard_nodes',
  attributes: {
    name: { type: 'string' },
    /** `AddressFacts` as JSON. */
    facts: { type: 'text' },
    /** By the database's clock, epoch milliseconds. */
    seen_at: { type: 'biginteger' },
    /** Null while it runs, and of one that was killed. */
    stopped_at: { type: 'biginteger' },
    /** The site that it is a node of: in a copied database the original's nodes are not its own. */
    site_instance: { type: 'string' },
  },
  indexes: [{ name: 'sb_node_name', columns: ['name'], type: 'unique' }],
};

/** A node's facts: its environment, and if private addresses are open to it. */
export interface AddressFacts extends PrivateAddressPolicy {
  nodeEnv: GivenNodeEnv;
  /** The list form of `webhooks.allowPrivateNetworks`. */
  allowed: readonly string[];
}

/** Facts that a command goes by. `from`: a node that runs, the last that ran, or the command's own. */
export interface FollowedFacts extends AddressFacts {
  from: 'running' | 'stopped' | 'command';
}

const SAY_EVERY_MS = 10_000;
/** A node that is silent for this long counts as killed. */
const SILENT_MS = 30_000;
/** Before others take a node for one that was killed, it remembers nothing: their clocks may differ. */
const TRUSTED_MS = 20_000;

export const ownFacts = (app: App): AddressFacts => {
  const option = app.options.webhooks.allowPrivateNetworks;
  const nodeEnv = givenNodeEnv();
  return {
    ...judgePrivateAddresses({
      option,
      nodeEnv,
      // Only `strapi develop` starts the host this way.
      develop: app.strapi.config.get('autoReload') === true,
    }),
    nodeEnv,
    allowed: Array.isArray(option) ? option : [],
  };
};

export interface NodeRow {
  facts: string;
  seen_at: number | string;
  stopped_at: number | string | null;
  /** Null of a node of an earlier version. */
  site_instance?: string | null;
}

/**
 * The node facts that apply to a command; without those of the original, if the database is a copy. Several running
 * nodes must all allow an address, as any may send. Without running ones, the last that ran counts. Null without nodes.
 */
export const judgeNodes = (
  rows: readonly NodeRow[],
  site: string | null,
  now: number
): FollowedFacts | null => {
  const byTime = rows
    .filter(({ site_instance: own = null }) => own === null || own === site)
    .map((row) => ({ ...row, facts: JSON.parse(row.facts) as AddressFacts }))
    .sort((one, other) => Number(other.seen_at) - Number(one.seen_at));
  const running = byTime.filter(
    ({ stopped_at: stoppedAt, seen_at: seenAt }) =>
      stoppedAt === null && now - Number(seenAt) < SILENT_MS
  );
  const [last] = byTime;
  if (!last) return null;
  const [any] = running;
  if (!any) return { ...last.facts, from: 'stopped' };
  const refusing = running.filter(({ facts }) => !facts.open);
  const [strictest = any, ...others] = refusing;
  const allowed = strictest.facts.allowed.filter((cidr) =>
    others.every(({ facts }) => facts.allowed.includes(cidr))
  );
  return { ...strictest.facts, allowed, from: 'running' };
};

const rowsOf = (app: App) => app.db.pool.table(nodesTable.tableName);

/** The site's facts, for a command; its own if no node of the site ever wrote any. */
export const readFollowed = async (app: App): Promise<FollowedFacts> => {
  const ofCommand: FollowedFacts = { ...ownFacts(app), from: 'command' };
  // `doctor` changes nothing, and may look at a database that no node of this version has started on.
  const tables = await app.strapi.db.dialect.schemaInspector.getTables();
  if (!tables.includes(nodesTable.tableName)) return ofCommand;
  const rows = (await rowsOf(app)) as NodeRow[];
  const site = await app.site.read();
  await app.clock.sync();
  return judgeNodes(rows, site, app.clock.now()) ?? ofCommand;
};

const ownName = (): string => randomUUID();

const say = async (app: App, stopped: boolean): Promise<void> => {
  const subscribers = subscribersOf(app);
  const until = stopped ? 0 : performance.now() + TRUSTED_MS;
  if (stopped) subscribers.rememberUntil = until;
  await app.clock.sync();
  const now = app.clock.now();
  const row = {
    name: app.part(ownName),
    facts: JSON.stringify(ownFacts(app)),
    seen_at: now,
    stopped_at: stopped ? now : null,
    site_instance: app.site.instance,
  };
  await rowsOf(app).insert(row).onConflict('name').merge();
  subscribers.rememberUntil = until;
};

/** True if another process of the site runs, or was killed less than half a minute ago. */
const areOthersRunning = async (app: App): Promise<boolean> => {
  const others = rowsOf(app)
    .whereNull('stopped_at')
    .whereNot({ name: app.part(ownName) })
    .where('seen_at', '>', app.clock.now() - SILENT_MS)
    .where((own) => own.where({ site_instance: app.site.instance }).orWhereNull('site_instance'));
  return (await others.first('id')) !== undefined;
};

/**
 * Resolves once no process uses subscribers from before a committed change; at once without other nodes. Does not wait
 * in a caller's transaction: others see the change half a second after the commit.
 */
export const awaitOtherNodes = async (app: App): Promise<void> => {
  if (app.db.inTransaction()) return;
  const from = performance.now();
  // The change is made, whether or not the database can still be asked.
  const areOthers = await areOthersRunning(app).catch(() => true);
  if (areOthers) await sleep(REMEMBERED_MS - (performance.now() - from));
};

/** Delays the document service's answers to changes of webhooks likewise. To be called in `register`. */
export const answerAfterOtherNodes = (app: App): void => {
  app.strapi.documents.use(async ({ uid, action }, next) => {
    const result = await next();
    if (uid === WEBHOOK && !/^(find|count)/.test(action)) await awaitOtherNodes(app);
    return result;
  });
};

const beats = (): Slot<{ timer: NodeJS.Timeout; saying: Promise<void> }> => ({});
const followed = (): Slot<FollowedFacts> => ({});

/** At the start: a node publishes its facts, and keeps them fresh; a command reads the site's. */
export const prepareNodes = async (app: App): Promise<void> => {
  // A process of the command `switchboard` is no node of the site.
  if (app.strapi.config.get('switchboard-command') !== undefined) {
    app.part(followed).value = await readFollowed(app);
    return;
  }
  await say(app, false);
  // While this one runs, the last facts of stopped nodes do not count.
  const gone = await rowsOf(app)
    .where('seen_at', '<', app.clock.now() - SILENT_MS)
    .orWhereNotNull('stopped_at')
    .pluck('id');
  await rowsOf(app).whereIn('id', gone).delete();
  const failed = logFailure(app, 'this node could not say that it runs', 'warn');
  const timer = setInterval(() => {
    beat.saying = say(app, false).catch(failed);
  }, SAY_EVERY_MS);
  const beat = { timer: timer.unref(), saying: Promise.resolve() };
  app.part(beats).value = beat;
};

/** A node that stops regularly records it; its last facts stay. */
export const leaveNodes = async (app: App): Promise<void> => {
  const beat = app.part(beats).value;
  if (!beat) return;
  clearInterval(beat.timer);
  delete app.part(beats).value;
  await beat.saying;
  // A database that is away must not keep a site from stopping.
  await say(app, true).catch(() => {});
};

/** The facts that private addresses are judged by in this process. */
export const addressFacts = (app: App): AddressFacts => app.part(followed).value ?? ownFacts(app);

const hookOf = (app: App) => app.hooks.get('service_crm_webhook_allow_local');

/** True if private addresses are open now, by the facts of the process and what handlers say. */
export const isLocalAllowed = async (app: App, { open }: Pick<AddressFacts, 'open'>) => {
  const hook = hookOf(app);
  return hook.getHandlers().length === 0 ? open : (await hook.call(open)) === true;
};

/** The site's guard: environment, option and hook (docs/private-addresses.md); commands use the nodes' facts. */
export const createSiteGuard = (app: App): AddressGuard => {
  const facts = addressFacts(app);
  return createAddressGuard({
    allowedCidrs: parseCidrList(facts.allowed),
    isLocalAllowed: () => isLocalAllowed(app, facts),
  });
};

/** Logs whether private addresses are open, once the site has started with its handlers; returns a cancel function. */
export const announcePrivateAddresses = (app: App): (() => void) =>
  whenLoaded(app.strapi, () => {
    const policy = addressFacts(app);
    const hook = hookOf(app);
    void hook.call(policy.open).then((answer) => {
      const hookSays = hook.getHandlers().length > 0 ? answer === true : null;
      app.log.info(`switchboard: ${describePrivateAddresses(policy, hookSays)}`);
    });
  });
