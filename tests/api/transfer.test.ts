import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Delivery, Page, Webhook } from '../../shared/contracts/webhooks';
import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { exportSite, importInto } from '../support/transfer';
import { waitFor } from '../support/wait';
import {
  countRows,
  createWebhook,
  logSoFar,
  removeWebhook,
  updateWebhook,
} from './delivery-support';
import { admin, createItem, createTill, levelOf, saleBody, Till } from './pos-till';

const API = '/api/fw-crm/v1';
const OFF = /another site/;
const TOKEN = 'Bearer canary-token-4711';

describeEach(anyDatabase(), 'a copy of a site', (database) => {
  let folder: string;
  let archive: string;
  let original: Site;
  let copy: Site;
  let receiver: Receiver;
  let other: Receiver;
  let till: Till;
  let secret: string;
  let webhookId: number;
  let waiting: string;
  let sale: Record<string, unknown>;

  const webhooksOf = async (site: Site): Promise<Webhook[]> =>
    (await site.request<Page<Webhook>>('GET', `${API}/webhooks`)).body.data;
  const named = async (site: Site, name: string): Promise<Webhook> => {
    const found = (await webhooksOf(site)).find((webhook) => webhook.name === name);
    if (!found) throw new Error(`no webhook ${name}`);
    return found;
  };
  const logOf = async (site: Site, id: number): Promise<Delivery[]> =>
    (await site.request<Page<Delivery>>('GET', `${API}/webhooks/${id}/deliveries`)).body.data;
  const contact = (site: Site, email: string) =>
    site.request('POST', `${API}/contacts`, { body: { email } });
  /** The connection of the same key, on another site. */
  const tillOn = (site: Site): Till => new Till(site, till.id, till.key, till.secret);

  beforeAll(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-transfer-'));
    receiver = await startReceiver();
    other = await startReceiver();
    // Its own retry stays away as long as the tests run.
    const webhooks = { pollSeconds: 1, retryScheduleSeconds: [36_000] };
    original = await startSite({ database, options: { webhooks } });
    // Ids of the original that are other webhooks' in the copy.
    for (let made = 0; made < 2; made += 1) {
      await removeWebhook(original, (await createWebhook(original, other.url)).id);
    }
    await createWebhook(original, other.url, { name: 'bystander', events: ['deal.won'] });
    const made = await createWebhook(original, receiver.url, {
      name: 'main',
      events: ['contact.created'],
      headers: { Authorization: TOKEN },
    });
    ({ secret, id: webhookId } = made as { secret: string; id: number });
    // What two are sent is stored once.
    for (const name of ['left', 'right']) {
      await createWebhook(original, other.url, { name, events: ['company.created'] });
    }
    const company = await original.request('POST', `${API}/companies`, { body: { name: 'Acme' } });
    expect(company.status).toBe(201);
    await other.waitFor(2);
    await createItem(original, 'MUG', 10);
    till = await createTill(original, { name: 'Counter' });
    sale = saleBody([['MUG', 1]]);
    expect((await till.send('sale', sale)).status).toBe(202);

    await contact(original, 'sent@example.test');
    await waitFor(
      async () => (await countRows(original, "status = 'pending'")) === 0,
      20_000,
      'sent'
    );
    receiver.respond({ status: 500 });
    await contact(original, 'waiting@example.test');
    await waitFor(
      async () => (await countRows(original, "status = 'pending' AND tries = 1")) === 1,
      20_000,
      'the first try of the delivery that waits'
    );
    waiting = String(receiver.requests.at(-1)?.headers['x-service-delivery']);
    archive = await exportSite(original, path.join(folder, 'export'));
    receiver.clear();
    receiver.respond({});
  }, 240_000);

  afterAll(async () => {
    await copy?.stop();
    await original?.stop();
    await receiver?.close();
    await other?.close();
    fs.rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  it('gets everything in an export, and no secret in clear', () => {
    const text = fs.readFileSync(archive, 'latin1');
    for (const uid of ['webhook', 'message', 'delivery', 'pos-connection', 'contact']) {
      expect(text).toContain(`"plugin::switchboard.${uid}"`);
    }
    expect(text).not.toContain(secret);
    expect(text).not.toContain(till.secret);
    expect(/Authorization\\?":/.test(text)).toBe(true);
    expect(text).not.toContain(TOKEN);
  });

  it('gets webhooks that are switched off and say why, and sends nothing of the original’s', async () => {
    // A site of its own from the start: a copy of the template would count as the same site.
    copy = await startSite({
      database,
      firstBoot: true,
      options: { webhooks: { pollSeconds: 1 } },
    });
    await createWebhook(copy, other.url, { name: 'of the copy before' });
    await importInto(copy, archive);
    receiver.clear();
    other.clear();

    // The site ran while the import reached it: what is published now reaches nobody.
    await contact(copy, 'on-the-copy@example.test');
    const main = await named(copy, 'main');
    expect(main).toMatchObject({ active: false, disabled_reason: expect.stringMatching(OFF) });
    const off = ['bystander', 'left', 'main', 'right'].map((name) => [name, false]);
    expect((await webhooksOf(copy)).map(({ name, active }) => [name, active]).sort()).toEqual(off);
    expect(await logSoFar(copy)).toMatch(
      /switched off, because they came from another site: webhooks .*"main"/
    );
    await copy.restart();
    expect(await named(copy, 'main')).toMatchObject({ active: false, id: main.id });
    await contact(copy, 'after-restart@example.test');

    const bodyIn = async (site: Site, name: string) =>
      (await logOf(site, (await named(site, name)).id)).map(({ request }) => request.body);
    for (const name of ['left', 'right']) {
      const [body, ...others] = await bodyIn(original, name);
      expect([JSON.parse(body ?? '').event, others]).toEqual(['company.created', []]);
      expect(await bodyIn(copy, name)).toEqual([body]);
    }
    const log = await logOf(copy, main.id);
    expect(log.map(({ event }) => event)).toEqual(['contact.created', 'contact.created']);
    expect(log.find(({ delivery_id }) => delivery_id === waiting)).toMatchObject({
      status: 'failed',
      error: 'imported',
      next_attempt_at: null,
    });
    const retry = await copy.request(
      'POST',
      `${API}/webhook-deliveries/${log.find((one) => one.delivery_id === waiting)?.id}/retry`
    );
    expect(retry.status).toBe(409);
    expect(await logOf(copy, (await named(copy, 'bystander')).id)).toEqual([]);
    const contacts = await copy.request('GET', `${API}/contacts`);
    expect(JSON.stringify(contacts.body)).toContain('waiting@example.test');
    expect(receiver.requests).toEqual([]);
    expect(other.requests).toEqual([]);
  }, 120_000);

  it('sends what is new once the owner switched a webhook on, and never what is old', async () => {
    const { id } = await named(copy, 'main');
    const on = await updateWebhook(copy, id, { active: true });
    expect(on.body).toMatchObject({ active: true, disabled_reason: null, disabled_at: null });
    const made = await contact(copy, 'new@example.test');
    const [post] = await receiver.waitFor(1);
    expect(post!.json.data.contact?.email ?? JSON.stringify(post!.json)).toContain(
      'new@example.test'
    );
    expect(made.status).toBe(201);
    // Both have one key: what was sealed there is read here.
    expect(post!.headers.authorization).toBe(TOKEN);
    await copy.restart();
    expect(await named(copy, 'main')).toMatchObject({ active: true });
    expect(receiver.requests.map((one) => one.headers['x-service-delivery'])).not.toContain(
      waiting
    );
    expect(receiver.requests).toHaveLength(1);
  }, 120_000);

  it('takes no record of the original’s tills until the owner switches a connection on', async () => {
    const there = tillOn(copy);
    const refused = await there.send('sale', saleBody([['MUG', 1]]));
    expect([refused.status, refused.body.code]).toEqual([401, 'revoked_key']);
    expect(refused.body.message).toMatch(/switched off/);
    expect(refused.body.message).toMatch(OFF);
    const list = await copy.request('GET', '/switchboard/connections');
    expect(list.body.data).toHaveLength(1);
    expect(list.body.data[0]).toMatchObject({
      name: 'Counter',
      key: till.key,
      active: false,
      disabled_reason: expect.stringMatching(OFF),
    });
    await admin(copy, 'PUT', `/connections/${list.body.data[0].id}`, { active: true });
    expect((await there.send('sale', saleBody([['MUG', 1]]))).status).toBe(202);
  });

  it('is no copy when it is its own export that comes back', async () => {
    const sent = await contact(original, 'since@example.test');
    expect(sent.status).toBe(201);
    const before = await levelOf(original, 'MUG');
    await importInto(original, archive);
    receiver.clear();
    const main = await named(original, 'main');
    expect(main).toMatchObject({ active: true, disabled_reason: null });
    expect((await logOf(original, main.id)).map(({ delivery_id }) => delivery_id)).toContain(
      waiting
    );
    expect(await logOf(original, (await named(original, 'bystander')).id)).toEqual([]);

    // The records of its tills are where they were: an id that was taken stays taken.
    const again = await till.send('sale', sale);
    expect([again.status, again.body.duplicate]).toEqual([200, true]);
    expect(await levelOf(original, 'MUG')).toEqual(before);
    const connection = await admin(original, 'GET', `/connections/${till.id}`);
    expect(connection).toMatchObject({ key: till.key, active: true });

    await contact(original, 'after-import@example.test');
    const [post] = await receiver.waitFor(1);
    expect(post!.body).toContain('after-import@example.test');
    expect(receiver.requests.map((one) => one.headers['x-service-delivery'])).not.toContain(
      waiting
    );
    expect(webhookId).toBeGreaterThan(0);
  }, 120_000);
});
