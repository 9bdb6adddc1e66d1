import type * as NodeStream from 'node:stream';
import type * as StrapiUtils from '@strapi/utils';
import { anyDatabase, databases, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM } from './crm-helpers';

/** What is written side by side in one transaction, and transactions that the database does not commit. */

const CONTACT = 'plugin::switchboard.contact';

interface Told {
  event: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- events differ
  data: any;
}

describeEach(databases(), 'one transaction', (database) => {
  let site: Site;
  let last = 0;

  const sql = (statement: string): Promise<Record<string, unknown>[]> =>
    site.control('sql', { statement });

  /** What was queued since the last call. */
  const told = async (): Promise<Told[]> => {
    const rows = await sql(
      `select id, event, body from switchboard_deliveries where id > ${last} order by id`
    );
    last = Number(rows.at(-1)?.id ?? last);
    return rows.map(({ event, body }) => ({
      event: String(event),
      data: JSON.parse(String(body)).data,
    }));
  };
  const names = async (): Promise<string[]> => (await told()).map(({ event }) => event).sort();

  beforeAll(async () => {
    site = await startSite({
      database,
      options: {
        webhooks: { dispatch: false },
        forms: [
          { contentType: 'api::inquiry.inquiry', title: 'Inquiry', fields: { email: 'mail' } },
        ],
        sources: { entries: ['api::notice.notice'] },
      },
    });
    const body = { name: 'all', url: 'http://127.0.0.1:9/', events: ['*'] };
    expect((await site.request('POST', `${CRM}/webhooks`, { body })).status).toBe(201);
    await site.evaluate(({ strapi, state }) => {
      state.heard = [];
      state.warnings = [];
      strapi.hook('service_crm_webhook').register(({ event }: { event: string }) => {
        state.heard.push(event);
      });
    });
    // The process of a site that listens to it serves no other one.
    if (!anyDatabase().includes(database)) return;
    await site.evaluate(({ state }) => {
      process.on('warning', (warning) => state.warnings.push(warning.name));
    });
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);
  beforeEach(() => told());

  it('loses nothing of many where a handler goes back to a savepoint meanwhile', async () => {
    const MANY = 450;
    const going = await site.evaluate(
      async ({ strapi, state }, { uid, count }) => {
        state.went = 0;
        const goBack = async (argument: unknown) => {
          const trx = (await strapi.db.transaction()).get();
          await trx.raw('SAVEPOINT before_a_look');
          await new Promise(setImmediate);
          await trx.raw('ROLLBACK TO SAVEPOINT before_a_look');
          await trx.raw('RELEASE SAVEPOINT before_a_look');
          state.went += 1;
          return argument;
        };
        const hook = strapi.hook('service_crm_webhook_payload');
        hook.register(goBack);
        const data = Array.from({ length: count }, (_one, at) => ({ email: `many${at}@a.test` }));
        await strapi.db.query(uid).createMany({ data });
        hook.delete(goBack);
        return state.went as number;
      },
      { uid: CONTACT, count: MANY }
    );
    expect(going).toBe(MANY);
    expect(await names()).toEqual(Array(MANY).fill('contact.created'));
    await sql(`delete from switchboard_contacts where email like 'many%'`);
  });

  it('keeps none of many where the deliveries cannot be written', async () => {
    const table = 'switchboard_delivery_queue';
    const rename = (from: string, to: string) => sql(`alter table ${from} rename to ${to}`);
    await rename(table, 'switchboard_no_queue');
    const failed = await site.evaluate(
      async ({ strapi }, { uid }) => {
        const data = Array.from({ length: 450 }, (_one, at) => ({ email: `many${at}@a.test` }));
        return strapi.db
          .query(uid)
          .createMany({ data })
          .then(
            () => null,
            (error: Error) => error.message
          );
      },
      { uid: CONTACT }
    );
    await rename('switchboard_no_queue', table);
    expect(failed).toMatch(/switchboard_delivery_queue|refused a statement/);
    expect(await names()).toEqual([]);
    const left = await sql(
      `select count(*) as n from switchboard_contacts where email like 'many%'`
    );
    expect(Number(left[0]?.n)).toBe(0);
  });

  it('takes many events of other plugins at once', async () => {
    await site.evaluate(async ({ strapi }) => {
      await strapi.db.transaction(() =>
        Promise.all(
          Array.from({ length: 15 }, (_none, nth) =>
            strapi.hook('service_crm_webhook').call({ event: 'shop.ordered', data: { nth } })
          )
        )
      );
    });
    const orders = (await told()).map(({ data }) => data.nth).sort((a, b) => a - b);
    expect(orders).toEqual(Array.from({ length: 15 }, (_none, nth) => nth));
    expect(await site.control('state', { key: 'warnings' })).toEqual([]);
  });

  it('takes entries of forms and of named types at once', async () => {
    await site.evaluate(async ({ strapi }) => {
      const create = (uid: string, data: object) => strapi.documents(uid).create({ data });
      await strapi.db.transaction(() =>
        Promise.all([
          create('api::inquiry.inquiry', { mail: 'once@example.test' }),
          create('api::inquiry.inquiry', { mail: 'once@example.test' }),
          create('api::inquiry.inquiry', { mail: 'other@example.test' }),
          create('api::notice.notice', { words: 'one' }),
          create('api::notice.notice', { words: 'two' }),
        ])
      );
    });
    expect(await names()).toEqual([
      'contact.created',
      'contact.created',
      'entry.created',
      'entry.created',
      'form.submitted',
      'form.submitted',
      'form.submitted',
    ]);
    const rows = await sql("select id from switchboard_contacts where email like '%@example.test'");
    expect(rows).toHaveLength(2);
  });

  it('imports two files of the same contacts at once, and goes on after a row that fails', async () => {
    const reports = await site.evaluate(async ({ strapi, require: load }) => {
      const { Readable } = load('node:stream') as typeof NodeStream;
      const long = 'x'.repeat(300);
      const rows = (extra: string) =>
        Readable.from([
          Buffer.from(`email,first_name\nimp1@example.test,Ann\n${extra}imp2@example.test,Bob\n`),
        ]);
      const run = (extra: string) =>
        strapi.service('plugin::switchboard.contact-import').run(rows(extra));
      return strapi.db.transaction(() => Promise.all([run(`bad@example.test,${long}\n`), run('')]));
    });
    const [first, second] = reports as { created: number; unchanged: number; failed: number }[];
    expect((first?.created ?? 0) + (second?.created ?? 0)).toBe(2);
    expect(first?.failed).toBe(1);
    expect(await names()).toEqual(['contact.created', 'contact.created']);
  });

  it('has each write of one record tell its own change', async () => {
    await site.evaluate(async ({ strapi }, uid) => {
      const [contact, tag] = await Promise.all([
        strapi.documents(uid).create({ data: { email: 'own@example.test' } }),
        strapi.documents('plugin::switchboard.tag').create({ data: { name: 'A', slug: 'a' } }),
      ]);
      const { documentId } = contact;
      const update = (data: object) => strapi.documents(uid).update({ documentId, data });
      await strapi.db.transaction(() =>
        Promise.all([
          update({ first_name: 'Ann' }),
          update({ score: 5 }),
          update({ tags: { connect: [tag.documentId] } }),
          strapi.db.query(uid).update({ where: { documentId }, data: { phone: '+49 123456' } }),
        ])
      );
    }, CONTACT);
    const events = await told();
    expect(
      events
        .filter(({ event }) => event === 'contact.updated')
        .map(({ data }) => data.changed)
        .sort()
    ).toEqual([['first_name', 'name'], ['phone'], ['score']]);
    expect(events.filter(({ event }) => event === 'contact.tagged')).toHaveLength(1);
  });

  it('tells once that a record is gone, and is usable after a write that failed', async () => {
    const outcomes = await site.evaluate(async ({ strapi }, uid) => {
      const { id } = await strapi.db.query(uid).create({ data: { email: 'gone@example.test' } });
      return strapi.db.transaction(async () => {
        const settled = await Promise.allSettled([
          strapi.db.query(uid).deleteMany({ where: { id } }),
          strapi.db.query(uid).deleteMany({ where: { id } }),
          strapi.db.query(uid).update({ where: {}, data: { score: 1 } }),
          strapi.hook('service_crm_webhook').call({ event: 'shop.after', data: {} }),
        ]);
        return settled.map(({ status }) => status);
      });
    }, CONTACT);
    expect(outcomes).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(await names()).toEqual(['contact.created', 'contact.deleted', 'shop.after']);
  });

  it('tells what was written before a lifecycle failed, where it is committed', async () => {
    await site.evaluate(async ({ strapi }, uid) => {
      const { id } = await strapi.db.query(uid).create({ data: { email: 'kept@example.test' } });
      const stop = strapi.db.lifecycles.subscribe({
        models: [uid],
        afterUpdate: () => {
          throw new Error('the site refuses');
        },
      });
      await strapi.db.transaction(async () => {
        const write = strapi.db.query(uid).update({ where: { id }, data: { score: 7 } });
        await write.catch(() => {});
      });
      stop();
    }, CONTACT);
    const changed = (await told()).filter(({ event }) => event === 'contact.updated');
    expect(changed.map(({ data }) => [data.changed, data.contact.score])).toEqual([[['score'], 7]]);
  });

  it('does not break what a lifecycle starts and does not wait for', async () => {
    const outcome = await site.evaluate(async ({ strapi }, uid) => {
      const started: Promise<unknown>[] = [];
      const later = async (turns: number, name: string) => {
        for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
        await strapi.db.query('plugin::switchboard.company').create({ data: { name } });
        await strapi.hook('service_crm_webhook').call({ event: 'shop.late', data: { name } });
      };
      const stop = strapi.db.lifecycles.subscribe({
        models: [uid],
        afterCreate: () => {
          for (const turns of [0, 1, 2, 3, 5, 8, 13]) started.push(later(turns, `late ${turns}`));
        },
      });
      await strapi.db.query(uid).create({ data: { email: 'late@example.test' } });
      stop();
      const settled = await Promise.allSettled(started);
      return settled.map((one) => (one.status === 'rejected' ? String(one.reason) : 'done'));
    }, CONTACT);
    expect(outcome).toEqual(Array(7).fill('done'));
    const seen = await names();
    expect(seen.filter((name) => name === 'company.created')).toHaveLength(7);
    expect(seen.filter((name) => name === 'shop.late')).toHaveLength(7);
  });

  it('is not taken for committed where the database refuses the commit', async () => {
    const outcome = await site.evaluate(async ({ strapi, state }) => {
      const { client } = strapi.db.dialect;
      const knex = strapi.db.connection;
      state.heard.length = 0;
      let committed = false;
      if (client !== 'mysql') {
        await knex.raw('create table t_parent (id integer primary key)');
        await knex.raw(
          'create table t_child (id integer primary key, parent integer references t_parent (id) deferrable initially deferred)'
        );
      }
      const refuse = async (trx: { raw(sql: string): Promise<unknown> }): Promise<void> => {
        if (client !== 'mysql') {
          await trx.raw('insert into t_child (id, parent) values (1, 99)');
          return;
        }
        const [[{ id }]] = (await trx.raw('select connection_id() as id')) as [[{ id: number }]];
        await knex.raw(`kill ${id}`);
      };
      const error = await strapi.db
        .transaction(async ({ trx, onCommit }: never) => {
          (onCommit as (callback: () => void) => void)(() => {
            committed = true;
          });
          await strapi.hook('service_crm_webhook').call({ event: 'shop.refused', data: {} });
          await refuse(trx);
        })
        .then(
          () => null,
          (reason: Error) => reason.message
        );
      await new Promise((resolve) => setTimeout(resolve, 50));
      // The connection is good for others.
      await strapi.db.query('plugin::switchboard.company').create({ data: { name: 'after' } });
      return { failed: error !== null, committed, heard: state.heard };
    });
    expect(outcome).toEqual({ failed: true, committed: false, heard: ['company.created'] });
    expect(await names()).toEqual(['company.created']);
  });

  it('is not taken for committed where it failed and the error was swallowed', async () => {
    const outcome = await site.evaluate(async ({ strapi, state }) => {
      const { client } = strapi.db.dialect;
      const knex = strapi.db.connection;
      state.heard.length = 0;
      const company = (name: string) =>
        strapi.db.query('plugin::switchboard.company').create({ data: { name } });
      type Raw = { raw(sql: string): Promise<unknown> };
      const fail: Record<string, (trx: Raw) => Promise<void>> = {
        // A failed statement: PostgreSQL answers the commit with ROLLBACK.
        postgres: async (trx) => {
          await trx.raw('select no_such_column').catch(() => {});
        },
        // SQLite ends the transaction where a statement of it asks for that.
        sqlite: async (trx) => {
          await trx.raw('create table t_once (id integer primary key on conflict rollback)');
          await trx.raw('insert into t_once (id) values (1)');
          await trx.raw('insert into t_once (id) values (1)').catch(() => {});
        },
        // A deadlock: what follows would run without any transaction.
        mysql: async (trx) => {
          await knex.raw('create table t_lock (id integer primary key, n integer)');
          await knex.raw('insert into t_lock values (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)');
          const other = await knex.transaction();
          await other.raw('update t_lock set n = 1 where id > 1');
          await trx.raw('update t_lock set n = 2 where id = 1');
          const waiting = other.raw('update t_lock set n = 1 where id = 1').catch(() => {});
          await new Promise((resolve) => setTimeout(resolve, 200));
          await trx.raw('update t_lock set n = 2 where id = 2').catch(() => {});
          await waiting;
          await other.rollback();
        },
      };
      const error = await strapi.db
        .transaction(async ({ trx }: { trx: Raw }) => {
          await company('before');
          await fail[client]?.(trx);
          await company('within').catch(() => {});
          // The host asks whether the slug is taken, and hears of no failure there: it ended the process.
          const tag = strapi.documents('plugin::switchboard.tag');
          await tag.create({ data: { name: 'within', slug: 'within' } }).catch(() => {});
        })
        .then(
          () => null,
          (reason: Error) => reason.message
        );
      const rows = await strapi.db
        .query('plugin::switchboard.company')
        .findMany({ where: { name: { $in: ['before', 'within'] } } });
      return { failed: error !== null, rows: rows.length, heard: state.heard };
    });
    expect(outcome).toEqual({ failed: true, rows: 0, heard: [] });
    expect(await names()).toEqual([]);
  });

  it('tells nobody of a part that was taken back', async () => {
    const outcome = await site.evaluate(async ({ strapi, state, require: load }, uid) => {
      const { errors } = load('@strapi/utils') as typeof StrapiUtils;
      state.heard.length = 0;
      const committed: string[] = [];
      const listen = (name: string) =>
        strapi.db.transaction(({ onCommit }: { onCommit(callback: () => void): void }) =>
          onCommit(() => committed.push(name))
        );
      const stop = strapi.db.lifecycles.subscribe({
        models: [uid],
        async afterCreate() {
          await listen('undone');
          await strapi.hook('service_crm_webhook').call({ event: 'shop.undone', data: {} });
          throw new errors.ValidationError('not this one');
        },
      });
      await strapi.db.transaction(async () => {
        const data = { mail: 'taken@example.test' };
        await strapi.documents('api::inquiry.inquiry').create({ data });
        await listen('kept');
      });
      stop();
      await new Promise((resolve) => setTimeout(resolve, 50));
      const rows = await strapi.db.query(uid).count({ where: { email: 'taken@example.test' } });
      return { committed, heard: state.heard, rows };
    }, CONTACT);
    expect(outcome).toEqual({ committed: ['kept'], heard: [], rows: 0 });
    expect(await names()).toEqual([]);
  });

  describe('tags made at the same moment', () => {
    const tagRows = () =>
      sql("select name, slug, slug_key from switchboard_tags where name like 'At once%'");

    it('have slugs of their own, and one tag is made by several imports', async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          site.request('POST', `${CRM}/tags`, { body: { name: 'At once' } })
        )
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201));
      expect(new Set(answers.map(({ body }) => body.slug)).size).toBe(8);
      const given = await Promise.all(
        [1, 2, 3].map(() =>
          site.request('POST', `${CRM}/tags`, { body: { name: 'At once given', slug: 'given' } })
        )
      );
      expect(given.map(({ status }) => status).sort()).toEqual([201, 400, 400]);

      const reports = await site.evaluate(async ({ strapi, require: load }) => {
        const { Readable } = load('node:stream') as typeof NodeStream;
        const run = (nth: number) =>
          strapi
            .service('plugin::switchboard.contact-import')
            .run(
              Readable.from([Buffer.from(`email,tags\ntag${nth}@example.test,At once imported\n`)])
            );
        return Promise.all([1, 2, 3, 4, 5].map(run));
      });
      expect((reports as { failed: number }[]).map(({ failed }) => failed)).toEqual(
        Array(5).fill(0)
      );
      const imported = (await tagRows()).filter(({ name }) => name === 'At once imported');
      expect(imported).toHaveLength(1);
    });

    it('that an earlier version doubled are settled at the next start, however far one got', async () => {
      await sql(
        "insert into switchboard_tags (document_id, name, slug) values ('d1', 'At once old', 'old'), ('d2', 'At once old', 'old'), ('d3', 'At once old', 'old-1'), ('d4', 'At once old', 'old')"
      );
      await site.restart();
      const settled = (await tagRows()).filter(({ name }) => name === 'At once old');
      expect(settled.map(({ slug }) => slug).sort()).toEqual(['old', 'old-1', 'old-2', 'old-3']);
      expect(new Set(settled.map(({ slug_key }) => slug_key)).size).toBe(4);
      expect(settled.every(({ slug_key }) => slug_key !== null)).toBe(true);
      if (!anyDatabase().includes(database)) return;
      await site.restart();
      expect((await tagRows()).filter(({ name }) => name === 'At once old')).toEqual(settled);
    }, 90_000);
  });

  describe('a write of the query engine', () => {
    it('dates and tells of the record that it changes, of several that match', async () => {
      const DEAL = 'plugin::switchboard.deal';
      const rows = await site.evaluate(async ({ strapi }, uid) => {
        for (const title of ['same', 'same', 'same']) {
          await strapi.db.query(uid).create({ data: { title, deal_status: 'open' } });
        }
        const where = { title: 'same', deal_status: 'open' };
        await strapi.db.query(uid).update({ where, data: { deal_status: 'won' } });
        await strapi.db.query(uid).delete({ where });
        return strapi.db.query(uid).findMany({ where: { title: 'same' } });
      }, DEAL);
      const found = rows as { deal_status: string; closed_at: unknown }[];
      expect(found).toHaveLength(2);
      for (const { deal_status, closed_at } of found) {
        expect(closed_at !== null).toBe(deal_status === 'won');
      }
      expect((await names()).filter((name) => name !== 'deal.created')).toEqual([
        'deal.deleted',
        'deal.updated',
        'deal.won',
      ]);
    });

    it('tells of each of many that are made, changed and gone with one statement', async () => {
      await site.evaluate(async ({ strapi }, uid) => {
        const query = strapi.db.query(uid);
        const data = [1, 2, 3].map((nth) => ({ email: `each${nth}@example.test`, source: 'each' }));
        await query.createMany({ data });
        await query.update({ where: { email: 'each1@example.test' }, data: { score: 9 } });
        await query.updateMany({ where: { source: 'each' }, data: { score: 9 } });
        await query.deleteMany({ where: { source: 'each' } });
      }, CONTACT);
      const emails = [1, 2, 3].map((nth) => `each${nth}@example.test`);
      const said = (await told()).map(({ event, data }) => [event, (data.contact ?? data).email]);
      expect(said).toEqual([
        ...emails.map((email) => ['contact.created', email]),
        ['contact.updated', emails[0]],
        ...emails.slice(1).map((email) => ['contact.updated', email]),
        ...emails.map((email) => ['contact.deleted', email]),
      ]);
    });

    it('goes by relations too, and changes no more than what it tells of', async () => {
      await site.evaluate(async ({ strapi }, uid) => {
        const create = (kind: string, data: object) =>
          strapi.db.query(`plugin::switchboard.${kind}`).create({ data });
        const company = await create('company', { name: 'Many' });
        for (const nth of [1, 2]) {
          const contact = { email: `many${nth}@example.test`, company: company.id };
          await strapi.db.query(uid).create({ data: contact });
        }
        const where = { company: { name: 'Many' } };
        await strapi.db.query(uid).update({ where, data: { score: 3 } });
        await strapi.db
          .query(uid)
          .updateMany({ where: { email: { $startsWith: 'many' } }, data: { job_title: 'all' } });
        const ids = Array.from({ length: 1500 }, (_none, nth) => nth + 1);
        await strapi.db.query(uid).updateMany({ where: { id: { $in: ids } }, data: { score: 4 } });
        await strapi.db
          .query(uid)
          .deleteMany({ where: { score: 4 }, filters: { company: { name: 'Many' } } });
      }, CONTACT);
      const events = await told();
      const changed = events.filter(({ event }) => event === 'contact.updated');
      const of = (key: string) => changed.filter(({ data }) => data.changed.includes(key));
      expect(of('score').filter(({ data }) => data.contact.score === 3)).toHaveLength(1);
      expect(of('job_title')).toHaveLength(2);
      expect(events.filter(({ event }) => event === 'contact.deleted')).toHaveLength(2);
    });

    it('leaves alone what it was given', async () => {
      const outcome = await site.evaluate(async ({ strapi }, uid) => {
        const params = { data: { first_name: 'Again', contact_status: 'subscribed' } };
        const list = { data: [{ first_name: 'Again' }, { first_name: 'Again' }] };
        const inquiry = { data: { mail: 'again@example.test' } };
        const given = JSON.stringify([params, list, inquiry]);
        for (let nth = 0; nth < 3; nth += 1) {
          await strapi.db.query(uid).create(params);
          await strapi.db.query('api::inquiry.inquiry').create(inquiry);
        }
        await strapi.db.query(uid).createMany(list);
        await strapi.db.query(uid).createMany(list);
        const change = { where: { first_name: 'Again' }, data: { contact_status: 'unsubscribed' } };
        const asked = JSON.stringify(change);
        await strapi.db.query(uid).updateMany(change);
        const rows = await strapi.db.query(uid).findMany({ where: { first_name: 'Again' } });
        return {
          documents: new Set(rows.map(({ documentId }: { documentId: string }) => documentId)).size,
          isSame: JSON.stringify([params, list, inquiry]) === given,
          isAsked: JSON.stringify(change) === asked,
        };
      }, CONTACT);
      expect(outcome).toEqual({ documents: 7, isSame: true, isAsked: true });
    });

    it('revokes the application passwords of the users that are deleted, and of nobody else', async () => {
      const left = await site.evaluate(async ({ strapi }) => {
        const users = strapi.db.query('admin::user');
        const rows = () => strapi.db.connection('switchboard_application_passwords');
        for (const firstname of ['One', 'Two']) {
          const email = `${firstname}@example.test`;
          const data = { email, firstname, password: 'x', isActive: false };
          const { id } = await users.create({ data });
          await rows().insert({ user_id: id, name: firstname, hash: firstname, created_at: 1 });
        }
        await users.deleteMany({ filters: { firstname: 'Two' } });
        return (await rows().select('name')).map(({ name }: { name: string }) => name);
      });
      expect(left).toEqual(['One']);
    });
  });
});
