import { describeEach, anyDatabase } from '../support/databases';
import { send } from '../support/http';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { createWebhook, removeWebhook, sql, updateWebhook } from './delivery-support';
import { admin, createTill } from './pos-till';

const TYPES = ['webhook', 'message', 'delivery', 'pos-connection'];
const uidOf = (name: string): string => `plugin::switchboard.${name}`;

interface Heard {
  uid: string;
  action: string;
}

describeEach(anyDatabase(), 'webhooks, deliveries and connections as content types', (database) => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({
      database,
      options: { webhooks: { disableAfterFailures: 1, retryScheduleSeconds: [] } },
    });
    await site.evaluate(({ strapi, state }) => {
      state.heard = [];
      strapi.db.lifecycles.subscribe({
        models: ['plugin::switchboard.webhook', 'plugin::switchboard.pos-connection'],
        afterCreate: ({ model }: { model: { uid: string } }) =>
          state.heard.push({ uid: model.uid, action: 'create' }),
        afterUpdate: ({ model }: { model: { uid: string } }) =>
          state.heard.push({ uid: model.uid, action: 'update' }),
        afterDelete: ({ model }: { model: { uid: string } }) =>
          state.heard.push({ uid: model.uid, action: 'delete' }),
      });
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  const documents = <T>(name: string, method: string, params: unknown = {}) =>
    site.control<T>('documents', { uid: uidOf(name), method, params });
  const heard = async (name: string): Promise<string[]> => {
    const all = await site.control<Heard[]>('state', { key: 'heard' });
    await site.evaluate(({ state }) => {
      state.heard.length = 0;
    });
    return all.filter(({ uid }) => uid === uidOf(name)).map(({ action }) => action);
  };

  it('are found by the document service, with the names of the answers', async () => {
    const made = await createWebhook(site, receiver.url, { events: ['*'] });
    await site.control('send', { event: 'loyalty.earned', data: { points: 5 } });
    const [post] = await receiver.waitFor(1);
    const id = post!.headers['x-service-delivery'];

    const [webhook] = await documents<Record<string, unknown>[]>('webhook', 'findMany', {
      filters: { name: 'receiver' },
    });
    expect(webhook).toMatchObject({
      id: made.id,
      documentId: expect.stringMatching(/^[a-z0-9]{24}$/),
      name: 'receiver',
      url: receiver.url,
      events: ['*'],
      active: true,
      disabled_reason: null,
      disabled_at: null,
      consecutive_failures: 0,
      created_at: Date.parse(made.created_at),
    });
    expect(JSON.stringify(webhook)).not.toContain(made.secret);

    const delivery = await documents<Record<string, unknown>>('delivery', 'findOne', {
      documentId: id,
      populate: ['webhook'],
    });
    expect(delivery).toMatchObject({
      documentId: id,
      webhook_id: made.id,
      webhook: { id: made.id },
      event: 'loyalty.earned',
      state: expect.stringMatching(/^(pending|sent)$/),
      body: post!.body,
      attempts: expect.any(Array),
    });
    expect(
      await documents('delivery', 'count', { filters: { webhook_id: made.id, state: 'failed' } })
    ).toBe(0);

    const till = await createTill(site, { name: 'Till X', group: 'shop' });
    const [connection] = await documents<Record<string, unknown>[]>('pos-connection', 'findMany', {
      filters: { key: till.key },
      sort: 'created_at:desc',
    });
    expect(connection).toMatchObject({
      id: till.id,
      name: 'Till X',
      type: 'Generic webhook',
      mode: 'live',
      group: 'shop',
      scopes: ['sale:write', 'refund:write', 'inventory:write'],
      locations: [],
      active: true,
    });
    expect(JSON.stringify(connection)).not.toContain(till.secret);
    await removeWebhook(site, made.id);
  });

  it('are heard of by lifecycle subscribers when the plugin writes them', async () => {
    await heard('webhook');
    const { id } = await createWebhook(site, receiver.url);
    expect(await heard('webhook')).toEqual(['create']);
    await updateWebhook(site, id, { name: 'renamed' });
    await site.request('POST', `/api/fw-crm/v1/webhooks/${id}/secret`);
    expect(await heard('webhook')).toEqual(['update', 'update']);

    receiver.respond({ status: 410 });
    await site.control('send', { event: 'loyalty.earned', data: {} });
    await waitFor(
      async () => !(await site.request('GET', `/api/fw-crm/v1/webhooks/${id}`)).body.active,
      20_000,
      'the webhook to be switched off'
    );
    expect(await heard('webhook')).toEqual(['update']);
    receiver.respond({});
    await removeWebhook(site, id);
    expect(await heard('webhook')).toEqual(['delete']);

    await heard('pos-connection');
    const till = await createTill(site);
    await admin(site, 'PUT', `/connections/${till.id}`, { name: 'Till 9' });
    await admin(site, 'POST', `/connections/${till.id}/revoke`, undefined, 200);
    expect(await heard('pos-connection')).toEqual(['create', 'update', 'update']);
  });

  it('may be written with the document service: what is left out has its default', async () => {
    const made = await documents<{ id: number; documentId: string }>('webhook', 'create', {
      data: { name: 'by code', url: receiver.url, events: ['*'], active: false },
    });
    const answer = await site.request('GET', `/api/fw-crm/v1/webhooks/${made.id}`);
    expect(answer.body).toMatchObject({
      name: 'by code',
      active: false,
      consecutive_failures: 0,
      created_at: expect.stringContaining('+00:00'),
    });
    await documents('webhook', 'update', {
      documentId: made.documentId,
      data: { events: ['contact.created'] },
    });
    const changed = await site.request('GET', `/api/fw-crm/v1/webhooks/${made.id}`);
    expect(changed.body.events).toEqual(['contact.created']);
    await documents('webhook', 'delete', { documentId: made.documentId });
    expect((await site.request('GET', `/api/fw-crm/v1/webhooks/${made.id}`)).status).toBe(404);
  });

  it('are in none of the host’s generic doors', async () => {
    const schemas = await site.evaluate(
      ({ strapi }, names) =>
        names.map((name: string) => {
          const { options, pluginOptions, attributes } = strapi.contentType(
            `plugin::switchboard.${name}`
          );
          return { options, pluginOptions, attributes };
        }),
      TYPES
    );
    for (const { options, pluginOptions, attributes } of schemas as {
      options: unknown;
      pluginOptions: unknown;
      attributes: Record<string, { private?: boolean }>;
    }[]) {
      expect(options).toMatchObject({ draftAndPublish: false });
      expect(pluginOptions).toMatchObject({
        'content-manager': { visible: false },
        'content-type-builder': { visible: false },
      });
      expect(attributes.site_instance?.private).toBe(true);
      for (const name of ['secret', 'key_digest']) {
        if (attributes[name]) expect(attributes[name].private).toBe(true);
      }
    }

    const shown = await site.request('GET', '/content-manager/content-types');
    const init = await site.request('GET', '/content-manager/init');
    const builder = await site.request('GET', '/content-type-builder/content-types');
    const displayed = (list: { uid: string; isDisplayed?: boolean; schema?: object }[]) =>
      list
        .filter((type) => type.isDisplayed !== false)
        .filter(({ schema }) => (schema as { visible?: boolean } | undefined)?.visible !== false)
        .map(({ uid }) => uid);
    for (const uids of [
      displayed(shown.body.data),
      displayed(init.body.data.contentTypes),
      displayed(builder.body.data),
    ]) {
      for (const name of TYPES) expect(uids).not.toContain(uidOf(name));
    }
    for (const path of ['webhooks', 'deliveries', 'pos-connections', 'switchboard/webhooks']) {
      const answer = await send({ method: 'GET', url: `${site.url}/api/${path}` });
      expect([path, answer.status]).toEqual([path, 404]);
    }
    for (const name of TYPES) {
      const list = await site.request(
        'GET',
        `/content-manager/collection-types/${uidOf(name)}?page=1`
      );
      expect(list.status).toBe(404);
    }
    const actions = await site.evaluate(({ strapi }) =>
      JSON.stringify(strapi.contentAPI.permissions.getActionsMap())
    );
    for (const controller of ['"webhook"', '"delivery"', '"pos-connection"']) {
      expect(actions).not.toContain(controller);
    }
  });

  it('index a delivery’s id once, and carry no foreign key', async () => {
    const { indexes, foreignKeys, columns } = await site.evaluate(async ({ strapi }) => ({
      indexes: await strapi.db.dialect.schemaInspector.getIndexes('switchboard_deliveries'),
      foreignKeys: await strapi.db.dialect.schemaInspector.getForeignKeys('switchboard_deliveries'),
      columns: Object.keys(await strapi.db.connection('switchboard_deliveries').columnInfo()),
    }));
    // The host's inspector of PostgreSQL leaves the primary key's column out of other indexes, and has
    // columns in the order of the table.
    const withoutId = (names: string[]): string[] => names.filter((name) => name !== 'id');
    const known = (names: string[]): string[] =>
      database === 'postgres' ? expect.arrayContaining(names) : names;
    const byName = Object.fromEntries(
      (indexes as { name: string; columns: string[] }[])
        .filter((one) => withoutId(one.columns).length > 0)
        .map((one) => [one.name, withoutId(one.columns)])
    );
    const leading = Object.values(byName).map((list) => list[0]);
    expect(leading.filter((name) => name === 'document_id')).toHaveLength(1);
    expect(byName).toMatchObject({
      sb_delivery_new: known(['webhook_id', 'created_at']),
      sb_delivery_all: known(['created_at']),
      sb_delivery_event: known(['event', 'created_at']),
      sb_delivery_subject: known(['subject_type', 'subject_id', 'created_at']),
    });
    expect(Object.keys(byName)).toHaveLength(5);
    expect(foreignKeys).toEqual([]);
    expect(columns).not.toContain('delivery_id');
    expect(columns).not.toContain('created_by_id');
  });

  it('keep what the queue has beside them over boots', async () => {
    const { id } = await createWebhook(site, 'http://127.0.0.1:9/');
    await site.control('send', { event: 'loyalty.earned', data: {} });
    const before = await sql(site, 'SELECT id, paused_ms FROM switchboard_deliveries');
    expect(before.length).toBeGreaterThan(0);
    await site.restart();
    const after = await sql(site, 'SELECT id, paused_ms FROM switchboard_deliveries');
    expect(after.map((row) => row.id)).toEqual(before.map((row) => row.id));
    await removeWebhook(site, id);
  });
});
