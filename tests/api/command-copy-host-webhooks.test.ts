import { runCommand } from '../support/command';
import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { createWebhook, getWebhook, testWebhook, updateWebhook } from './delivery-support';

const SETUP = require.resolve('../support/handlers/entry-events.js');
const OPTIONS = { webhooks: { dispatch: false } };

interface Copy {
  copied: {
    id: number;
    host_webhook: string;
    name: string;
    url: string;
    events: string[];
    headers: string[];
    secret: string;
    no_counterpart: { event: string; reason: string }[];
    headers_left_out: { name: string; reason: string }[];
  }[];
  present: { id: number; name: string }[];
  skipped: { name: string; no_counterpart: { event: string; reason: string }[] }[];
  refused: { name: string; reason: string }[];
  changes: string[];
}

describeEach(anyDatabase(), 'the command copy-host-webhooks', (database) => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, setupFiles: [SETUP], options: OPTIONS });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  const run = (...words: string[]) =>
    runCommand(['copy-host-webhooks', ...words], { env: site.env() });
  const copy = async (): Promise<Copy & { code: number | null }> => {
    const { code, stdout } = await run('--json');
    return { code, ...(JSON.parse(stdout) as Copy) };
  };
  const addToHost = (webhook: Record<string, unknown>) =>
    site.control('query', {
      uid: 'strapi::webhook',
      method: 'create',
      params: { data: { headers: {}, enabled: true, ...webhook } },
    });
  const hosts = () => site.control('query', { uid: 'strapi::webhook', method: 'findMany' });

  it('says that there is nothing to copy', async () => {
    const { code, stdout } = await run();
    expect([code, stdout]).toEqual([0, 'The site has no built-in webhooks.\n']);
  }, 120_000);

  it('makes inactive webhooks of them, and says what it leaves out', async () => {
    await addToHost({
      name: 'Search index',
      url: receiver.url,
      events: [
        'entry.create',
        'entry.publish',
        'entry.update',
        'review-workflows.updateEntryStage',
      ],
      headers: { Authorization: 'Bearer canary-4711', Host: 'elsewhere' },
    });
    await addToHost({ name: 'Releases', url: receiver.url, events: ['releases.publish'] });
    await addToHost({ name: 'Inside', url: 'http://10.0.0.1/', events: ['entry.create'] });
    const before = await hosts();
    const { code, copied, present, skipped, refused, changes } = await copy();
    expect([code, present]).toEqual([1, []]);
    expect(copied).toEqual([
      {
        host_webhook: expect.any(String),
        id: expect.any(Number),
        name: 'Search index',
        url: receiver.url,
        events: ['entry.created', 'entry.published'],
        headers: ['Authorization'],
        headers_left_out: [{ name: 'Host', reason: expect.any(String) }],
        secret: expect.stringMatching(/^whsec_/),
        no_counterpart: [
          { event: 'entry.update', reason: expect.stringContaining('sources.entries') },
          { event: 'review-workflows.updateEntryStage', reason: 'has no counterpart' },
        ],
      },
    ]);
    expect(skipped).toEqual([
      expect.objectContaining({
        name: 'Releases',
        no_counterpart: [{ event: 'releases.publish', reason: 'has no counterpart' }],
      }),
    ]);
    expect(refused).toEqual([
      expect.objectContaining({ name: 'Inside', reason: expect.stringContaining('url') }),
    ]);
    expect(changes.join('\n')).toMatch(/data\.entry[^]*X-Strapi-Event[^]*signed/);
    expect(await hosts()).toEqual(before);
    const { id, secret } = copied[0]!;
    expect(await getWebhook(site, id)).toMatchObject({
      active: false,
      secret,
      headers: { Authorization: 'Bearer canary-4711' },
    });
  }, 120_000);

  it('makes none twice', async () => {
    const again = await copy();
    expect(again.copied).toEqual([]);
    expect(again.present).toEqual([expect.objectContaining({ name: 'Search index' })]);
    const list = await site.request('GET', '/api/fw-crm/v1/webhooks');
    expect(list.body.data).toHaveLength(1);
  }, 120_000);

  it('makes one of each that differs by its name or its address', async () => {
    await createWebhook(site, receiver.url, { name: 'search index', active: false });
    await addToHost({ name: 'Search index', url: `${receiver.url}2`, events: ['entry.create'] });
    const { copied } = await copy();
    expect(copied.map(({ url }) => url)).toEqual([`${receiver.url}2`]);
  }, 120_000);

  it('says it in words, with each secret once', async () => {
    await addToHost({
      name: 'Said',
      url: `${receiver.url}said`,
      events: ['entry.create', 'media.create'],
      headers: { 'X-Tenant': 'canary-0815' },
    });
    const { stdout } = await run();
    expect(stdout).toMatch(/^copied as webhook \d+: "Said" http/m);
    expect(stdout).toMatch(/^ {2}events entry\.created$/m);
    expect(stdout).toMatch(/^ {2}headers X-Tenant$/m);
    expect(stdout).toMatch(/^ {2}event media\.create: no counterpart until sources\.media/m);
    expect(stdout).toMatch(/^already copied as webhook \d+: "Search index"/m);
    expect(stdout).toMatch(/^skipped: "Releases"/m);
    expect(stdout).toMatch(/^Changes for receivers:$/m);
    expect(stdout).not.toContain('canary');
    expect(stdout.match(/whsec_/g)).toHaveLength(1);
    expect((await run()).stdout).not.toContain('whsec_');
  }, 120_000);

  it('makes webhooks that send once they are switched on', async () => {
    const list = await site.request('GET', '/api/fw-crm/v1/webhooks?q=Said');
    const { id } = list.body.data[0];
    await site.restart({ setupFiles: [SETUP], options: { webhooks: { pollSeconds: 1 } } });
    await updateWebhook(site, id, { active: true });
    receiver.clear();
    expect((await testWebhook(site, id)).body.ok).toBe(true);
    const [post] = receiver.requests.filter(({ path }) => path === '/said');
    expect(post?.headers['x-tenant']).toBe('canary-0815');
  }, 120_000);

  it('copies nothing while the module is off', async () => {
    await site.evaluate(({ strapi }) =>
      strapi.service('plugin::switchboard.modules').set({ webhooks: false })
    );
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([2, expect.stringContaining('module Webhooks is switched off')]);
  }, 120_000);

  it('explains itself', async () => {
    const { code, stdout } = await run('--help');
    expect(code).toBe(0);
    expect(stdout).toMatch(/: switchboard copy-host-webhooks .*--json/);
    expect((await run('extra')).code).toBe(2);
  });
});
