import { AxeBuilder } from '@axe-core/playwright';
import type { Browser, Page } from 'playwright-core';
import { atRest, launchBrowser, moveTo, PLUGIN, signIn } from './support/browser';
import { type Playground, startPlayground } from './support/playground';
import { saleOf, sendRecord } from './support/till';
import { waitFor } from '../support/wait';

let site: Playground;
let browser: Browser;
let page: Page;
const ids = { webhook: 0, delivery: 0, connection: 0, event: 0, level: 0, item: 0 };

const make = async (route: string, body: unknown) =>
  (await site.admin('POST', `/switchboard${route}`, body)).body.data;
const create = async (route: string, body: unknown): Promise<number> =>
  (await make(route, body)).id;

beforeAll(async () => {
  site = await startPlayground();
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
  ids.webhook = await create('/webhooks', {
    name: 'Closed',
    url: 'http://127.0.0.1:9/',
    events: ['contact.created'],
    headers: { Authorization: 'Bearer of-the-receiver' },
    active: false,
  });
  await site.admin('POST', `/switchboard/webhooks/${ids.webhook}/test`, {});
  const log = await site.admin('GET', `/switchboard/webhooks/${ids.webhook}/deliveries`);
  ids.delivery = log.body.data[0].id;
  const till = await make('/connections', {
    name: 'Till',
    scopes: ['sale:write'],
    mode: 'live',
    locations: [],
  });
  ids.connection = till.id;
  expect(await sendRecord(site.url, till, 'sale', saleOf('A11Y-1', 'NOBODY-KNOWS', 1))).toBe(202);
  const sold = await waitFor(async () => {
    const route = `/switchboard/pos-events?state=needs_mapping&connection=${till.id}`;
    return (await site.admin('GET', route)).body.data[0];
  });
  ids.event = sold.id;
  ids.item = await create('/items', { sku: 'CUP', opening: [{ quantity: 3 }] });
  ids.level = (await site.admin('GET', '/switchboard/levels?sku=CUP')).body.data[0].id;
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

const PAGES: [name: string, address: () => string][] = [
  ['the overview', () => `${PLUGIN}/overview`],
  ['the deliveries', () => `${PLUGIN}/deliveries?state=test`],
  ['the webhooks', () => `${PLUGIN}/webhooks`],
  ['a new webhook', () => `${PLUGIN}/webhooks/create`],
  ['a webhook and its log', () => `${PLUGIN}/webhooks/${ids.webhook}`],
  ['the settings of a webhook', () => `${PLUGIN}/webhooks/${ids.webhook}?tab=settings`],
  ['a delivery', () => `${PLUGIN}/webhooks/${ids.webhook}?delivery=${ids.delivery}`],
  ['the tills', () => `${PLUGIN}/tills`],
  ['a new till', () => `${PLUGIN}/tills/create`],
  ['a till', () => `${PLUGIN}/tills/${ids.connection}`],
  ['the till records', () => `${PLUGIN}/records`],
  ['what was refused', () => `${PLUGIN}/records?tab=refused`],
  ['a record', () => `${PLUGIN}/records/${ids.event}`],
  ['the sales', () => `${PLUGIN}/sales?group=item`],
  ['the stock', () => `${PLUGIN}/stock`],
  ['an item', () => `${PLUGIN}/stock/items/${ids.item}`],
  ['a count', () => `${PLUGIN}/stock/count`],
  ['a check of all levels', () => `${PLUGIN}/stock/check`],
  ['the transfers', () => `${PLUGIN}/stock/transfers`],
  ['the unmapped products', () => `${PLUGIN}/unmapped`],
  ['an import', () => `${PLUGIN}/import`],
  ['an explained level', () => `${PLUGIN}/stock/levels/${ids.level}`],
  ['the modules', () => '/admin/settings/switchboard/modules'],
  ['the application passwords', () => '/admin/settings/switchboard/application-passwords'],
  ['the mapped content types', () => '/admin/settings/switchboard/mapped-types'],
];

/** Ours, not the host's frame around it. */
const OURS = ['main', '[role=dialog]'];

/** What axe says of colours: all that can differ between light and dark. */
const ON_COLOURS = ['color-contrast', 'link-in-text-block'];

/** In the page itself, which has no frames, and with what is wrong only: the rest is a megabyte each time. */
const seriousFaults = async (rules?: string[]): Promise<string[]> => {
  await atRest(page);
  const present = [];
  for (const part of OURS) if ((await page.locator(part).count()) > 0) present.push(part);
  // The panel stays loaded from screen to screen, and axe in it.
  const isThere = await page.evaluate(() => 'axe' in window);
  const axe = new AxeBuilder({ page, ...(isThere && { axeSource: '0' }) })
    .setLegacyMode()
    .options({ resultTypes: ['violations'] });
  for (const part of present) axe.include(part);
  if (rules) axe.withRules(rules);
  const { violations } = await axe.analyze();
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
};

const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

describe.each(PAGES)('the page of %s', (_name, address) => {
  beforeAll(async () => {
    await page.emulateMedia({ colorScheme: 'light' });
    await moveTo(page, address());
    await page.getByRole('heading', { level: 1 }).or(page.getByRole('dialog')).first().waitFor();
  });

  test('has nothing serious for axe in light', async () => {
    expect(await seriousFaults()).toEqual([]);
  });

  test('has nothing serious for axe in dark', async () => {
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    await waitFor(async () => (await background()) !== light);
    expect(await seriousFaults(ON_COLOURS)).toEqual([]);
  });
});
