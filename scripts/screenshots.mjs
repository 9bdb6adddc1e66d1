// Pictures of every page of the admin panel, light and dark, into docs/screens.
//
// Runs a playground of its own (ports 1391 and 4491, data in .tmp/screens) and fills it first:
//   node scripts/screenshots.mjs            all pages
//   node scripts/screenshots.mjs webhooks   pages whose name contains the word
import { fork } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { launchBrowser, signIn } from './lib/browser.mjs';
import { ROOT } from './lib/paths.mjs';
import { adminClient, seedScreens, startReceivers } from './lib/screens-data.mjs';

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
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  await new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => /playground is ready/i.test(String(chunk)) && resolve());
    child.once('exit', () => reject(new Error('The playground did not start.')));
  });
  return child;
};

const pagesOf = async (call, { good, bad }) => {
  const first = async (route) => (await call('GET', route))[0]?.id;
  const failed = await first(`/switchboard/webhooks/${bad.id}/deliveries?state=failing,failed`);
  const events = await call('GET', '/switchboard/pos-events');
  const levels = await call('GET', '/switchboard/levels');
  const plugin = '/admin/plugins/switchboard';
  const byState = (state) => events.find((event) => event.state === state)?.id;
  return {
    home: '/admin',
    overview: `${plugin}/overview`,
    deliveries: `${plugin}/deliveries`,
    webhooks: `${plugin}/webhooks`,
    'webhook-create': `${plugin}/webhooks/create`,
    'webhook-deliveries': `${plugin}/webhooks/${good.id}`,
    'webhook-settings': `${plugin}/webhooks/${bad.id}?tab=settings`,
    'webhook-delivery': `${plugin}/webhooks/${bad.id}?delivery=${failed}`,
    connections: `${plugin}/connections`,
    'connection-create': `${plugin}/connections/create`,
    connection: `${plugin}/connections/${await first('/switchboard/connections')}`,
    events: `${plugin}/events`,
    'event-waiting': `${plugin}/events/${byState('needs_mapping')}`,
    'event-held': `${plugin}/events/${byState('held')}`,
    stock: `${plugin}/stock`,
    'stock-level': `${plugin}/stock/levels/${levels.find(({ sku }) => sku === 'BOWL-BLUE')?.id}`,
    modules: '/admin/settings/switchboard/modules',
    'application-passwords': '/admin/settings/switchboard/application-passwords',
    'mapped-types': '/admin/settings/switchboard/mapped-types',
  };
};

/** The host's own announcement above every page. */
const closeAnnouncement = async (page) => {
  const button = page.getByRole('button', { name: /^close/i }).first();
  await button.click({ timeout: 5000 }).catch(() => undefined);
};

const takeAll = async (browser, login, pages) => {
  for (const colorScheme of ['light', 'dark']) {
    const page = await signIn(browser, siteUrl, login, { colorScheme, deviceScaleFactor: 1 });
    await closeAnnouncement(page);
    for (const [name, address] of Object.entries(pages)) {
      if (!name.includes(wanted)) continue;
      // The home page shows the plugin's widgets below the host's own.
      await page.setViewportSize({ width: 1440, height: name === 'home' ? 1700 : 900 });
      await page.goto(address);
      await page.waitForLoadState('networkidle');
      await page.waitForTimeout(800);
      await page.screenshot({ path: path.join(TARGET, `${name}-${colorScheme}.png`) });
      console.log(`${name}-${colorScheme}.png`);
    }
    await page.context().close();
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
    const webhooks = await seedScreens(call, { siteUrl, apiToken, receivers });
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await takeAll(browser, login, await pagesOf(call, webhooks));
  } finally {
    await browser.close();
    receivers.close();
    playground.kill('SIGTERM');
  }
};

await main();
