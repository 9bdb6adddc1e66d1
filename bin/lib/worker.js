'use strict';

const { startHealthServer } = require('./health-server');
const { createWorkingSite, waitForLocks } = require('./site');
const { wholeNumber } = require('./whole-number');

const usage = `Usage, in the folder of a Strapi site: switchboard worker [--only webhooks|pos] [--concurrency N]
       [--health-port N] [--health-host H]

Loads the site without its HTTP server and works until it is stopped: sends due deliveries and applies
till records, whatever webhooks.dispatch and pos.process are set to.

  --only webhooks   send only
  --only pos        apply only
  --concurrency N   max. concurrent requests, instead of webhooks.concurrency (1 to 1000)
  --health-port N   answer GET /health on this port: 200 while it works, 503 while it starts and stops
  --health-host H   listen address for GET /health, instead of 127.0.0.1; 0.0.0.0 for all
  --json            print messages to standard error, and { "serves", "started_at", "stopped_at" }
                    at its end

SIGTERM and SIGINT stop it: it finishes current work and takes no more.

Exit code: 0 if it was stopped, 2 if it could not start.
`;

const KINDS = ['webhooks', 'pos'];
const DOES = { webhooks: 'sends to webhooks', pos: 'applies what tills send' };

const kindsOf = (only) => {
  if (only === undefined) return KINDS;
  if (KINDS.includes(only)) return [only];
  throw new Error(`switchboard worker: --only must be webhooks or pos, not "${only}"`);
};

/** The address for `/health`: only this machine by default; undefined for nowhere. */
const healthOf = ({ 'health-host': host, 'health-port': given }) => {
  const port = wholeNumber('switchboard worker: --health-port', given, 1, 65_535);
  if (host !== undefined && (host === '' || port === undefined))
    throw new Error('switchboard worker: --health-host is an address, and goes with --health-port');
  return port === undefined ? undefined : { host: host ?? '127.0.0.1', port };
};

const readSettings = ({ only, concurrency, json = false, ...others }) => ({
  wanted: kindsOf(only),
  concurrency: wholeNumber('switchboard worker: --concurrency', concurrency, 1, 1000),
  health: healthOf(others),
  json,
});

/** The part of that which this site supports, known once its options are. */
const served = (strapi, wanted) => {
  if (!strapi.plugins.switchboard)
    throw new Error('The plugin switchboard is not on in config/plugins of this site.');
  const hasTills = strapi.config.get('plugin::switchboard')?.features?.pos !== false;
  const serves = wanted.filter((kind) => kind !== 'pos' || hasTills);
  if (serves.length === 0)
    throw new Error('Tills and stock are off on this site: features.pos is false in its options.');
  return serves;
};

/** How long a site that is being loaded is waited for when it is to stop. */
const LOADED_WITHIN_MS = 15_000;

/** How long SQLite's lock is waited for while the site is loaded; the plugin warns of a longer wait. */
const LOCK_WHILE_LOADING_MS = 1000;

const atMost = (milliseconds, work) =>
  Promise.race([
    work,
    new Promise((resolve) => {
      setTimeout(resolve, milliseconds);
    }),
  ]);

/**
 * Loads the site and resolves once everything works. The host ends the process itself on a signal,
 * after `strapi.destroy()`; what is to happen around that is put around this method. A site that is
 * half loaded cannot be destroyed: its load is waited for, and where that fails nothing was begun.
 */
const load = async (strapi, { onStopping, onStopped }) => {
  // The site's nodes run its own scheduled tasks: in workers as well, each would run twice.
  strapi.config.set('server.cron.enabled', false);
  const destroy = strapi.destroy.bind(strapi);
  const endWaits = waitForLocks(strapi, LOCK_WHILE_LOADING_MS);
  const loading = strapi.load();
  strapi.destroy = async () => {
    onStopping();
    await atMost(
      LOADED_WITHIN_MS,
      loading.catch(() => {})
    );
    if (strapi.isLoaded) await destroy();
    await onStopped();
  };
  await loading;
  endWaits();
};

const forEver = () => new Promise(() => {});

const run = async (values, output) => {
  const { wanted, concurrency, health, json } = readSettings(values);
  const status = { state: 'starting', serves: wanted };
  const say = (line) => {
    const text = `switchboard worker: ${line}`;
    if (json) output.complain(text);
    else output.result(text);
  };
  // Until there is a site that the host could stop, a signal has nothing to end but this process.
  const leave = () => process.exit(0);
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, leave);
  if (health) {
    await startHealthServer(health, () => status);
    say(`GET /health is answered on ${health.host}, port ${health.port}`);
  }
  const strapi = await createWorkingSite({
    sends: wanted.includes('webhooks'),
    applies: wanted.includes('pos'),
    concurrency,
  });
  for (const signal of ['SIGTERM', 'SIGINT']) process.off(signal, leave);
  const startedAt = new Date().toISOString();
  const onStopping = () => {
    status.state = 'stopping';
    say('takes no more work, and ends what it has begun');
  };
  const onStopped = async () => {
    say('stopped');
    const times = { started_at: startedAt, stopped_at: new Date().toISOString() };
    if (json) output.json({ serves: status.serves, ...times });
    await output.flushed();
  };
  try {
    await load(strapi, { onStopping, onStopped });
    status.serves = served(strapi, wanted);
  } catch (error) {
    // A site that is stopped while it loads fails at that; the host is ending the process.
    if (status.state === 'stopping') return forEver();
    throw error;
  }
  if (status.state === 'starting') {
    status.state = 'working';
    say(`process ${process.pid} ${status.serves.map((kind) => DOES[kind]).join(' and ')}`);
  }
  return forEver();
};

module.exports = {
  summary: 'send deliveries and apply till records in a separate process',
  usage,
  options: {
    only: { type: 'string' },
    concurrency: { type: 'string' },
    'health-port': { type: 'string' },
    'health-host': { type: 'string' },
  },
  run,
};
