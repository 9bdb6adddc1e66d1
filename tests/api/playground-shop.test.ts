import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { HealthReport } from '../../shared/contracts/overview';
import type { PosEvent, SalesFigures } from '../../shared/contracts/pos';
import type { UnknownValue } from '../../shared/contracts/pos-mapping';
import type { Receiver } from '../support/receiver';
import { startReceiver } from '../support/receiver';
import { FIRST_ADMIN } from '../support/accounts';
import { type Site, startSite } from '../support/site';
import { admin, rebuild } from './pos-till';

const load = () => import('../../scripts/lib/seed.mjs');

/** The week that `npm start` fills a new playground with. */
describe('the shop of the playground', () => {
  let site: Site;
  let receiver: Receiver;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'playground-shop-'));
  const prepare = async () => {
    const { preparePlayground } = await load();
    return preparePlayground({
      siteUrl: site.url,
      receiverUrl: receiver.url,
      dataFolder: folder,
      withShop: true,
      onSecret: () => undefined,
    });
  };
  const state = () => JSON.parse(fs.readFileSync(path.join(folder, 'playground.json'), 'utf8'));
  const get = <T>(route: string): Promise<T> => admin(site, 'GET', route);
  const everything = async () => ({
    items: await get<{ id: number }[]>('/items?per_page=100'),
    locations: await get<{ code: string }[]>('/locations'),
    connections: await get<{ id: number; name: string }[]>('/connections'),
    levels: await get<{ quantity: number }[]>('/levels?per_page=100'),
    stocktakes: await get<unknown[]>('/stocktakes'),
    first: await get<PosEvent[]>('/pos-events?per_page=100&page=1'),
    rest: await get<PosEvent[]>('/pos-events?per_page=100&page=2'),
  });

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite();
    const login = { email: FIRST_ADMIN.email, password: FIRST_ADMIN.password };
    const apiToken = site.apiToken;
    fs.writeFileSync(path.join(folder, 'playground.json'), JSON.stringify({ login, apiToken }));
    await prepare();
  }, 120_000);
  afterAll(async () => {
    await site?.stop();
    await receiver?.close();
    fs.rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  it('has two tills, a dozen items in two locations, and a week of sales and refunds', async () => {
    const { items, locations, connections, first, rest } = await everything();
    expect(items).toHaveLength(12);
    expect(locations).toHaveLength(2);
    expect(connections.map(({ name }) => name)).toEqual(['Front counter', 'Market stall']);
    const { from } = state().shop as { from: string };
    const day = (shift: number) =>
      new Date(Date.parse(from) + shift * 86_400_000).toISOString().slice(0, 10);
    const days = await get<({ day: string } & SalesFigures)[]>(
      `/sales-days?from=${day(0)}&to=${day(6)}`
    );
    expect(days.map((one) => one.day)).toEqual([0, 1, 2, 3, 4, 5, 6].map(day));
    for (const one of days) expect(one.sales.count).toBeGreaterThan(8);
    expect(days.reduce((sum, { refunds }) => sum + refunds.count, 0)).toBeGreaterThan(5);
    const kinds = [...first, ...rest].map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'inventory')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'closing')).toHaveLength(14);
    for (const { id } of connections) {
      const { totals } = await get<{ totals: SalesFigures[] }>(
        `/connections/${id}/summary?from=${day(0)}&to=${day(6)}`
      );
      expect(totals[0]?.sales.total).toBeGreaterThan(0);
    }
  });

  it('has a stocktake, a closing that differs, customers, and one unknown SKU that waits', async () => {
    const { stocktakes, first, rest } = await everything();
    expect(stocktakes).toHaveLength(1);
    const states = [...first, ...rest].map(({ state: one }) => one);
    expect(states.filter((one) => one === 'differs')).toHaveLength(1);
    expect(states.filter((one) => one === 'partially_applied')).toHaveLength(2);
    expect(states).not.toContain('failed');
    expect(await get<UnknownValue[]>('/mapping-inbox')).toEqual([
      expect.objectContaining({ kind: 'sku', value: 'SCARF-GREY', records: 2, pieces: 3 }),
    ]);
    const contacts = await site.request('GET', '/api/fw-crm/v1/contacts');
    const values = (contacts.body.data as { lifetime_value: number | null }[]).map(
      ({ lifetime_value: value }) => value
    );
    expect(values.filter((value) => Number(value) > 0).length).toBeGreaterThan(0);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('leaves the webhook on, with nothing of the week sent to it', async () => {
    const { webhooks } = await get<HealthReport>('/webhooks-health');
    expect(webhooks).toEqual([expect.objectContaining({ disabled_reason: null })]);
    await receiver.waitFor(5);
    await receiver.settle();
    expect(receiver.events().filter((event) => /^(pos|stock)\./.test(event))).toEqual([]);
  });

  it('is there once, however often and wherever a start ended before', async () => {
    const before = await everything();
    await prepare();
    expect(await everything()).toEqual(before);
    // As after a start that sent the week and ended before it could say so.
    const { shop, ...rest } = state();
    const unfinished = { ...rest, shop: { from: shop.from, tills: { front: shop.tills.front } } };
    fs.writeFileSync(path.join(folder, 'playground.json'), JSON.stringify(unfinished));
    await prepare();
    const after = await everything();
    const counted = (of: typeof before) =>
      Object.entries(of).map(([name, list]) => [name, list.length]);
    expect(counted(after)).toEqual(counted(before));
    expect(after.levels).toEqual(before.levels);
    expect(state().shop.isThere).toBe(true);
  }, 120_000);

  it('hands its front till to the one that goes on selling', async () => {
    const { key } = JSON.parse(fs.readFileSync(path.join(folder, 'till.json'), 'utf8'));
    expect(key).toBe(state().shop.tills.front.key);
  });
});
