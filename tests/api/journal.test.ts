import type { JournalPage } from '../../shared/contracts/webhooks';
import { createAdminUser, createApiToken } from '../support/accounts';
import { databases, describeEach, anyDatabase, itOnce } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { createWebhook, send, sql } from './delivery-support';

const JOURNAL = '/api/fw-crm/v1/webhooks/journal';
const DAY_MS = 86_400_000;

const page = async (site: Site, query = ''): Promise<JournalPage> => {
  const answer = await site.request<JournalPage>('GET', `${JOURNAL}${query}`);
  expect(answer.status).toBe(200);
  return answer.body;
};

/** Reads on from a place until nothing follows. */
const readFrom = async (site: Site, after: string, limit = 100): Promise<JournalPage> => {
  const data: JournalPage['data'] = [];
  let next = after;
  for (;;) {
    const { data: more, next_cursor: cursor } = await page(site, `?after=${next}&limit=${limit}`);
    data.push(...more);
    next = cursor;
    if (more.length === 0) return { data, next_cursor: next };
  }
};

/** Where the journal ends now. */
const end = async (site: Site): Promise<string> => (await readFrom(site, '')).next_cursor;

const numbersOf = ({ data }: JournalPage): unknown[] => data.map((one) => one.data.n);

const removeOld = (site: Site): Promise<void> =>
  site.evaluate(async ({ strapi }) => {
    await strapi.cron.jobs
      .find(({ name }: { name: string }) => name === 'switchboardDeliveryRetention')
      .job.invoke();
  });

describeEach(databases(), 'the journal', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: { webhooks: { journalDays: 3 } } });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it('keeps what nobody asked for, of writes and of other plugins', async () => {
    const after = await end(site);
    const made = await site.request('POST', '/api/fw-crm/v1/contacts', {
      body: { email: 'ada@example.test', first_name: 'Ada' },
    });
    expect(made.status).toBe(201);
    expect(await send(site, 'loyalty.earned', { n: 1 })).toBe(0);
    const { data } = await readFrom(site, after);
    expect(data.map(({ event }) => event)).toEqual(['contact.created', 'loyalty.earned']);
    expect(data[0]).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      event: 'contact.created',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/),
      site: expect.any(String),
      data: made.body,
    });
    const [row] = await sql(
      site,
      "SELECT * FROM switchboard_journal WHERE event = 'contact.created'"
    );
    expect(row).toMatchObject({ subject_type: 'contact', subject_label: 'Ada', webhooks: null });
  });

  itOnce(database)(
    'keeps an event once, whole, however many webhooks asked and whatever they are sent',
    async () => {
      const after = await end(site);
      const ids: number[] = [];
      for (const changes of [{}, { payload: 'thin' }, { filter: { required: ['m'] } }])
        ids.push((await createWebhook(site, receiver.url, changes)).id);
      receiver.clear();
      expect(await send(site, 'loyalty.earned', { n: 2, loyalty_id: 7 })).toBe(2);
      await receiver.waitFor(2);
      const { data } = await readFrom(site, after);
      expect(data).toHaveLength(1);
      expect(data[0]?.data).toEqual({ n: 2, loyalty_id: 7 });
      const sent = receiver.requests.map(({ body }) => JSON.parse(String(body)) as { id: string });
      expect(sent.map(({ id }) => id)).not.toContain(data[0]?.id);
      const [row] = await sql<{ webhooks: string }>(
        site,
        'SELECT webhooks FROM switchboard_journal ORDER BY id DESC LIMIT 1'
      );
      expect(JSON.parse(row!.webhooks).sort()).toEqual([ids[0], ids[1]].sort());
    }
  );

  it('has no event without its commit', async () => {
    const after = await end(site);
    await site.evaluate(async ({ strapi }) => {
      await strapi.db
        .transaction(async () => {
          await strapi.service('plugin::switchboard.events').send('loyalty.earned', { n: 3 });
          throw new Error('rolled back');
        })
        .catch(() => {});
    });
    await send(site, 'loyalty.earned', { n: 4 });
    expect(numbersOf(await readFrom(site, after))).toEqual([4]);
  });

  it('is read page by page, and its cursor is never null', async () => {
    const after = await end(site);
    expect((await page(site, `?after=${after}`)).next_cursor).toBe(after);
    for (let n = 0; n < 25; n += 1) await send(site, 'loyalty.earned', { n });
    const first = await page(site, `?after=${after}&limit=10`);
    expect(numbersOf(first)).toEqual(Array.from({ length: 10 }, (_one, n) => n));
    expect(numbersOf(await readFrom(site, first.next_cursor, 4))).toEqual(
      Array.from({ length: 15 }, (_one, n) => n + 10)
    );
    expect(numbersOf(await page(site, `?after=${after}&limit=100`))).toHaveLength(25);
    // The same place gives the same page again.
    expect(await page(site, `?after=${after}&limit=10`)).toEqual(first);
  });

  itOnce(database)(
    'is read by several at once, each of whom sees everything in the same order',
    async () => {
      const after = await end(site);
      const readers = [1, 2, 3].map(async (limit) => {
        const seen: unknown[] = [];
        let next = after;
        while (seen.length < 30) {
          const { data, next_cursor: cursor } = await page(site, `?after=${next}&limit=${limit}`);
          seen.push(...data.map(({ id }) => id));
          next = cursor;
        }
        return seen;
      });
      const writers = Array.from({ length: 5 }, async (_one, writer) => {
        for (let n = 0; n < 6; n += 1) await send(site, 'loyalty.earned', { n: writer * 10 + n });
      });
      const [seen] = await Promise.all([Promise.all(readers), ...writers]);
      expect(new Set(seen[0])).toHaveProperty('size', 30);
      expect(seen[1]).toEqual(seen[0]);
      expect(seen[2]).toEqual(seen[0]);
    }
  );

  itOnce(database)('refuses what is no place and no number', async () => {
    for (const [query, field] of [
      ['after=x', 'after'],
      ['after=-1', 'after'],
      ['after=1&after=2', 'after'],
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['limit=x', 'limit'],
    ] as const) {
      const { status, body } = await site.request('GET', `${JOURNAL}?${query}`);
      expect([query, status]).toEqual([query, 400]);
      expect(body.error.details.errors[0].path).toEqual([field]);
    }
    expect((await page(site, '?after=&limit=1')).data).toHaveLength(1);
  });

  itOnce(database)('begins anew for a place that nobody was given', async () => {
    const [first] = (await page(site, '?limit=1')).data;
    expect((await page(site, '?after=999999999999&limit=1')).data).toEqual([first]);
  });

  itOnce(database)('needs a permission of its own', async () => {
    const who = (...permissions: string[]) => createApiToken(site, { type: 'custom', permissions });
    const reader = await who('plugin::switchboard.journal.find');
    const other = await who('plugin::switchboard.webhooks.find');
    const readOnly = await createApiToken(site, { type: 'read-only' });
    const asked = async (path: string, as: object) =>
      (await site.request('GET', path, { as: as as never })).status;
    expect(await asked(JOURNAL, { token: reader })).toBe(200);
    expect(await asked(JOURNAL, { token: readOnly })).toBe(200);
    expect(await asked(JOURNAL, { token: other })).toBe(403);
    const manager = await createAdminUser(site, { role: 'CRM Manager' });
    const editor = await createAdminUser(site, { role: 'Editor' });
    const admin = await site.request('GET', '/switchboard/webhooks/journal?limit=1', {
      as: { token: manager.token },
    });
    expect(admin.body).toEqual(await page(site, '?limit=1'));
    expect(await asked('/switchboard/webhooks/journal', { token: editor.token })).toBe(403);
  });

  itOnce(database)('keeps nothing of a module that is off', async () => {
    const after = await end(site);
    const companies = (on: boolean) =>
      site.request('PUT', '/switchboard/modules', { body: { companies: on } });
    await companies(false);
    await send(site, 'company.created', { n: 5 });
    await companies(true);
    await send(site, 'company.created', { n: 6 });
    expect(numbersOf(await readFrom(site, after))).toEqual([6]);
  });

  // SQLite has one transaction at a time.
  if (database !== 'sqlite') {
    it('passes no event that commits late, nor tells one that is rolled back', async () => {
      const open = (n: number): Promise<unknown> =>
        site.evaluate(async ({ strapi, state }, number) => {
          await new Promise<void>((begun, failed) => {
            const done = strapi.db.transaction(async () => {
              await strapi
                .service('plugin::switchboard.events')
                .send('loyalty.earned', { n: number });
              begun();
              await new Promise<void>((commit, rollBack) => {
                state[`commit ${number}`] = commit;
                state[`roll back ${number}`] = () => rollBack(new Error('rolled back'));
              });
            });
            done.catch(failed);
            state[`done ${number}`] = done.catch(() => {});
          });
        }, n);
      const close = (how: 'commit' | 'roll back', n: number): Promise<unknown> =>
        site.evaluate(
          async ({ state }, end, number) => {
            state[`${end} ${number}`]();
            await state[`done ${number}`];
          },
          how,
          n
        );
      const after = await end(site);
      await open(1);
      await open(2);
      await send(site, 'loyalty.earned', { n: 3 });
      const early = await readFrom(site, after);
      expect(numbersOf(early)).toEqual([3]);
      await send(site, 'loyalty.earned', { n: 4 });
      await close('commit', 1);
      const late = await readFrom(site, early.next_cursor);
      expect(numbersOf(late).sort()).toEqual([1, 4]);
      await close('roll back', 2);
      await send(site, 'loyalty.earned', { n: 5 });
      expect(numbersOf(await readFrom(site, late.next_cursor))).toEqual([5]);
      expect(numbersOf(await readFrom(site, after)).sort()).toEqual([1, 3, 4, 5]);
    });
  }

  it('forgets what is older than its days, in parts', async () => {
    const old = Date.now() - 3 * DAY_MS - 60_000;
    await sql(site, 'DELETE FROM switchboard_journal');
    await site.evaluate(async ({ strapi }, at) => {
      const rows = Array.from({ length: 1200 }, (_one, n) => ({
        entry_id: String(n),
        event: 'loyalty.earned',
        created_at: at,
        frame: '"event":"loyalty.earned"',
        data: '{}',
      }));
      await strapi.db.connection.batchInsert('switchboard_journal', rows, 100);
    }, old);
    await send(site, 'loyalty.earned', { n: 7 });
    const after = await end(site);
    await removeOld(site);
    expect(numbersOf(await readFrom(site, ''))).toEqual([7]);
    // Places go on where they were, though what had them is gone.
    await sql(site, 'DELETE FROM switchboard_journal');
    await send(site, 'loyalty.earned', { n: 8 });
    expect(numbersOf(await readFrom(site, after))).toEqual([8]);
  });
});

describeEach(anyDatabase(), 'a site without a journal', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { journalDays: 1 } } });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  it('keeps nothing, says so, and forgets what was kept before', async () => {
    await send(site, 'loyalty.earned', { n: 1 });
    await site.restart({ options: {} });
    await send(site, 'loyalty.earned', { n: 2 });
    const { status, body } = await site.request('GET', JOURNAL);
    expect(status).toBe(409);
    expect(body.error.message).toMatch(/webhooks\.journalDays/);
    expect((await site.request('GET', '/switchboard/webhooks/journal')).status).toBe(409);
    const count = async () =>
      Number(
        (await sql<{ n: number }>(site, 'SELECT COUNT(*) AS n FROM switchboard_journal'))[0]?.n
      );
    expect(await count()).toBe(1);
    await removeOld(site);
    expect(await count()).toBe(0);
  });
});
