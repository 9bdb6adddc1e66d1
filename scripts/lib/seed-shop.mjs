import fs from 'node:fs';
import path from 'node:path';
import tillClient from '../../till-client/index.js';
import { heldRefund, ITEMS, lastWeek, TILLS, weekFrom } from './shop-week.mjs';

const SCOPES = ['sale:write', 'refund:write', 'inventory:write', 'stock:read', 'closing:write'];
const MARKET = { name: 'Market stall', code: 'MARKET' };
const OPEN_HOURS = [
  { days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat'], from: '09:00', to: '18:00' },
];
const AT_ONCE = 100;
const PROCESSED_MS = 30_000;

/** The shop's shelf, which every site has, and the market's. */
const findLocations = async (admin) => {
  const all = await admin('GET', '/locations');
  const shop = all.find((one) => one.is_default);
  const market = all.find(({ code }) => code === MARKET.code);
  return { shop, market: market ?? (await admin('POST', '/locations', MARKET)) };
};

const makeItems = async (admin, locations) => {
  const levels = await admin('GET', '/levels?per_page=100');
  const known = new Set(levels.map(({ sku }) => sku));
  for (const { price: _price, shop, market, ...item } of ITEMS) {
    if (known.has(item.sku)) continue;
    const opening = [
      { location: locations.shop.id, quantity: shop },
      { location: locations.market.id, quantity: market },
    ];
    await admin('POST', '/items', { ...item, opening });
  }
};

/** The credentials of a till: those that were kept, else of its connection, else of a new one. */
const credentialsOf = async (admin, till, location, kept) => {
  if (kept) return kept;
  const existing = (await admin('GET', '/connections?per_page=100')).find(
    ({ name }) => name === till.name
  );
  if (existing) {
    // It was made by a start that ended before it wrote the secret down.
    const { secret } = await admin('POST', `/connections/${existing.id}/secret`, {});
    return { key: existing.key, secret };
  }
  const { key, secret } = await admin('POST', '/connections', {
    name: till.name,
    scopes: SCOPES,
    mode: 'live',
    locations: [{ ref: till.ref, location: location.id }],
    // This one keeps selling; the other one is silent until a user plays with it.
    ...(till.id === 'front' && { expected_every_minutes: 30, open_hours: OPEN_HOURS }),
  });
  return { key, secret };
};

const sendWeek = async (siteUrl, credentials, { records, closings }) => {
  const till = tillClient.createTill({ url: `${siteUrl}/api/service-pos/v1`, ...credentials });
  for (let start = 0; start < records.length; start += AT_ONCE) {
    const part = records.slice(start, start + AT_ONCE);
    const { results } = await till.batch(part.map(({ kind, body }) => ({ kind, body })));
    const refused = results.find(({ status }) => status >= 400);
    if (refused) throw new Error(`A record of the week was refused: ${refused.message}`);
  }
  for (const closing of closings) await till.closing(closing);
};

const makeStocktake = async (admin, { shop }, stocktake) => {
  const done = await admin('GET', '/stocktakes?per_page=100');
  if (done.some(({ location }) => location.id === shop.id)) return;
  await admin('POST', '/stocktakes', { location: shop.id, ...stocktake });
};

const allProcessed = async (admin) => {
  const until = Date.now() + PROCESSED_MS;
  while ((await admin('GET', '/pos-events?state=pending&per_page=1')).length > 0) {
    if (Date.now() > until) throw new Error('The week was sent, and is not processed yet.');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

/**
 * Fills a site with a shop that has sold for a week: two locations and tills, a dozen items, sales and
 * refunds, a delivery, a stocktake, closings, customers, a SKU that nobody has entered, and a refund
 * whose sale never came. All of it
 * goes over the tills' API and the admin panel's; what is there already is left as it is, so a start
 * that ended on its way goes on at the next one.
 * @param {{ admin: (method: string, route: string, body?: unknown) => Promise<any>,
 *   siteUrl: string, dataFolder: string,
 *   state: { from?: string, heldAt?: string, tills?: Record<string, { key: string, secret: string }> },
 *   keep: (state: object) => void }} where  `admin` asks below `/switchboard` and gives `data`;
 *   `state` is what an earlier start kept
 */
export const seedShop = async ({ admin, siteUrl, dataFolder, state, keep }) => {
  const from = state.from ?? lastWeek();
  const heldAt = state.heldAt ?? new Date().toISOString();
  const tills = { ...state.tills };
  const locations = await findLocations(admin);
  await makeItems(admin, locations);
  for (const till of TILLS) {
    tills[till.id] = await credentialsOf(admin, till, locations[till.stock], tills[till.id]);
    keep({ from, heldAt, tills });
  }
  const week = weekFrom(from);
  week.tills.front.records.push(heldRefund(heldAt));
  for (const { id } of TILLS) await sendWeek(siteUrl, tills[id], week.tills[id]);
  await makeStocktake(admin, locations, week.stocktake);
  await allProcessed(admin);
  // The till of the playground goes on as the one at the front.
  fs.writeFileSync(path.join(dataFolder, 'till.json'), JSON.stringify(tills.front, null, 2), {
    mode: 0o600,
  });
};
