import { keyDigest } from '../../server/src/pos/intake/authentication';
import { anyDatabase, describeEach } from '../support/databases';
import { send } from '../support/http';
import { type Site, startSite } from '../support/site';
import { admin, BASE, createItem, createTill, saleBody, type Till } from './pos-till';

describeEach(anyDatabase(), 'a connection of a till', (database) => {
  let site: Site;

  beforeAll(async () => {
    site = await startSite({
      database,
      options: { pos: { failedAuthPerMinute: 100_000 } },
    });
    await createItem(site, 'MUG', 10);
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const change = (till: Till, body: unknown) => admin(site, 'PUT', `/connections/${till.id}`, body);
  const refusal = async (method: string, path: string, body: unknown) => {
    const answer = await site.request(method, `/switchboard${path}`, { body });
    return [answer.status, JSON.stringify(answer.body)] as const;
  };

  it('has a type, which is stored, answered and cannot be another', async () => {
    const made = await admin(site, 'POST', '/connections', { name: 'No type', scopes: [] });
    expect(made).toMatchObject({ type: 'Generic webhook', active: true, disabled_reason: null });
    const named = await admin(site, 'POST', '/connections', {
      name: 'Named',
      type: 'Generic webhook',
      scopes: [],
    });
    for (const read of [
      await admin(site, 'GET', `/connections/${named.id}`),
      await admin(site, 'PUT', `/connections/${named.id}`, { type: 'Generic webhook' }),
    ]) {
      expect(read).toMatchObject({ type: 'Generic webhook', active: true });
    }
    const list = await site.request('GET', '/switchboard/connections');
    expect(list.body.data.map(({ type }: { type: string }) => type)).toEqual(
      list.body.data.map(() => 'Generic webhook')
    );
    for (const [method, path] of [
      ['POST', '/connections'],
      ['PUT', `/connections/${named.id}`],
    ] as const) {
      for (const type of ['Square', 'generic webhook', '', null, 1]) {
        const [status, text] = await refusal(method, path, { name: 'x', scopes: [], type });
        expect(status).toBe(400);
        expect(text).toContain('type');
      }
    }
  });

  it('has a key of one form, whatever its mode is, and keeps it for life', async () => {
    const test = await createTill(site, { mode: 'test' });
    const live = await createTill(site, { mode: 'live' });
    expect(test.key).toMatch(/^pos_live_[0-9A-Za-z]{22,}$/);
    expect(live.key).toMatch(/^pos_live_[0-9A-Za-z]{22,}$/);
    expect(await change(test, { mode: 'live' })).toMatchObject({ mode: 'live', key: test.key });
    await admin(site, 'POST', `/connections/${test.id}/secret`, undefined, 200).then(
      ({ secret }) => {
        test.secret = secret;
      }
    );
    expect((await test.sale([['MUG', 1]])).status).toBe(202);
    const byDefault = await admin(site, 'POST', '/connections', { name: 'Default', scopes: [] });
    expect(byDefault).toMatchObject({ mode: 'test', key: expect.stringMatching(/^pos_live_/) });
  });

  it('goes on with a key of the form that test mode had before', async () => {
    const till = await createTill(site, { mode: 'test' });
    const key = till.key.replace('pos_live_', 'pos_test_');
    await site.evaluate(
      async ({ strapi }, [id, former, digest]) => {
        await strapi.db
          .connection('switchboard_connections')
          .where({ id })
          .update({ key: former, key_digest: digest });
      },
      [till.id, key, keyDigest(key)] as const
    );
    const before = { ...till, key };
    const ping = await site.request('GET', '/api/service-pos/v1/ping', {
      as: 'nobody',
      headers: { 'x-pos-key': before.key },
    });
    expect([ping.status, ping.body.mode]).toEqual([200, 'test']);
    expect(await change(till, { mode: 'live' })).toMatchObject({ mode: 'live', key });
  });

  it('is refused while it is switched off, and says so, until somebody switches it on', async () => {
    const till = await createTill(site);
    expect(await change(till, { active: false })).toMatchObject({
      active: false,
      disabled_reason: null,
    });
    const sent = await till.send('sale', saleBody([['MUG', 1]]));
    expect([sent.status, sent.body.code]).toEqual([401, 'revoked_key']);
    expect(sent.body.message).toMatch(/switched off/);
    const ping = await send<{ code: string; message: string }>({
      method: 'GET',
      url: `${site.url}${BASE}/ping`,
      headers: { 'x-pos-key': till.key },
    });
    expect([ping.status, ping.body.code]).toEqual([401, 'revoked_key']);
    expect(ping.body.message).toMatch(/switched off/);

    expect(await change(till, { active: true })).toMatchObject({
      active: true,
      disabled_reason: null,
    });
    expect((await till.send('sale', saleBody([['MUG', 1]]))).status).toBe(202);
    const [status, text] = await refusal('PUT', `/connections/${till.id}`, { active: 'yes' });
    expect([status, text.includes('active')]).toEqual([400, true]);
  });

  it('stays revoked when it is switched on', async () => {
    const till = await createTill(site);
    await admin(site, 'POST', `/connections/${till.id}/revoke`, undefined, 200);
    await change(till, { active: true });
    const sent = await till.send('sale', saleBody([['MUG', 1]]));
    expect([sent.status, sent.body.code]).toEqual([401, 'revoked_key']);
    expect(sent.body.message).toMatch(/revoked/);
  });
});
