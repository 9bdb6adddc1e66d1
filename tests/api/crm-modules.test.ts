import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM, type EventLog, inCode, names, openEventLog } from './crm-helpers';

describeEach(anyDatabase(), 'modules', (database) => {
  let site: Site;
  let other: Site;
  let log: EventLog;
  beforeAll(async () => {
    const options = { webhooks: { dispatch: false } };
    site = await startSite({ database, options });
    other = await site.sibling({ options });
    log = await openEventLog(site);
  }, 240_000);
  afterAll(async () => {
    await other?.stop();
    await site?.stop();
  }, 60_000);

  const put = (where: Site, changes: object) =>
    where.request('PUT', '/switchboard/modules', { body: changes });

  it('switched in one process are seen at once in another', async () => {
    for (let round = 0; round < 3; round += 1) {
      await put(site, { companies: false });
      expect((await other.request('GET', `${CRM}/companies`)).status).toBe(404);
      await inCode(other, 'company').create({ name: 'Silent' });
      await put(other, { companies: true });
      expect((await site.request('GET', `${CRM}/companies`)).status).toBe(200);
      await inCode(site, 'company').create({ name: 'Loud' });
      const events = await log.take();
      expect(events.map(({ event, data }) => [event, data.name])).toEqual([
        ['company.created', 'Loud'],
      ]);
    }
  });

  it('off: their events are neither offered nor sent, and their routes say why', async () => {
    const routes = {
      companies: 'companies',
      sales_pipeline: 'deals',
      email_marketing: 'campaigns',
    };
    for (const [module, path] of Object.entries(routes)) {
      await put(site, { [module]: false });
      const answer = await site.request('GET', `${CRM}/${path}`);
      const { body } = await site.request('GET', `${CRM}/webhooks/events`);
      await put(site, { [module]: true });
      expect(answer.status).toBe(404);
      expect(answer.body.error.message).toMatch(/is switched off/);
      const offered = body.data.map((row: { module: string | null }) => row.module);
      expect(offered).not.toContain(module);
    }
  });

  it('Webhooks off: nothing is queued, and nothing comes later', async () => {
    await put(site, { webhooks: false });
    await inCode(other, 'contact').create({ email: 'silent@example.test' });
    await put(site, { webhooks: true });
    await inCode(other, 'contact').create({ email: 'loud@example.test' });
    const events = await log.take();
    expect(names(events)).toEqual(['contact.created']);
    expect(events[0]?.data.email).toBe('loud@example.test');
  });
});
