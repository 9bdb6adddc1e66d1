import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Contact } from '../../shared/contracts/crm';
import type { DeliveryFigures, HealthReport } from '../../shared/contracts/overview';
import type { PosEvent, SalesFigures } from '../../shared/contracts/pos';
import type { UnknownValue } from '../../shared/contracts/pos-mapping';
import type { Receiver } from '../support/receiver';
import type { Delivery } from '../../shared/contracts/webhooks';
import { startReceiver } from '../support/receiver';
import { FIRST_ADMIN } from '../support/accounts';
import { type Site, startSite } from '../support/site';
import { admin, rebuild } from './pos-till';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

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
      databaseFile: site.databaseName,
      withWeek: true,
      answerWith: async (mode) => receiver.respond(mode === 'fail' ? { status: 500 } : {}),
      onSecret: () => undefined,
    });
  };
  const state = () => JSON.parse(fs.readFileSync(path.join(folder, 'playground.json'), 'utf8'));
  const get = <T>(route: string): Promise<T> => admin(site, 'GET', route);
  const log = async (): Promise<Delivery[]> => {
    const [webhook] = (await site.request('GET', '/api/fw-crm/v1/webhooks')).body.data;
    const route = `/api/fw-crm/v1/webhooks/${webhook.id}/deliveries?per_page=100`;
    return (await site.request('GET', route)).body.data;
  };
  const everything = async () => ({
    items: await get<{ id: number }[]>('/items?per_page=100'),
    locations: await get<{ code: string }[]>('/locations'),
    // Not when each was last seen, which is written a little later.
    connections: (await get<{ id: number; name: string }[]>('/connections')).map(
      ({ id, name }) => ({ id, name })
    ),
    levels: await get<{ quantity: number }[]>('/levels?per_page=100'),
    stocktakes: await get<unknown[]>('/stocktakes'),
    first: await get<PosEvent[]>('/pos-events?per_page=100&page=1'),
    rest: await get<PosEvent[]>('/pos-events?per_page=100&page=2'),
    contacts: (await site.request('GET', '/api/fw-crm/v1/contacts?per_page=100')).body.data,
    deals: (await site.request('GET', '/api/fw-crm/v1/deals?per_page=100')).body.data,
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
    await receiver?.close();
    await site?.stop();
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

  it('has a stocktake, a closing that differs, customers, and one unknown SKU and one refund that wait', async () => {
    const { stocktakes, first, rest } = await everything();
    expect(stocktakes).toHaveLength(1);
    const states = [...first, ...rest].map(({ state: one }) => one);
    expect(states.filter((one) => one === 'differs')).toHaveLength(1);
    expect(states.filter((one) => one === 'held')).toHaveLength(1);
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

  it('has a CRM whose records are as old as the week', async () => {
    const list = async (kind: string) =>
      (await site.request('GET', `/api/fw-crm/v1/${kind}?per_page=100`)).body.data;
    const contacts = await list('contacts');
    expect(contacts).toHaveLength(7);
    const made = contacts.map(({ dates }: Contact) => Date.parse(dates.created_at!));
    expect(Date.now() - Math.min(...made)).toBeGreaterThan(6 * DAY_MS);
    const deals = (await list('deals')) as { title: string; status: string }[];
    expect(deals.map(({ status }) => status).sort()).toEqual(['lost', 'open', 'won']);
    for (const kind of ['companies', 'deal-stages', 'tags', 'tasks', 'campaigns']) {
      expect((await list(kind)).length).toBeGreaterThan(1);
    }
  });

  it('has sent events on several days, some sent again and some given up', async () => {
    const found = await log();
    const days = new Set(found.map(({ created_at: at }) => at.slice(0, 10)));
    expect(days.size).toBeGreaterThan(5);
    const recovered = found.filter(({ status, tries }) => status === 'sent' && tries > 1);
    expect(recovered.length).toBeGreaterThan(3);
    for (const { attempts, finished_at: end, created_at: at } of recovered) {
      expect(attempts.map(({ error }) => error)).toEqual(['http_500', null]);
      expect(Math.round((Date.parse(end!) - Date.parse(at)) / HOUR_MS)).toBe(2);
    }
    const givenUp = found.filter(({ status }) => status === 'failed');
    expect(givenUp.length).toBeGreaterThan(1);
    for (const { tries, attempts, next_attempt_at: next } of givenUp) {
      expect({ tries, attempts: attempts.length, next }).toEqual({
        ...{ tries: 7, attempts: 7 },
        next: null,
      });
    }
    expect(found.filter(({ status }) => status === 'pending')).toEqual([]);
  });

  it('says in what was sent when it was', async () => {
    for (const { request, created_at: at } of await log()) {
      const { created_at: said } = JSON.parse(request.body);
      expect(Math.abs(Date.parse(said) - Date.parse(at))).toBeLessThan(2000);
    }
  });

  it('has figures that are those of the log', async () => {
    const found = await log();
    const tries = found.flatMap(({ attempts }) => attempts);
    const to = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
    const query = new URLSearchParams({
      from: new Date(to - 10 * DAY_MS).toISOString(),
      to: new Date(to).toISOString(),
    });
    const { spans, total } = await get<DeliveryFigures>(`/delivery-figures?${query.toString()}`);
    const failed = tries.filter(({ error }) => error !== null).length;
    expect({ sent: total.sent, failed: total.failed }).toEqual({
      sent: tries.length - failed,
      failed,
    });
    expect(spans.filter(({ sent }) => sent > 0).length).toBeGreaterThan(4);
    // What was given up is news of the last day, and the webhook is well.
    const { webhooks } = await get<HealthReport>('/webhooks-health');
    expect(webhooks[0]).toMatchObject({ failed: 3, pending: 0 });
    expect(webhooks[0]!.health.state).not.toBe('failing');
  });

  it('sends what was given up when it is asked to', async () => {
    const [first] = (await log()).filter(({ status }) => status === 'failed');
    const route = `/api/fw-crm/v1/webhook-deliveries/${first!.id}/retry`;
    const answer = await site.request('POST', route);
    expect(answer.body).toMatchObject({ status: 'sent', delivery_id: first!.delivery_id });
    const arrived = receiver.requests.at(-1)!;
    expect(arrived.headers['x-service-delivery']).toBe(first!.delivery_id);
    expect(arrived.body).toBe(first!.request.body);
  });

  it('leaves the webhook on, with nothing of the tills’ week sent to it', async () => {
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
    const { from, heldAt, tills } = shop;
    const crm = { done: rest.crm.done - 1, ids: rest.crm.ids };
    const unfinished = { ...rest, crm, shop: { from, heldAt, tills: { front: tills.front } } };
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
