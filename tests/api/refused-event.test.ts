import type { Core } from '@strapi/strapi';
import { type DatabaseKind, databases, describeEach } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { countRows, createWebhook, useSiteAndReceiver } from './delivery-support';

const CHECK = `ALTER TABLE switchboard_deliveries ADD CONSTRAINT refuse CHECK (subject_label <> 'Refused')`;
/** Has the database refuse deliveries about contacts of that name. */
const REFUSE: Record<DatabaseKind, string> = {
  sqlite: `CREATE TRIGGER refuse BEFORE INSERT ON switchboard_deliveries WHEN NEW.subject_label = 'Refused'
    BEGIN SELECT RAISE(ABORT, 'refuse'); END`,
  postgres: CHECK,
  mysql: CHECK,
};

type Write = (site: { strapi: Core.Strapi }, last_name: string) => Promise<unknown>;

const WAYS: Record<string, Write> = {
  'by a call': ({ strapi }, last_name) =>
    strapi.documents('plugin::switchboard.contact').create({ data: { last_name } }),
  'by a query': ({ strapi }, last_name) =>
    strapi.db.query('plugin::switchboard.contact').create({ data: { last_name } }),
  'by a call in a transaction': ({ strapi }, last_name) =>
    strapi.db.transaction(() =>
      strapi.documents('plugin::switchboard.contact').create({ data: { last_name } })
    ),
};

/** As many at once as there are connections, and more. */
const MANY = 12;

describeEach(databases(), 'a write whose event the database refuses', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: {} }, (s, r) => {
    [site, receiver] = [s, r];
  });
  beforeAll(() => site.control('sql', { statement: REFUSE[database], bindings: [] }));

  it.each(Object.keys(WAYS))('is undone, and no other one, %s', async (way) => {
    const webhook = await createWebhook(site, receiver.url);
    const write = (name: string) => site.evaluate(WAYS[way]!, `${name} ${way}`.slice(0, 40));
    const many = (name: string) => Array.from({ length: MANY }, (_, n) => write(`${name} ${n}`));
    const refuse = () => site.evaluate(WAYS[way]!, 'Refused');
    // Connections to PostgreSQL keep the statement from its first time on.
    await Promise.all(many('before'));
    const [first, between, last] = await Promise.allSettled([refuse(), write('between'), refuse()]);
    expect([first.status, between.status, last.status]).toEqual([
      'rejected',
      'fulfilled',
      'rejected',
    ]);
    expect(String((first as PromiseRejectedResult).reason)).toMatch(/refuse/);
    await Promise.all(many('after'));
    const written = await site.evaluate(
      ({ strapi }, end) =>
        strapi.db
          .query('plugin::switchboard.contact')
          .count({ where: { last_name: { $endsWith: end } } }),
      way
    );
    expect(written).toBe(2 * MANY + 1);
    await receiver.waitFor(2 * MANY + 1, 10_000);
    expect(await countRows(site, 'webhook_id = ?', [webhook.id])).toBe(2 * MANY + 1);
    expect(await countRows(site, "subject_label = 'Refused'")).toBe(0);
  });

  if (database !== 'postgres') return;

  it('has its answer with that of the commit, and nothing else is sent ahead of answers', async () => {
    await createWebhook(site, receiver.url);
    const { lines, ahead } = await site.evaluate(async ({ strapi }, many) => {
      const { client } = strapi.db.connection;
      const connection = await client.acquireConnection();
      const prototype = Object.getPrototypeOf(connection);
      await client.releaseConnection(connection);
      const { query } = prototype;
      const said = new Map<object, string[]>();
      const ahead: boolean[] = [];
      prototype.query = function (config: { text: string }, answered: (...all: unknown[]) => void) {
        const [word] = config.text.split(/\W/);
        const lines = said.get(this) ?? [];
        said.set(this, lines);
        lines.push(`${word} sent`);
        if (word !== 'COMMIT') ahead.push(this.pipeline);
        return query.call(this, config, (...answer: unknown[]) => {
          lines.push(`${word} answered`);
          answered(...answer);
        });
      };
      const create = (last_name: string) =>
        strapi.documents('plugin::switchboard.contact').create({ data: { last_name } });
      try {
        for (let turn = 0; turn < 3; turn += 1) {
          await Promise.all(Array.from({ length: many }, (_, n) => create(`${turn} ${n}`)));
        }
      } finally {
        prototype.query = query;
      }
      return { lines: [...said.values()].map((one) => one.join(', ')), ahead };
    }, MANY);
    const together = /WITH sent, COMMIT sent, WITH answered, COMMIT answered/;
    expect(lines.filter((one) => together.test(one))).not.toEqual([]);
    expect(ahead).not.toContain(true);
  });
});
