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

  /** Connections to PostgreSQL keep a statement from its first time on, and no more once it failed: to new ones. */
  const startAfresh = () =>
    site.evaluate(async ({ strapi }, many) => {
      const { client } = strapi.db.connection;
      if (client.driverName === 'better-sqlite3') return;
      const count = Math.min(many, client.pool.max);
      const all = await Promise.all(
        Array.from({ length: count }, () => client.acquireConnection())
      );
      for (const one of all) one.__knex__disposed = 'for a test';
      await Promise.all(all.map((one) => client.releaseConnection(one)));
    }, MANY);

  it.each(Object.keys(WAYS))('is undone, and no other one, %s', async (way) => {
    const webhook = await createWebhook(site, receiver.url);
    const write = (name: string) => site.evaluate(WAYS[way]!, `${name} ${way}`.slice(0, 40));
    const many = (name: string) => Array.from({ length: MANY }, (_, n) => write(`${name} ${n}`));
    const refuse = () => site.evaluate(WAYS[way]!, 'Refused');
    await startAfresh();
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

  /**
   * Makes contacts, which are refused at the end.
   * @param isSplit the site sets a savepoint in each call, before the event
   * @returns what was sent and answered, by connection; whether something but commits was sent ahead; what was refused
   */
  const watched = async (isSplit: boolean) => {
    await startAfresh();
    await createWebhook(site, receiver.url);
    const run: (
      given: { strapi: Core.Strapi },
      many: number,
      split: boolean
    ) => Promise<{ lines: string[]; ahead: boolean[]; refused: string[] }> = async (
      { strapi },
      many,
      split
    ) => {
      const { client } = strapi.db.connection;
      const held = await client.acquireConnection();
      const prototype = Object.getPrototypeOf(held);
      await client.releaseConnection(held);
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
      const forget = strapi.db.lifecycles.subscribe({
        models: ['plugin::switchboard.contact'],
        async afterCreate() {
          if (split) await strapi.db.transaction(({ trx }) => trx.raw('SAVEPOINT own'));
        },
      });
      const create = (last_name: string) =>
        strapi.documents('plugin::switchboard.contact').create({ data: { last_name } });
      try {
        for (let turn = 0; turn < 3; turn += 1) {
          await Promise.all(Array.from({ length: many }, (_, n) => create(`${turn} ${n}`)));
        }
        const lines = [...said.values()].map((one) => one.join(', '));
        const last = await Promise.allSettled([create('Refused'), create('Refused')]);
        const refused = last.map((one) => String((one as PromiseRejectedResult).reason));
        return { lines, ahead, refused };
      } finally {
        forget();
        prototype.query = query;
      }
    };
    return site.evaluate(run, MANY, isSplit);
  };

  const together = /WITH sent, COMMIT sent, WITH answered, COMMIT answered/;

  it.each([false, true])(
    'has its answer with that of the commit, unless a savepoint could undo it: %s',
    async (isSplit) => {
      const { lines, ahead, refused } = await watched(isSplit);
      expect(lines.some((one) => together.test(one))).toBe(!isSplit);
      expect(lines.join()).toMatch(/WITH answered/);
      expect(ahead).not.toContain(true);
      expect(refused.join()).toMatch(/refuse.*refuse/s);
      expect(await countRows(site, "subject_label = 'Refused'")).toBe(0);
    }
  );

  it('gives the room of its sender back', async () => {
    await createWebhook(site, receiver.url);
    const refused = await site.evaluate(async ({ strapi }) => {
      const create = (last_name: string) =>
        strapi.documents('plugin::switchboard.contact').create({ data: { last_name } });
      let count = 0;
      for (let n = 0; n < 100; n += 1) await create('Refused').catch(() => (count += 1));
      return count;
    });
    expect(refused).toBe(100);
    receiver.respond({ delayMs: 700 });
    await site.evaluate(({ strapi }) =>
      strapi.documents('plugin::switchboard.contact').create({ data: { last_name: 'kept' } })
    );
    await receiver.waitFor(1);
    const [row] = await site.control<{ owner: string; document_id: string }[]>('sql', {
      statement: `SELECT d.document_id, q.owner FROM switchboard_deliveries d
        JOIN switchboard_delivery_queue q ON q.id = d.id`,
      bindings: [],
    });
    expect(row?.owner).toBe(row?.document_id);
  });
});
