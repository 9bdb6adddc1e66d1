import { databases, describeEach } from '../support/databases';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import { inCode } from './crm-helpers';
import {
  copyWebhook,
  createWebhook,
  getWebhook,
  removeWebhook,
  send,
  updateWebhook,
  useSiteAndReceiver,
} from './delivery-support';

const NOWHERE = 'http://127.0.0.1:9/';

describeEach(databases(), 'the index of subscriptions', (database) => {
  let site: Site;
  useSiteAndReceiver({ database, webhooks: { dispatch: false } }, (started) => {
    site = started;
  });

  const indexed = async (id: number): Promise<string[]> => {
    const rows = (await site.control('sql', {
      statement: 'SELECT event FROM switchboard_subscriptions WHERE webhook_id = ? ORDER BY event',
      bindings: [id],
    })) as { event: string }[];
    return rows.map(({ event }) => event);
  };
  const queued = async (): Promise<{ webhook: number; event: string }[]> => {
    const rows = (await site.control('sql', {
      statement: 'SELECT webhook_id, event FROM switchboard_deliveries ORDER BY id',
    })) as { webhook_id: number; event: string }[];
    return rows.map(({ webhook_id: webhook, event }) => ({ webhook: Number(webhook), event }));
  };
  const update = (id: number, events: string[]) =>
    site.control('sql', {
      statement: 'UPDATE switchboard_webhooks SET events = ? WHERE id = ?',
      bindings: [JSON.stringify(events), id],
    });

  it('has what a webhook chose, as long as it is there', async () => {
    const { id } = await createWebhook(site, NOWHERE, { events: ['deal.won', 'contact.created'] });
    expect(await indexed(id)).toEqual(['contact.created', 'deal.won']);
    await updateWebhook(site, id, { name: 'renamed' });
    expect(await indexed(id)).toEqual(['contact.created', 'deal.won']);
    await updateWebhook(site, id, { events: ['*'] });
    expect(await indexed(id)).toEqual(['*']);
    await removeWebhook(site, id);
    expect(await indexed(id)).toEqual([]);
  });

  it('follows what the site itself makes of a webhook, and nothing that is rolled back', async () => {
    const { id } = await createWebhook(site, NOWHERE, { events: ['deal.won'] });
    const write = (events: string[], fails: boolean) =>
      site.evaluate(
        async ({ strapi }, webhook, chosen, failing) => {
          try {
            await strapi.db.transaction(async () => {
              await strapi.db
                .query('plugin::switchboard.webhook')
                .updateMany({ where: { id: webhook }, data: { events: chosen as never } });
              if (failing) throw new Error('changed my mind');
            });
          } catch (error) {
            if (!failing) throw error;
          }
        },
        id,
        events,
        fails
      );
    await write(['contact.created'], true);
    expect(await indexed(id)).toEqual(['deal.won']);
    await write(['contact.created'], false);
    expect(await indexed(id)).toEqual(['contact.created']);
    await inCode(site, 'contact').create({ email: 'followed@example.test' });
    expect(await queued()).toEqual([{ webhook: id, event: 'contact.created' }]);
  });

  it('is not needed by webhooks that came without it', async () => {
    const { id } = await createWebhook(site, NOWHERE, { events: ['deal.lost'] });
    await copyWebhook(site, id, 3);
    expect(await send(site, 'deal.lost')).toBe(4);
    // One that is made as usual must not hide them.
    await createWebhook(site, NOWHERE, { events: ['deal.won'] });
    expect(await send(site, 'deal.lost')).toBe(4);
    expect(await indexed(id + 1)).toEqual(['deal.lost']);
  });

  it('is repaired where somebody changed a webhook behind it', async () => {
    const { id } = await createWebhook(site, NOWHERE, { events: ['deal.won'] });
    await update(id, ['deal.lost']);
    // What the webhook says is what counts: it wants no deals any more.
    expect(await send(site, 'deal.won')).toBe(0);
    await waitFor(async () => {
      await site.request('GET', '/api/fw-crm/v1/webhooks');
      return (await indexed(id)).join() === 'deal.lost';
    });
    expect(await send(site, 'deal.lost')).toBe(1);
  });

  it('takes what is no list for no events, at a write and at a boot', async () => {
    const ids: number[] = [];
    for (const events of ['["deal.won"', '{"deal.won":1}', null]) {
      const { id } = await createWebhook(site, NOWHERE, { events: ['deal.won'] });
      await site.control('sql', {
        statement: 'UPDATE switchboard_webhooks SET events = ? WHERE id = ?',
        bindings: [events, id],
      });
      expect([events, await send(site, 'deal.won')]).toEqual([events, 0]);
      ids.push(id);
    }
    await site.restart();
    for (const id of ids) expect(await indexed(id)).toEqual([]);
    expect(await send(site, 'deal.won')).toBe(0);
    for (const id of ids) {
      const { status, body } = await site.request('GET', `/api/fw-crm/v1/webhooks/${id}`);
      expect(status).toBe(200);
      expect(body).toMatchObject({ id, events: [] });
    }
  });

  it('leaves nobody out, however many chose the same and however many are off', async () => {
    const { id } = await createWebhook(site, NOWHERE, { events: ['deal.lost'] });
    await copyWebhook(site, id, 1100);
    await createWebhook(site, NOWHERE, { events: ['deal.won', 'deal.lost'] });
    await site.control('sql', {
      statement: 'UPDATE switchboard_webhooks SET active = ? WHERE id > ? AND id <= ?',
      bindings: [false, id, id + 600],
    });
    expect(await send(site, 'deal.lost')).toBe(502);
    // By the thousand, no request each.
    for (const table of ['deliveries', 'delivery_queue', 'messages', 'subscriptions', 'webhooks'])
      await site.control('sql', { statement: `DELETE FROM switchboard_${table}` });
  });

  it('keeps no reason of a webhook that is saved as active while it is switched off', async () => {
    const { id } = await createWebhook(site, NOWHERE);
    // As whoever records its last failure does; the transaction goes on until the other one waits.
    const switchedOff = site.evaluate(
      ({ strapi, state }, webhook) =>
        strapi.db.transaction(async () => {
          const { document_id: documentId } = (await strapi.db
            .connection('switchboard_webhooks')
            .transacting((await strapi.db.transaction()).get())
            .where({ id: webhook })
            .forUpdate()
            .first()) as { document_id: string };
          state.isLocked = true;
          await new Promise((resolve) => {
            setTimeout(resolve, 700);
          });
          await strapi.documents('plugin::switchboard.webhook').update({
            documentId,
            data: {
              ...{ active: false, disabled_reason: 'Switched off.', disabled_at: 1 },
              ...{ consecutive_failures: 7, failed_attempts: 7, failing_since: 1 },
            } as never,
          });
        }),
      id
    );
    await waitFor(() => site.control('state', { key: 'isLocked' }));
    const saved = await updateWebhook(site, id, { active: true, name: 'saved' });
    await switchedOff;
    expect(saved.body).toMatchObject({ active: true, name: 'saved' });
    expect(await getWebhook(site, id)).toMatchObject({
      ...{ active: true, disabled_reason: null, disabled_at: null, consecutive_failures: 0 },
    });
  });

  it('takes any number of webhooks that are made at once, and sweeps beside them', async () => {
    const events = ['deal.won', 'deal.lost', 'contact.created'];
    const sweep = () => site.request('GET', '/api/fw-crm/v1/webhooks');
    const made = await Promise.all(
      Array.from({ length: 24 }, async (_none, nth) => {
        if (nth % 6 === 0) await sweep();
        return createWebhook(site, NOWHERE, { name: `at once ${nth}`, events });
      })
    );
    for (const { id } of made) expect(await indexed(id)).toEqual([...events].sort());
    await send(site, 'deal.won');
    const sent = (await queued()).map(({ webhook }) => webhook);
    for (const { id } of made) expect(sent.filter((webhook) => webhook === id)).toEqual([id]);
  });

  it('takes one in that becomes known after a younger one', async () => {
    const first = await createWebhook(site, NOWHERE, { events: ['deal.won'] });
    // Where it stands once one that was made later is in the index first.
    await site.control('sql', {
      statement: 'UPDATE switchboard_subscriptions SET webhook_id = ? WHERE webhook_id = ?',
      bindings: [first.id + 5, first.id],
    });
    const next = await createWebhook(site, NOWHERE, { events: ['deal.won'] });
    expect(next.id).toBeLessThan(first.id + 5);
    expect(await indexed(next.id)).toEqual(['deal.won']);
    await site.control('sql', {
      statement: 'DELETE FROM switchboard_subscriptions WHERE webhook_id = ?',
      bindings: [first.id + 5],
    });
  });
});
