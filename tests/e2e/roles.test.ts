import type { Browser, Locator, Page } from 'playwright-core';
import { launchBrowser, moveTo, PLUGIN, signIn, switchTo } from './support/browser';
import { type Playground, startPlayground } from './support/playground';
import { saleOf, sendRecord } from './support/till';
import { waitFor } from '../support/wait';

const SETTINGS = '/admin/settings/switchboard';

let site: Playground;
let browser: Browser;
let page: Page;
let refused: string[];
const ids = { webhook: 0, delivery: 0, connection: 0, event: 0, level: 0, item: 0 };

const create = async (route: string, body: unknown) =>
  (await site.admin('POST', `/switchboard${route}`, body)).body.data;

beforeAll(async () => {
  site = await startPlayground();
  browser = await launchBrowser();
  ids.webhook = (
    await create('/webhooks', {
      name: 'Closed',
      url: 'http://127.0.0.1:9/',
      events: ['contact.created'],
      active: false,
    })
  ).id;
  await create(`/webhooks/${ids.webhook}/test`, {});
  const log = await site.admin('GET', `/switchboard/webhooks/${ids.webhook}/deliveries`);
  ids.delivery = log.body.data[0].id;
  ids.item = (await create('/items', { sku: 'CUP', opening: [{ quantity: 3 }] })).id;
  ids.level = (await site.admin('GET', '/switchboard/levels?sku=CUP')).body.data[0].id;
  const till = await create('/connections', {
    name: 'Till of the roles',
    scopes: ['sale:write'],
    mode: 'live',
    locations: [],
  });
  ids.connection = till.id;
  expect(await sendRecord(site.url, till, 'sale', saleOf('S-role', 'NOBODY-KNOWS', 1))).toBe(202);
  const waiting = await waitFor(async () => {
    const route = `/switchboard/pos-events?state=needs_mapping&connection=${till.id}`;
    return (await site.admin('GET', route)).body.data[0];
  });
  ids.event = waiting.id;
  await site.createRole('Reader', [
    'webhooks.read',
    'connections.read',
    'pos-events.read',
    'sales.read',
    'stock.read',
  ]);
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

interface Screen {
  name: string;
  address(): string;
  /** What only those who may change something are given here, by role and name. */
  controls: readonly (readonly [role: 'button' | 'link' | 'switch', name: RegExp])[];
  /** Nobody comes here without being allowed to change something. */
  managersOnly?: boolean;
  inDialog?: boolean;
}

const SCREENS: readonly Screen[] = [
  { name: 'the overview', address: () => `${PLUGIN}/overview`, controls: [] },
  { name: 'the deliveries', address: () => `${PLUGIN}/deliveries`, controls: [] },
  {
    name: 'the webhooks',
    address: () => `${PLUGIN}/webhooks`,
    controls: [
      ['link', /^Create webhook/],
      ['switch', /Closed: active/],
      ['button', /^Delete Closed/],
    ],
  },
  {
    name: 'a new webhook',
    address: () => `${PLUGIN}/webhooks/create`,
    controls: [['button', /^Create$/]],
    managersOnly: true,
  },
  {
    name: 'a webhook and its log',
    address: () => `${PLUGIN}/webhooks/${ids.webhook}`,
    controls: [
      ['button', /^More actions$/],
      ['button', /^Switch on$/],
      ['button', /^Send test$/],
    ],
  },
  {
    name: 'the settings of a webhook',
    address: () => `${PLUGIN}/webhooks/${ids.webhook}?tab=settings`,
    controls: [
      ['button', /^Rotate secret$/],
      ['button', /^Save$/],
      ['button', /^Add header$/],
      ['switch', /^Active$/],
    ],
  },
  {
    name: 'a delivery',
    address: () => `${PLUGIN}/webhooks/${ids.webhook}?delivery=${ids.delivery}`,
    controls: [['button', /^Resend$/]],
    inDialog: true,
  },
  {
    name: 'the tills',
    address: () => `${PLUGIN}/tills`,
    controls: [['link', /^Add till$/]],
  },
  {
    name: 'a new till',
    address: () => `${PLUGIN}/tills/create`,
    controls: [['button', /^Create and show/]],
    managersOnly: true,
  },
  {
    name: 'a till',
    address: () => `${PLUGIN}/tills/${ids.connection}`,
    controls: [
      ['button', /^More actions$/],
      ['button', /^Save$/],
      ['button', /^Add location$/],
    ],
  },
  { name: 'the sales', address: () => `${PLUGIN}/sales`, controls: [] },
  { name: 'what was refused', address: () => `${PLUGIN}/records?tab=refused`, controls: [] },
  { name: 'the till records', address: () => `${PLUGIN}/records`, controls: [] },
  {
    name: 'an event that waits for a mapping',
    address: () => `${PLUGIN}/records/${ids.event}`,
    controls: [
      ['button', /^Process again$/],
      ['button', /^Create product$/],
    ],
  },
  {
    name: 'the stock',
    address: () => `${PLUGIN}/stock`,
    controls: [
      ['button', /^Add product$/],
      ['button', /^Add location$/],
      ['link', /^Check stock levels$/],
    ],
  },
  {
    name: 'an explained level',
    address: () => `${PLUGIN}/stock/levels/${ids.level}`,
    controls: [
      ['button', /^Adjust$/],
      ['button', /^Low-stock limit$/],
    ],
  },
  {
    name: 'an item',
    address: () => `${PLUGIN}/stock/items/${ids.item}`,
    controls: [
      ['button', /^More actions$/],
      ['button', /^Adjust CUP/],
      ['button', /^Save$/],
    ],
  },
  {
    name: 'a count',
    address: () => `${PLUGIN}/stock/count`,
    controls: [['button', /^Preview$/]],
    managersOnly: true,
  },
  {
    name: 'a check of all levels',
    address: () => `${PLUGIN}/stock/check`,
    controls: [['button', /^Start check$/]],
    managersOnly: true,
  },
  {
    name: 'the transfers',
    address: () => `${PLUGIN}/stock/transfers`,
    controls: [['button', /^Transfer$/]],
  },
  {
    name: 'the unmapped products',
    address: () => `${PLUGIN}/unmapped`,
    controls: [['button', /^Map NOBODY-KNOWS/]],
    managersOnly: true,
  },
  {
    name: 'an import',
    address: () => `${PLUGIN}/import`,
    controls: [['button', /^Choose file$/]],
    managersOnly: true,
  },
  {
    name: 'the modules',
    address: () => `${SETTINGS}/modules`,
    controls: [['switch', /^Companies$/]],
    managersOnly: true,
  },
  {
    name: 'the application passwords',
    address: () => `${SETTINGS}/application-passwords`,
    controls: [['button', /^Create$/]],
    managersOnly: true,
  },
  {
    name: 'the mapped content types',
    address: () => `${SETTINGS}/mapped-types`,
    controls: [],
    managersOnly: true,
  },
];

const NO_PERMISSION = /have the permissions to access that content/;

const loadAt = async (page: Page, address: string): Promise<void> => {
  await page.goto(address);
  await page.waitForLoadState('networkidle');
};

/** Where the screen is: a dialog hides whatever is outside of it. */
const open = async (
  { address, inDialog }: Screen,
  go: typeof moveTo = moveTo
): Promise<Locator> => {
  await go(page, address());
  await page
    .getByRole('heading', { level: 1 })
    .or(page.getByText(NO_PERMISSION))
    .or(page.getByRole('dialog'))
    .first()
    .waitFor();
  if (!inDialog) return page.getByRole('main');
  const dialog = page.getByRole('dialog');
  await dialog.or(page.getByText(NO_PERMISSION)).first().waitFor();
  return (await dialog.count()) > 0 ? dialog : page.getByRole('main');
};

/** What the site's routes refused while a page was open: a screen must not ask for it. */
const watchRefusals = (): void => {
  page.on('response', (response) => {
    const { pathname } = new URL(response.url());
    if (response.status() === 403) refused.push(`${response.request().method()} ${pathname}`);
  });
};

const logInAs = async (role: string): Promise<void> => {
  const user = await site.createUser(role);
  if (page) await switchTo(page, user);
  else {
    page = await signIn(browser, site, user);
    watchRefusals();
  }
  refused = [];
};

const PAGES_OF_READERS = [
  'Overview',
  'Webhooks',
  'Deliveries',
  'Sales',
  'Tills',
  'Till records',
  'Stock',
];

const menuEntry = () => page.getByRole('link', { name: 'CRM', exact: true });

/** Wherever a click or a key would change something. */
const CHANGING =
  /^(add|adjust|archive|back to|create|delete|fix|go live|import|low|map|process|resend|revoke|rotate|save|send|start|switch|transfer)\b/i;

const offered = async (part: Locator): Promise<string[]> => {
  const found: string[] = [];
  for (const role of ['button', 'link', 'switch', 'checkbox', 'radio', 'textbox'] as const) {
    // All at once: a list has a hundred links, and its page refreshes by itself.
    const controls = await part.getByRole(role).evaluateAll((all) =>
      all
        .filter((one) => !one.matches(':disabled, [aria-disabled=true]'))
        .map((one) => ({
          name: (one.getAttribute('aria-label') ?? one.textContent ?? '').trim(),
          field: one.getAttribute('name') ?? '',
          readOnly: one.hasAttribute('readonly'),
        }))
    );
    for (const { name, field, readOnly } of controls) {
      const isSearch = /^(search|from|to)$/.test(field);
      const changes =
        role === 'button' || role === 'link'
          ? CHANGING.test(name)
          : !readOnly && !isSearch && !/search|find/i.test(name);
      if (changes) found.push(`${role} ${name}`);
    }
  }
  return found;
};

describe.each(['Super Admin', 'CRM Manager'])('a %s', (role) => {
  beforeAll(() => logInAs(role));

  test.each(SCREENS)('is given everything on the screen of $name', async (screen) => {
    const part = await open(screen);
    for (const [kind, name] of screen.controls) {
      const control = part.getByRole(kind, { name }).first();
      await control.waitFor();
      // Save waits for a change, a preview for a location.
      if (!/Save|Preview/.test(name.source)) expect(await control.isEnabled()).toBe(true);
    }
    expect(refused.filter((one) => one.includes('/switchboard/'))).toEqual([]);
  });
});

describe('a reader', () => {
  beforeAll(() => logInAs('Reader'));

  test.each(SCREENS.filter(({ managersOnly }) => !managersOnly))(
    'is offered no change on the screen of $name',
    async (screen) => {
      const part = await open(screen);
      expect(await part.getByText(NO_PERMISSION).count()).toBe(0);
      expect(await offered(part)).toEqual([]);
      expect(refused.filter((one) => one.includes('/switchboard/'))).toEqual([]);
    }
  );

  test.each(SCREENS.filter(({ managersOnly }) => managersOnly))(
    'may not open the screen of $name',
    async (screen) => {
      const part = await open(screen);
      await part.getByText(NO_PERMISSION).waitFor();
      expect(await offered(part)).toEqual([]);
    }
  );

  test('is told that the secret is not for them, and gets none', async () => {
    await moveTo(page, `${PLUGIN}/webhooks/${ids.webhook}?tab=settings`);
    await page.getByText('do not have permission to reveal the signing secret').waitFor();
    expect(await page.getByRole('button', { name: 'Reveal' }).count()).toBe(0);
    expect(await page.content()).not.toContain('whsec_');
  });

  test('is told at an address that the panel does not have that nothing is there', async () => {
    await moveTo(page, `${PLUGIN}/nowhere`);
    await page.getByRole('main').getByText('Not found').waitFor();
    expect(await page.getByRole('navigation', { name: 'CRM' }).count()).toBe(1);
  });

  test('has the menu entry, with all of its pages', async () => {
    await page.goto(PLUGIN);
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await menuEntry().count()).toBe(1);
    const nav = page.getByRole('navigation', { name: 'CRM' });
    for (const name of PAGES_OF_READERS) {
      expect(await nav.getByRole('link', { name, exact: true }).count()).toBe(1);
    }
  });
});

/** One screen of the plugin's pages and one of the settings' begin with the panel. */
const LOADED = new Set(['the overview', 'the modules']);

describe('an Editor, who was granted nothing here', () => {
  beforeAll(() => logInAs('Editor'));

  test.each(SCREENS)('is told so at the address of $name, and is asked nothing', async (screen) => {
    const part = await open(screen, LOADED.has(screen.name) ? loadAt : moveTo);
    await part.getByText(NO_PERMISSION).waitFor();
    expect(await offered(part)).toEqual([]);
    expect(await page.getByRole('navigation', { name: 'CRM' }).count()).toBe(0);
    expect(await menuEntry().count()).toBe(0);
    expect(refused.filter((one) => one.includes('/switchboard/'))).toEqual([]);
  });

  test('has no widget of the plugin on the home page', async () => {
    await page.goto('/admin');
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    await page.waitForLoadState('networkidle');
    expect(await page.getByText('Needs attention').count()).toBe(0);
    expect(await page.getByText('Deliveries', { exact: true }).count()).toBe(0);
    expect(await page.getByText('Tills', { exact: true }).count()).toBe(0);
  });
});
