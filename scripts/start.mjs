// npm start: a production-like Strapi site with the plugin, a receiver that shows what it sends, and a
// till. `npm start -- --help` has its flags and variables (lib/start-options.mjs). A second start goes
// on with the data of the first one. Nothing imported here may need node_modules: on a fresh clone this
// is what installs it.
import fs from 'node:fs';
import path from 'node:path';
import { buildPlaygroundWhenStale } from './lib/admin-build.mjs';
import { startChild } from './lib/children.mjs';
import { PLAYGROUND } from './lib/paths.mjs';
import { writeMissingSecrets } from './lib/playground-secrets.mjs';
import { requireFreePorts } from './lib/ports.mjs';
import { buildPluginWhenStale, installWhatIsMissing } from './lib/prepare.mjs';
import { requireRedis } from './lib/redis-check.mjs';
import { endRunning } from './lib/run.mjs';
import { HELP, readStartOptions } from './lib/start-options.mjs';

const HOST = process.env.HOST ?? '127.0.0.1';
const PORT = Number(process.env.PORT ?? 1337);
const RECEIVER_PORT = Number(process.env.RECEIVER_PORT ?? 4400);
const { TILL_PORT } = process.env;
const DATA = path.resolve(process.env.PLAYGROUND_DATA ?? path.join(PLAYGROUND, '.tmp'));
const DATABASE = path.join(DATA, 'data.db');
const PUBLIC = path.join(DATA, 'public');
const TILL = path.join(PLAYGROUND, 'till.mjs');

/** An address that a browser can open: a wildcard listens on every one, and is none itself. */
const SHOWN_HOST = { '0.0.0.0': '127.0.0.1', '::': '[::1]', '::1': '[::1]' }[HOST] ?? HOST;
const siteUrl = `http://${SHOWN_HOST}:${PORT}`;
const receiverPage = `http://${SHOWN_HOST}:${RECEIVER_PORT}/`;
const receiverUrl = `${receiverPage}hooks`;

let stopping;

/**
 * Youngest first: the till, then the site, which lets the deliveries that are under way finish,
 * then the receiver that they go to.
 */
const stopAll = (code) => {
  stopping ??= (async () => {
    endRunning();
    if (startChild.all.length > 0) console.log('\nStopping …');
    for (const child of [...startChild.all].reverse()) await child.stop();
    process.exit(code);
  })();
  return stopping;
};

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stopAll(0));

const endWith = (child) =>
  child.ended.then((how) => {
    if (stopping) return;
    console.error(`The ${child.name} ended (${how}).`);
    void stopAll(1);
  });

const startSite = ({ engine, redis }) =>
  startChild('site', path.join(PLAYGROUND, 'server.js'), {
    cwd: PLAYGROUND,
    env: {
      NODE_ENV: 'production',
      HOST,
      PORT: String(PORT),
      DATABASE_FILENAME: DATABASE,
      PLAYGROUND_PUBLIC_DIR: PUBLIC,
      SWITCHBOARD_SCHEDULER: JSON.stringify(engine === 'bullmq' ? { engine, redis } : { engine }),
      STRAPI_TELEMETRY_DISABLED: process.env.STRAPI_TELEMETRY_DISABLED ?? 'true',
    },
  });

/** Only what a playground made: PLAYGROUND_DATA may name a folder that holds other things. */
const forgetData = () => {
  const database = ['data.db', 'data.db-wal', 'data.db-shm'];
  const notes = ['playground.json', 'receiver-secret', 'till.json', 'till-queue'];
  for (const name of [...database, ...notes, 'public']) {
    fs.rmSync(path.join(DATA, name), { recursive: true, force: true });
  }
};

const PORTS = [
  { what: 'the site', variable: 'PORT', port: PORT },
  { what: 'the receiver', variable: 'RECEIVER_PORT', port: RECEIVER_PORT },
];
// Without a chosen port, the till's page finds a free one: other playgrounds may run.
if (TILL_PORT !== undefined) {
  PORTS.push({ what: 'the till', variable: 'TILL_PORT', port: Number(TILL_PORT) });
}

const startReceiver = () =>
  startChild('receiver', path.join(PLAYGROUND, 'receiver.mjs'), {
    env: { HOST, PORT: String(RECEIVER_PORT), DATA, SITE_URL: siteUrl },
  });

/** As somebody would on the receiver's page. */
const answerWith = (mode) =>
  fetch(`${receiverPage}configure`, {
    method: 'POST',
    headers: { 'x-receiver': '1' },
    body: JSON.stringify({ mode }),
  });

const startTill = async (apiToken) => {
  const till = await startChild('till', TILL, {
    env: { HOST, SITE_URL: siteUrl, API_TOKEN: apiToken ?? '', DATA },
  });
  void endWith(till);
  return till.message;
};

/** Writes the links of the tour on the overview page; without this file there is no tour. */
const writeTour = ({ hasWeek, startedAt }, tillPage) => {
  const file = path.join(PUBLIC, 'playground-tour.json');
  if (!hasWeek) return fs.rmSync(file, { force: true });
  fs.mkdirSync(PUBLIC, { recursive: true });
  const tour = { started: startedAt, receiver: receiverPage, till: tillPage ?? null };
  return fs.writeFileSync(file, JSON.stringify(tour));
};

const report = ({ login, hasWeek }, till, { engine, redis }) => {
  const panel = `${siteUrl}/admin`;
  const { host } = new URL(redis);
  const lines = [
    ['Admin panel', panel],
    ['E-mail', login?.email ?? 'as you registered it'],
    ['Password', login?.password ?? 'as you chose it'],
    ...(hasWeek ? [['Tour', `${panel}/plugins/switchboard/overview  (start here)`]] : []),
    ['Receiver', `${receiverPage}  (what arrived, as it arrives)`],
    ...(till ? [['Till', till]] : []),
    ...(engine === 'bullmq' ? [['Engine', `bullmq, with the Redis at ${host}`]] : []),
  ];
  const table = lines.map(([name, value]) => `  ${name.padEnd(12)} ${value}`).join('\n');
  const hint = hasWeek
    ? 'The tour is a list of things to try, at the top of CRM > Overview.\n'
    : 'Create or edit a contact under Content Manager > Contact and watch the receiver.\n';
  console.log(
    `\nThe playground is ready.\n\n${table}\n\n${hint}` +
      'Ctrl-C stops all of it; the data stays. `npm start -- --fresh` begins again.'
  );
};

const main = async () => {
  const options = readStartOptions(process.argv.slice(2), process.env);
  if (options.help) return console.log(HELP);
  await requireFreePorts(HOST, PORTS);
  await installWhatIsMissing();
  if (options.engine === 'bullmq') await requireRedis(options.redis);
  await buildPluginWhenStale();
  writeMissingSecrets();
  await buildPlaygroundWhenStale();
  if (options.fresh) forgetData();
  fs.mkdirSync(path.join(PUBLIC, 'uploads'), { recursive: true });

  // Installing and building took minutes: somebody else may have come in between.
  await requireFreePorts(HOST, PORTS);
  console.log('Starting the site …');
  // The receiver first: the site sends what is still pending as soon as it is up.
  const receiver = await startReceiver();
  const site = await startSite(options);
  for (const child of [receiver, site]) void endWith(child);
  const withWeek = process.env.PLAYGROUND_SHOP !== 'empty';
  if (withWeek && !fs.existsSync(path.join(DATA, 'playground.json'))) {
    console.log('Filling it with a week of a shop, in which its receiver was down twice …');
  }
  const { preparePlayground } = await import('./lib/seed.mjs');
  const made = await preparePlayground({
    ...{ siteUrl, receiverUrl, withWeek, answerWith },
    dataFolder: DATA,
    databaseFile: DATABASE,
    onSecret: (secret) => receiver.send({ secret }),
  });
  const till = fs.existsSync(TILL) ? await startTill(made.apiToken) : undefined;
  writeTour(made, till?.url);
  report(made, till?.note, options);
  process.send?.({ ready: true, siteUrl, receiverPage, sitePid: site.pid });
};

main().catch((error) => {
  if (stopping) return;
  console.error(`\n${error.message}`);
  void stopAll(1);
});
