import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './paths.mjs';

const PLUGIN = '/admin/plugins/switchboard';
const SETTINGS = '/admin/settings/switchboard';

const texts = Object.assign(
  {},
  ...['', 'tills/'].map((folder) =>
    JSON.parse(fs.readFileSync(path.join(ROOT, `admin/src/translations/${folder}en.json`), 'utf8'))
  )
);

const press = (page, key) =>
  page.getByRole('main').getByRole('button', { name: texts[key], exact: true }).click();

const chooseLocation = async (page) => {
  const box = page.getByRole('main').getByRole('combobox', { name: texts['stock.location'] });
  await box.click();
  await page.getByRole('option').first().click();
};

/**
 * A picture of each screen of the panel. `route` is that of admin/src/pages/app.tsx or of a page of
 * the host; `address` makes the address of the ids of the rows to show.
 * - `isFirst`: taken before anything is filled in
 * - `height`: of the window, if it is not 900
 * - `prepare(page)`: steps on the screen before the picture
 * @type {{ name: string, route: string, address?: (ids: Record<string, number>) => string,
 *   isFirst?: boolean, height?: number, prepare?: (page: object) => Promise<unknown> }[]}
 */
export const SCREENS = [
  { name: 'first-steps', route: 'overview', isFirst: true },
  // The home page shows the plugin's widgets below the host's own.
  { name: 'home', route: '/admin', height: 1700 },
  { name: 'overview', route: 'overview' },
  { name: 'deliveries', route: 'deliveries' },
  { name: 'webhooks', route: 'webhooks' },
  { name: 'webhook-create', route: 'webhooks/create' },
  { name: 'webhook-deliveries', route: 'webhooks/:id', address: ({ good }) => `webhooks/${good}` },
  {
    name: 'webhook-missed',
    route: 'webhooks/:id',
    address: ({ late }) => `webhooks/${late}?tab=missed`,
    prepare: (page) => press(page, 'missed.look'),
  },
  {
    name: 'webhook-statistics',
    route: 'webhooks/:id',
    address: ({ good }) => `webhooks/${good}?tab=statistics`,
  },
  {
    name: 'webhook-settings',
    route: 'webhooks/:id',
    address: ({ bad }) => `webhooks/${bad}?tab=settings`,
  },
  {
    name: 'webhook-delivery',
    route: 'webhooks/:id',
    address: ({ bad, failed }) => `webhooks/${bad}?delivery=${failed}`,
  },
  { name: 'sales', route: 'sales' },
  { name: 'tills', route: 'tills' },
  { name: 'till-create', route: 'tills/create' },
  { name: 'till', route: 'tills/:id', address: ({ till }) => `tills/${till}` },
  { name: 'till-records', route: 'records' },
  {
    name: 'till-records-refused',
    route: 'records',
    address: () => 'records?tab=refused',
  },
  {
    name: 'till-record-waiting',
    route: 'records/:id',
    address: ({ waiting }) => `records/${waiting}`,
  },
  { name: 'till-record-held', route: 'records/:id', address: ({ held }) => `records/${held}` },
  { name: 'unmapped', route: 'unmapped' },
  { name: 'stock', route: 'stock' },
  { name: 'stock-item', route: 'stock/items/:id', address: ({ item }) => `stock/items/${item}` },
  {
    name: 'stock-level',
    route: 'stock/levels/:id',
    address: ({ level }) => `stock/levels/${level}`,
  },
  {
    name: 'stock-count',
    route: 'stock/count',
    prepare: async (page) => {
      await chooseLocation(page);
      await press(page, 'count.addAll');
    },
  },
  { name: 'stock-transfers', route: 'stock/transfers' },
  {
    name: 'stock-check',
    route: 'stock/check',
    prepare: async (page) => {
      await press(page, 'check.start');
      await page.getByText(texts['check.found'], { exact: true }).waitFor();
    },
  },
  { name: 'import', route: 'import' },
  {
    name: 'import-result',
    route: 'import',
    address: ({ imported }) => `import?import=${imported}`,
  },
  { name: 'modules', route: `${SETTINGS}/modules` },
  { name: 'mapped-types', route: `${SETTINGS}/mapped-types` },
  { name: 'application-passwords', route: `${SETTINGS}/application-passwords` },
];

/** The path of a screen on the site. */
export const addressOf = ({ route, address }, ids) => {
  const target = address?.(ids) ?? route;
  return target.startsWith('/') ? target : `${PLUGIN}/${target}`;
};
