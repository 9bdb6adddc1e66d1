import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import type { Core } from '@strapi/strapi';
import { getOptions } from '../../config';
import { getClock } from '../../database/clock';
import { type Executor, table } from '../../database/connection';
import { readSiteInstance, siteInstance } from '../../database/site-instance';
import type { PlainTable } from '../../database/tables/plain-tables';
import {
  type GivenNodeEnv,
  givenNodeEnv,
  judgePrivateAddresses,
  type PrivateAddressPolicy,
} from '../../net/guard';
import { errorText } from '../../runtime/text';

/**
 * What each node of the site says of the environment that it runs in, for the commands of
 * `switchboard`: one that is run beside a site has an environment of its own, which says nothing of
 * the site's.
 */
export const nodesTable: PlainTable = {
  tableName: 'switchboard_nodes',
  attributes: {
    id: { type: 'increments' },
    /** Which node: a digest of its machine, folder and port, so that one that starts again is the same. */
    name: { type: 'string' },
    /** `AddressFacts` as JSON. */
    facts: { type: 'text' },
    /** By the database's clock, epoch milliseconds. */
    seen_at: { type: 'biginteger' },
    /** Null while it runs, and of one that was killed. */
    stopped_at: { type: 'biginteger' },
    /** Of the site that it is a node of: in a copied database the original's nodes are not its own. */
    site_instance: { type: 'string' },
  },
  indexes: [{ name: 'sb_node_name', columns: ['name'], type: 'unique' }],
};

/** What a node says: its environment, and whether private addresses are open to it. */
export interface AddressFacts extends PrivateAddressPolicy {
  nodeEnv: GivenNodeEnv;
  /** The list form of `webhooks.allowPrivateNetworks`. */
  allowed: readonly string[];
}

/** Facts that a command goes by. `from`: a node that runs, the last that ran, or the command's own. */
export interface FollowedFacts extends AddressFacts {
  from: 'running' | 'stopped' | 'command';
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SAY_EVERY_MS = 10 * MINUTE_MS;
/** A node that said nothing for so long is taken for one that was killed. */
const SILENT_MS = 30 * MINUTE_MS;
const FORGET_MS = 30 * 24 * HOUR_MS;

/** Whether this is a process of the command `switchboard`, and no node of the site. */
const isCommand = (strapi: Core.Strapi): boolean =>
  strapi.config.get('switchboard-command') !== undefined;

/** What this process has to say of itself. */
export const ownFacts = (strapi: Core.Strapi): AddressFacts => {
  const option = getOptions(strapi).webhooks.allowPrivateNetworks;
  const nodeEnv = givenNodeEnv();
  return {
    ...judgePrivateAddresses({
      option,
      nodeEnv,
      // `strapi develop` alone starts the host this way.
      develop: strapi.config.get('autoReload') === true,
    }),
    nodeEnv,
    allowed: Array.isArray(option) ? option : [],
  };
};

export interface SaidFacts {
  facts: AddressFacts;
  seenAt: number;
  stoppedAt: number | null;
}

/**
 * What holds for a command, of what nodes have said. While several run, an address must be allowed by
 * each: any of them may be the one that sends. While none runs, the last that did counts.
 * @returns null where no node has said anything
 */
export const judgeNodes = (said: readonly SaidFacts[], now: number): FollowedFacts | null => {
  const byTime = [...said].sort((one, other) => other.seenAt - one.seenAt);
  const running = byTime.filter(
    ({ stoppedAt, seenAt }) => stoppedAt === null && now - seenAt < SILENT_MS
  );
  const [last] = byTime;
  if (!last) return null;
  if (running.length === 0) return { ...last.facts, from: 'stopped' };
  const refusing = running.filter(({ facts }) => !facts.open);
  const [strictest = running[0] as SaidFacts, ...others] = refusing;
  const allowed = strictest.facts.allowed.filter((cidr) =>
    others.every(({ facts }) => facts.allowed.includes(cidr))
  );
  return { ...strictest.facts, allowed, from: 'running' };
};

interface NodeRow {
  facts: string;
  seen_at: number | string;
  stopped_at: number | string | null;
  /** Null of a node of an earlier version. */
  site_instance?: string | null;
}

/** What the nodes of a site said; nothing of those of the original, where its database is a copy. */
export const saidBy = (rows: readonly NodeRow[], site: string | null): SaidFacts[] =>
  rows
    .filter(({ site_instance: own = null }) => own === null || own === site)
    .map(({ facts, seen_at: seenAt, stopped_at: stoppedAt }) => ({
      facts: JSON.parse(facts) as AddressFacts,
      seenAt: Number(seenAt),
      stoppedAt: stoppedAt === null ? null : Number(stoppedAt),
    }));

const rowsOf = (strapi: Core.Strapi) =>
  table(strapi, strapi.db.connection as Executor, nodesTable.tableName);

/** What the site says, for a command; its own facts where no node of the site ever said anything. */
export const readFollowed = async (strapi: Core.Strapi): Promise<FollowedFacts> => {
  const ofCommand: FollowedFacts = { ...ownFacts(strapi), from: 'command' };
  // `doctor` changes nothing, and may look at a database that no node of this version has started on.
  const tables = await strapi.db.dialect.schemaInspector.getTables();
  if (!tables.includes(nodesTable.tableName)) return ofCommand;
  const rows = (await rowsOf(strapi)) as NodeRow[];
  const site = await readSiteInstance(strapi);
  const clock = getClock(strapi);
  await clock.sync();
  return judgeNodes(saidBy(rows, site), clock.now()) ?? ofCommand;
};

const nameOf = (strapi: Core.Strapi): string =>
  createHash('sha256')
    .update(JSON.stringify([hostname(), process.cwd(), strapi.config.get('server.port')]))
    .digest('base64url')
    .slice(0, 24);

const say = async (strapi: Core.Strapi, stopped: boolean): Promise<void> => {
  const clock = getClock(strapi);
  await clock.sync();
  const row = {
    name: nameOf(strapi),
    facts: JSON.stringify(ownFacts(strapi)),
    seen_at: clock.now(),
    stopped_at: stopped ? clock.now() : null,
    site_instance: siteInstance(strapi),
  };
  await rowsOf(strapi).insert(row).onConflict('name').merge();
};

const timers = new WeakMap<Core.Strapi, NodeJS.Timeout>();
const followed = new WeakMap<Core.Strapi, FollowedFacts>();

/**
 * At the start of a process: a node of the site says what it is, and goes on saying it; a command reads
 * what the site says.
 */
export const prepareNodes = async (strapi: Core.Strapi): Promise<void> => {
  if (isCommand(strapi)) {
    followed.set(strapi, await readFollowed(strapi));
    return;
  }
  await say(strapi, false);
  await rowsOf(strapi)
    .where('seen_at', '<', getClock(strapi).now() - FORGET_MS)
    .delete();
  const timer = setInterval(() => {
    say(strapi, false).catch((error: unknown) =>
      strapi.log.warn(`switchboard: this node could not say that it runs: ${errorText(error)}`)
    );
  }, SAY_EVERY_MS);
  timers.set(strapi, timer.unref());
};

/** A node that stops in order says so; what it said last stays. */
export const leaveNodes = async (strapi: Core.Strapi): Promise<void> => {
  const timer = timers.get(strapi);
  if (!timer) return;
  clearInterval(timer);
  timers.delete(strapi);
  // A database that is away must not keep a site from stopping.
  await say(strapi, true).catch(() => {});
};

/** What private addresses are judged by in this process. */
export const addressFacts = (strapi: Core.Strapi): AddressFacts =>
  followed.get(strapi) ?? ownFacts(strapi);
