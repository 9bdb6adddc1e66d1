import { type FollowedFacts, ownFacts, readFollowed } from '../../webhooks/sending/nodes';
import { proxyWarning } from '../../net/client-address';
import { describePrivateAddresses, type GivenNodeEnv } from '../../net/guard';
import { stopWithin } from '../../scheduling/recorder';
import { hasEncryptionKey, MISSING_KEY_HELP } from '../../secrets/secret-box';
import { type Check, fail, ok, warn } from '../types';
import type { App } from '../../app';

/** What can be said of a site by its settings and its environment alone. */

export const encryptionKey: Check = {
  name: 'encryption_key',
  look: (app) =>
    hasEncryptionKey(app)
      ? ok('admin.secrets.encryptionKey is set')
      : fail(
          'admin.secrets.encryptionKey is not set: secrets can neither be stored nor read',
          MISSING_KEY_HELP
        ),
};

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

/** What the site says; where the database cannot be asked, the command's own environment. */
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

/** Of the environment of the site's own process; the one of the command may be another. */
export const environment: Check = {
  name: 'environment',
  async look(app) {
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
  },
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

export const proxy: Check = {
  name: 'proxy',
  look(app) {
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
  },
};

export const mcp: Check = {
  name: 'mcp',
  look: (app) =>
    app.strapi.config.get('server.mcp.enabled')
      ? ok('server.mcp.enabled is on: assistants with a token may use the tools of the site')
      : ok(
          'server.mcp.enabled is off: no tools are offered to assistants',
          'set mcp.enabled to true in config/server to offer them'
        ),
};
