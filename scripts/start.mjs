// npm start: a production-like Strapi site with the plugin, and a receiver that shows what it sends.
//
// `npm start -- --fresh` begins with an empty database.
// PORT (1337), RECEIVER_PORT (4400), TILL_PORT (4500) and HOST (127.0.0.1) choose the addresses,
// PLAYGROUND_DATA (playground/.tmp) the folder of the database: a second start goes on with what is
// there. PLAYGROUND_SHOP=empty leaves out the week of sales that the first start makes.
import fs from 'node:fs';
import path from 'node:path';
import { buildPlaygroundWhenStale } from './lib/admin-build.mjs';
import { startChild } from './lib/children.mjs';
import { PLAYGROUND } from './lib/paths.mjs';
import { writeMissingSecrets } from './lib/playground-secrets.mjs';
import { requireFreePorts } from './lib/ports.mjs';
import { buildPluginWhenStale, installWhatIsMissing } from './lib/prepare.mjs';
import { endRunning } from './lib/run.mjs';
import { preparePlayground } from './lib/seed.mjs';

const HOST = process.env.HOST ?? '127.0.0.1';
const PORT = Number(process.env.PORT ?? 1337);
const RECEIVER_PORT = Number(process.env.RECEIVER_PORT ?? 4400);
const { TILL_PORT } = process.env;
const DATA = path.resolve(process.env.PLAYGROUND_DATA ?? path.join(PLAYGROUND, '.tmp'));
const TILL = path.join(PLAYGROUND, 'till.mjs');

const siteUrl = `http://${HOST}:${PORT}`;
const receiverPage = `http://${HOST}:${RECEIVER_PORT}/`;
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

const startSite = () =>
  startChild('site', path.join(PLAYGROUND, 'server.js'), {
    cwd: PLAYGROUND,
    env: {
      NODE_ENV: 'production',
      HOST,
      PORT: String(PORT),
      DATABASE_FILENAME: path.join(DATA, 'data.db'),
      PLAYGROUND_PUBLIC_DIR: path.join(DATA, 'public'),
      STRAPI_TELEMETRY_DISABLED: process.env.STRAPI_TELEMETRY_DISABLED ?? 'true',
    },
  });

/** Only what a playground made: PLAYGROUND_DATA may name a folder that holds other things. */
const forgetData = () => {
  const made = ['data.db', 'data.db-wal', 'data.db-shm', 'playground.json', 'receiver-secret'];
  for (const name of [...made, 'public']) {
    fs.rmSync(path.join(DATA, name), { recursive: true, force: true });
  }
};

const PORTS = [
  { what: 'the site', variable: 'PORT', port: PORT },
  { what: 'the receiver', variable: 'RECEIVER_PORT', port: RECEIVER_PORT },
];
// Where nobody chose, the till's page goes elsewhere by itself: other playgrounds may run.
if (TILL_PORT !== undefined) {
  PORTS.push({ what: 'the till', variable: 'TILL_PORT', port: Number(TILL_PORT) });
}

const main = async () => {
  await requireFreePorts(HOST, PORTS);
  await installWhatIsMissing();
  await buildPluginWhenStale();
  writeMissingSecrets();
  await buildPlaygroundWhenStale();
  if (process.argv.includes('--fresh')) forgetData();
  fs.mkdirSync(path.join(DATA, 'public/uploads'), { recursive: true });

  // Installing and building took minutes: somebody else may have come in between.
  await requireFreePorts(HOST, PORTS);
  console.log('Starting the site …');
  // The receiver first: the site sends what is still pending as soon as it is up.
  const receiver = await startChild('receiver', path.join(PLAYGROUND, 'receiver.mjs'), {
    env: { HOST, PORT: String(RECEIVER_PORT), DATA },
  });
  const site = await startSite();
  for (const child of [receiver, site]) void endWith(child);
  const { login, apiToken } = await preparePlayground({
    siteUrl,
    receiverUrl,
    dataFolder: DATA,
    withShop: process.env.PLAYGROUND_SHOP !== 'empty',
    onSecret: (secret) => receiver.send({ secret }),
  });

  const lines = [
    ['Admin panel', `${siteUrl}/admin`],
    ['Login', login ? `${login.email}  ${login.password}` : 'as you registered it'],
    ['Receiver', `${receiverPage}  (what arrived, as it arrives)`],
  ];
  if (fs.existsSync(TILL)) {
    const till = await startChild('till', TILL, {
      env: { HOST, SITE_URL: siteUrl, API_TOKEN: apiToken ?? '', DATA },
    });
    void endWith(till);
    if (till.message.note) lines.push(['Till', till.message.note]);
  }
  const table = lines.map(([name, value]) => `  ${name.padEnd(12)} ${value}`).join('\n');
  console.log(
    `\nThe playground is ready.\n\n${table}\n\n` +
      'Create or edit a contact under Content Manager > Contact and watch the receiver.\n' +
      'Ctrl-C stops all of it; the data stays.'
  );
  process.send?.({ ready: true, siteUrl, receiverPage, sitePid: site.pid });
};

main().catch((error) => {
  if (stopping) return;
  console.error(`\n${error.message}`);
  void stopAll(1);
});
