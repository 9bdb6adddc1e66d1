import path from 'node:path';
import { runCommand } from '../support/command';
import { makePluginSite, type PluginSite } from '../support/plugin-site';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { createWebhook, testWebhook } from './delivery-support';

const API = '/api/fw-crm/v1';

describe('a plugin that create-plugin wrote', () => {
  let folder: PluginSite;
  let site: Site;
  let receiver: Receiver;
  let events: string[];

  beforeAll(async () => {
    folder = makePluginSite();
    receiver = await startReceiver();
    const made = await runCommand(['create-plugin', 'gift-cards', '--json'], {
      cwd: folder.folder,
    });
    expect(made.code).toBe(0);
    ({ events } = JSON.parse(made.stdout) as { events: string[] });
    const resolve = path.join(folder.folder, 'src/plugins/gift-cards');
    site = await startSite({
      options: { webhooks: { pollSeconds: 1 } },
      env: { SITE_PLUGINS: JSON.stringify({ 'gift-cards': { enabled: true, resolve } }) },
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
    folder?.remove();
  }, 60_000);

  it('offers its events, with schemas that their examples fit', async () => {
    const { body } = await site.request('GET', `${API}/webhooks/events`);
    const offered = body.data.filter(({ event }: { event: string }) => events.includes(event));
    expect(offered).toHaveLength(2);
    for (const { label, group, schema, example } of offered) {
      expect([label, group]).toEqual([expect.any(String), 'Gift cards']);
      expect(Object.keys(example).sort()).toEqual([...schema.required].sort());
    }
  });

  it('sends them', async () => {
    const { id } = await createWebhook(site, receiver.url, { events });
    const queued = await site.evaluate(async ({ strapi }) => {
      const service = strapi.plugin('gift-cards').service('events');
      return [
        await service.itemAdded({ id: 'g1', label: 'A card' }),
        await service.itemRemoved({ id: 'g1' }),
      ];
    });
    expect(queued).toEqual([1, 1]);
    const posts = await receiver.waitFor(2);
    expect(posts.map(({ json }) => json.event).sort()).toEqual([...events].sort());
    const added = posts.find(({ json }) => json.event === 'gift-cards.item_added');
    expect(added?.json.data).toEqual({ id: 'g1', label: 'A card', added_at: expect.any(String) });
    expect((await testWebhook(site, id)).body.ok).toBe(true);
  });
});
