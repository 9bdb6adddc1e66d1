// Pictures of every screen of the admin panel, light and dark, into docs/screens. lib/screens.mjs lists
// them.
//
// Runs a separate playground (ports 1391 and 4491, data in .tmp/screens) and fills it first:
//   node scripts/screenshots.mjs            all screens; pictures of others are removed
//   node scripts/screenshots.mjs webhooks   screens whose name contains the word
import { fork } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { launchBrowser, signIn } from './lib/browser.mjs';
import { ROOT } from './lib/paths.mjs';
import { adminClient, seedScreens, startReceivers } from './lib/screens-data.mjs';
import { addressOf, SCREENS } from './lib/screens.mjs';

const DATA = path.join(ROOT, '.tmp/screens');
const TARGET = path.join(ROOT, 'docs/screens');
const PORT = '1391';
const siteUrl = `http://127.0.0.1:${PORT}`;
const wanted = process.argv[2] ?? '';

const startPlayground = async () => {
  const child = fork(path.join(ROOT, 'scripts/start.mjs'), ['--fresh'], {
    env: {
      ...process.env,
      ...{ PORT, RECEIVER_PORT: '4491', PLAYGROUND_DATA: DATA },
      // It is filled with what the pictures show.
      PLAYGROUND_SHOP: 'empty',
      SWITCHBOARD_WEBHOOKS: JSON.stringify({ journalDays: 7 }),
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  await new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => /playground is ready/i.test(String(chunk)) && resolve());
    child.once('exit', () => reject(new Error('The playground did not start.')));
  });
  return child;
};

/** Ids of the rows that screens show one of. */
const idsOf = async (call, { good, bad, late, imported }) => {
  const first = async (route, isIt = () => true) =>
    (await call('GET', `/switchboard/${route}`)).find(isIt)?.id;
  return {
    ...{ good: good.id, bad: bad.id, late: late.id, imported: imported.id },
    failed: await first(`webhooks/${bad.id}/deliveries?state=failing,failed`),
    till: await first('connections', ({ name }) => name === 'Front counter'),
    waiting: await first('pos-events?state=needs_mapping'),
    held: await first('pos-events?state=held'),
    item: await first('items', ({ sku }) => sku === 'BOWL-BLUE'),
    level: await first('levels?sku=BOWL-BLUE'),
  };
};

/** The host's own announcement above every page. */
const closeAnnouncement = async (page) => {
  const button = page.getByRole('button', { name: /^close/i }).first();
  await button.click({ timeout: 5000 }).catch(() => undefined);
};

const take = async (page, screens, ids = {}) => {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const screen of screens) {
      const file = `${screen.name}-${colorScheme}.png`;
      await page.setViewportSize({ width: 1440, height: screen.height ?? 900 });
      await page.goto(addressOf(screen, ids));
      await page.waitForLoadState('networkidle');
      await screen.prepare?.(page);
      await page.waitForTimeout(800);
      await page.screenshot({ path: path.join(TARGET, file) });
      console.log(file);
    }
  }
};

/** A playground starts with a webhook and a till. */
const removeFirstRows = async (call) => {
  for (const kind of ['webhooks', 'connections']) {
    for (const { id } of await call('GET', `/switchboard/${kind}`)) {
      await call('DELETE', `/switchboard/${kind}/${id}`);
    }
  }
};

/** Pictures of screens that are no longer there, or have another name. */
const removeOthers = () => {
  const names = SCREENS.map(({ name }) => name);
  for (const file of fs.readdirSync(TARGET)) {
    const [, name] = /^(.+)-(?:light|dark)\.png$/.exec(file) ?? [];
    if (name && !names.includes(name)) fs.rmSync(path.join(TARGET, file));
  }
};

const main = async () => {
  const browser = await launchBrowser();
  fs.mkdirSync(TARGET, { recursive: true });
  const playground = await startPlayground();
  const receivers = await startReceivers();
  try {
    const { login, apiToken } = JSON.parse(
      fs.readFileSync(path.join(DATA, 'playground.json'), 'utf8')
    );
    const call = await adminClient(siteUrl, login);
    await removeFirstRows(call);
    // One login for all: the host allows few in a row.
    const page = await signIn(browser, siteUrl, login, { deviceScaleFactor: 1 });
    await closeAnnouncement(page);
    const screens = SCREENS.filter(({ name }) => name.includes(wanted));
    await take(
      page,
      screens.filter(({ isFirst }) => isFirst)
    );
    const shown = await seedScreens(call, { siteUrl, apiToken, receivers });
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const rest = screens.filter(({ isFirst }) => !isFirst);
    await take(page, rest, await idsOf(call, shown));
    if (wanted === '') removeOthers();
  } finally {
    await browser.close();
    receivers.close();
    playground.kill('SIGTERM');
  }
};

await main();
