import { databases, describeEach } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  insertDeliveries,
  listDeliveries,
  send,
  sql,
} from '../api/delivery-support';

/** Refuses to keep what a receiver of the event `bad.row` answered, as some broken row might be. */
const TRIGGERS = {
  sqlite: [
    `CREATE TRIGGER bad_row BEFORE INSERT ON switchboard_attempts
       WHEN length(NEW.answer_body) > 2000 AND
         (SELECT event FROM switchboard_deliveries d WHERE d.id = NEW.delivery_id) = 'bad.row'
       BEGIN SELECT RAISE(ABORT, 'bad row'); END`,
  ],
  postgres: [
    `CREATE FUNCTION bad_row() RETURNS trigger AS $$ BEGIN
       IF length(NEW.answer_body) > 2000 AND
         (SELECT event FROM switchboard_deliveries d WHERE d.id = NEW.delivery_id) = 'bad.row' THEN RAISE EXCEPTION 'bad row'; END IF;
       RETURN NEW; END $$ LANGUAGE plpgsql`,
    'CREATE TRIGGER bad_row BEFORE INSERT ON switchboard_attempts FOR EACH ROW EXECUTE FUNCTION bad_row()',
  ],
  mysql: [
    `CREATE TRIGGER bad_row BEFORE INSERT ON switchboard_attempts FOR EACH ROW BEGIN
       IF LENGTH(NEW.answer_body) > 2000 AND
         (SELECT event FROM switchboard_deliveries d WHERE d.id = NEW.delivery_id) = 'bad.row' THEN
         SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'bad row'; END IF; END`,
  ],
} as const;

describeEach(databases(), 'bodies and answers that are large together', (database) => {
  let site: Site;
  let receiver: Receiver;
  let chatty: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    chatty = await startReceiver({ size: 20_000 });
    site = await startSite({ database, options: { webhooks: { pollSeconds: 1 } } });
  }, 120_000);
  afterAll(async () => {
    await site?.stop();
    await receiver?.close();
    await chatty?.close();
  }, 60_000);
  beforeEach(async () => {
    await sql(site, 'DELETE FROM switchboard_deliveries');
    await sql(site, 'DELETE FROM switchboard_webhooks');
    receiver.clear();
    chatty.clear();
  });

  it('fail no bulk write: 40 contacts of 200 kB with three webhooks', async () => {
    for (const name of ['a', 'b', 'c']) await createWebhook(site, receiver.url, { name });
    await site.evaluate(async ({ strapi }) => {
      await strapi.db.query('plugin::switchboard.contact').createMany({
        data: Array.from({ length: 40 }, (_one, index) => ({
          email: `large-${index}@example.test`,
          fields: { note: '"quoted" '.repeat(22_000) },
        })),
      });
    });
    expect(await countRows(site)).toBe(120);
    await receiver.waitFor(120, 60_000);
    await waitFor(async () => (await countRows(site, "status = 'sent'")) === 120, 60_000);
    expect(receiver.requests).toHaveLength(120);
  }, 180_000);

  it('lose no outcome: each receiver gets exactly one post an event', async () => {
    const loud = await createWebhook(site, chatty.url, { name: 'loud' });
    const innocent = await createWebhook(site, receiver.url, { name: 'innocent' });
    // As after six tries that were answered with as much: a row of 120 kB each.
    const attempts = await site.evaluate(() =>
      JSON.stringify(
        Array.from({ length: 6 }, () => ({
          at: '2026-01-01T00:00:00+00:00',
          request: { url: 'http://127.0.0.1/', headers: {} },
          answer: { status: 500, headers: {}, body: '"'.repeat(20_000), truncated: true },
          error: 'http_500',
          duration_ms: 1,
          manual: false,
        }))
      )
    );
    // A few at a time: the statement of the test has to fit a packet, too.
    for (let part = 0; part < 30; part += 1) {
      await insertDeliveries(site, loud.id, 10, { attempts, tries: 6 });
    }
    await insertDeliveries(site, innocent.id, 300);
    await waitFor(async () => (await countRows(site, "status = 'sent'")) === 600, 90_000);
    for (const one of [receiver, chatty]) {
      const counts = [...arrivals(one).values()].map((posts) => posts.length);
      expect(counts).toHaveLength(300);
      expect(new Set(counts)).toEqual(new Set([1]));
    }
    expect(site.log()).not.toContain('could not be recorded');
  }, 180_000);

  it('stand alone where the database refuses one: the others are recorded, and that one without its answer', async () => {
    for (const statement of TRIGGERS[database]) await sql(site, statement);
    const loud = await createWebhook(site, chatty.url, { name: 'loud' });
    const innocent = await createWebhook(site, receiver.url, { name: 'innocent' });
    await insertDeliveries(site, innocent.id, 150);
    await insertDeliveries(site, loud.id, 1, { event: 'bad.row' });
    await insertDeliveries(site, innocent.id, 149);
    await waitFor(async () => (await countRows(site, "status = 'sent'")) === 300, 60_000);
    expect(arrivals(receiver).size).toBe(299);
    expect(receiver.requests).toHaveLength(299);
    expect(chatty.requests).toHaveLength(1);
    const [bad] = await sql<{ id: number; document_id: string }>(
      site,
      "SELECT id, document_id FROM switchboard_deliveries WHERE event = 'bad.row'"
    );
    const [logged] = await listDeliveries(site, loud.id);
    expect(logged?.attempts).toMatchObject([
      { error: null, answer: { status: 200, body: '', truncated: true } },
    ]);
    expect(site.log()).toContain(bad!.document_id);
    await sql(
      site,
      database === 'postgres'
        ? 'DROP TRIGGER bad_row ON switchboard_attempts'
        : 'DROP TRIGGER bad_row'
    );
  }, 120_000);

  if (database === 'mysql') {
    it('are left out by name and size where not even one fits a statement; the write goes on', async () => {
      const { id } = await createWebhook(site, receiver.url);
      expect(
        await site.evaluate(({ strapi }) =>
          strapi.db.transaction(async () => {
            await strapi.db.query('api::label.label').create({ data: { title: 'kept' } });
            return strapi
              .service('plugin::switchboard.events')
              .send('large.event', { text: 'x'.repeat(17 * 1024 * 1024) });
          })
        )
      ).toBe(0);
      expect(await sql(site, "SELECT title FROM labels WHERE title = 'kept'")).toHaveLength(1);
      expect(site.log()).toMatch(
        new RegExp(`large.event could not be written for webhook ${id}: .*178\\d{5}`)
      );
      expect(await send(site, 'small.event', {})).toBe(1);
    }, 60_000);
  }
});
