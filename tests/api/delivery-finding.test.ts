import type { CursorPage, Delivery, Page } from '../../shared/contracts/webhooks';
import { anyDatabase, databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { createWebhook } from './delivery-support';
import {
  CAUSES,
  EVENTS,
  insertLogged,
  LOG,
  type LoggedRow,
  newestFirst,
  queryOf,
  SUBJECTS,
} from './delivery-finding-support';

/** A moment; the rows lie around it, three at each second. */
const NOON = Date.UTC(2026, 2, 1, 12);
const ROWS = 240;

type Log = CursorPage<Delivery>;

/** One of a list, the same each time, and independent of what other salts pick. */
const pick = <T>(list: readonly T[], place: number, salt: number): T =>
  list[(Math.imul(place + 1, 2_654_435_761 + salt * 97_531) >>> 9) % list.length]!;

/** Rows of every kind, inserted in another order than that of their times. */
const rowsFor = (webhooks: readonly number[]): LoggedRow[] =>
  Array.from({ length: ROWS }, (_one, index) => {
    const place = (index * 77) % ROWS;
    const status = pick(['sent', 'failed', 'pending'] as const, place, 1);
    const tries = status === 'pending' ? pick([0, 1, 3], place, 2) : 1;
    const isTried = status === 'failed' || (status === 'pending' && tries > 0);
    const subject = pick([null, ...SUBJECTS], place, 3);
    return {
      webhook_id: pick(webhooks, place, 4),
      event: pick(EVENTS, place, 5),
      status,
      tries,
      is_test: place % 13 === 0,
      error: isTried ? pick(CAUSES, place, 6) : null,
      created_at: NOON + (Math.floor(place / 3) - 40) * 1000,
      subject_type: subject?.type ?? null,
      subject_id: subject?.id ?? null,
      subject_label: subject?.label ?? null,
    };
  });

const stateOf = ({ is_test: isTest, status, tries }: LoggedRow): string => {
  if (isTest) return 'test';
  if (status !== 'pending') return status;
  return tries > 0 ? 'failing' : 'waiting';
};

type Is = (row: LoggedRow) => boolean;

/** Each filter with what it means, said a second time. */
const filtersFor = ([first, second]: readonly number[]): Record<string, [string, Is][]> => ({
  webhook: [first, second].map((id) => [String(id), (row) => row.webhook_id === id]),
  event: EVENTS.slice(0, 2).map((event) => [event, (row) => row.event === event]),
  status: ['pending', 'failed', 'sent'].map((status) => [status, (row) => row.status === status]),
  state: ['waiting', 'failing', 'failed', 'sent', 'test'].map((state) => [
    state,
    (row) => stateOf(row) === state,
  ]),
  cause: CAUSES.slice(0, 2).map((cause) => [cause, (row) => row.error === cause]),
  subject_type: [['contact', (row) => row.subject_type === 'contact']],
  subject_id: [['c1', (row) => row.subject_id === 'c1']],
  from: [[new Date(NOON).toISOString(), (row) => row.created_at >= NOON]],
  to: [['2026-03-01T13:00:05+01:00', (row) => row.created_at < NOON + 5000]],
  q: [
    ['TURING', (row) => row.subject_label === 'Alan Turing'],
    ['refus', (row) => row.error === 'refused'],
  ],
});

describeEach(databases(), 'the log over all webhooks', (database) => {
  let site: Site;
  let webhooks: number[];
  let rows: LoggedRow[];
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
    webhooks = [];
    for (let n = 0; n < 3; n += 1)
      webhooks.push((await createWebhook(site, 'http://127.0.0.1:9/', { active: false })).id);
    rows = await insertLogged(site, rowsFor(webhooks));
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const page = async (query: Record<string, unknown>): Promise<Log> => {
    const answer = await site.request<Log>('GET', `${LOG}${queryOf(query)}`);
    expect([query, answer.status]).toEqual([query, 200]);
    return answer.body;
  };

  /** All of what a query finds, page by page. */
  const walk = async (query: Record<string, unknown>): Promise<Log> => {
    const data: Delivery[] = [];
    let cursor: string | null = null;
    for (;;) {
      const next: Log = await page({ ...query, ...(cursor && { cursor }) });
      data.push(...next.data);
      cursor = next.meta.next_cursor;
      if (cursor === null) return { data, meta: next.meta };
    }
  };

  const expectFound = async (query: Record<string, unknown>, is: Is): Promise<void> => {
    const wanted = newestFirst(rows.filter(is)).map(({ id }) => id);
    const { data, meta } = await walk({ limit: 100, ...query });
    expect([query, data.map(({ id }) => id)]).toEqual([query, wanted]);
    expect([query, meta.total, meta.total_capped]).toEqual([query, wanted.length, false]);
  };

  const known = ['webhook', 'event', 'status', 'state', 'cause', 'subject_type', 'subject_id'];
  const names = [...known, 'from', 'to', 'q'];

  it('has every delivery, newest first, with its state', async () => {
    const { data, meta } = await walk({});
    expect(data.map(({ id }) => id)).toEqual(newestFirst(rows).map(({ id }) => id));
    expect(meta).toEqual({ next_cursor: null, total: ROWS, total_capped: false });
    expect(data.map(({ state }) => state)).toEqual(newestFirst(rows).map(stateOf));
    expect(new Set(data.map(({ state }) => state)).size).toBe(5);
    expect(data.every(({ replayed }) => !replayed)).toBe(true);
    expect((await page({})).data).toHaveLength(50);
  });

  it.each(names)('finds by %s', async (name) => {
    for (const [value, is] of filtersFor(webhooks)[name]!) {
      expect(rows.some(is)).toBe(true);
      expect(rows.every(is)).toBe(false);
      await expectFound({ [name]: value }, is);
    }
  });

  it.each(names)(
    'finds by %s together with each other filter',
    async (name) => {
      const filters = filtersFor(webhooks);
      // One value of each says how a database takes the two; what each of them means is above.
      const some = <T>(values: T[]) =>
        anyDatabase().includes(database) ? values : values.slice(-1);
      for (const other of names.slice(names.indexOf(name) + 1)) {
        for (const [value, is] of some(filters[name]!)) {
          for (const [otherValue, isOther] of some(filters[other]!)) {
            await expectFound(
              { [name]: value, [other]: otherValue },
              (row) => is(row) && isOther(row)
            );
          }
        }
      }
    },
    120_000
  );

  it('finds by many filters together', async () => {
    const [webhook] = webhooks;
    await expectFound(
      { webhook, state: 'failing', event: EVENTS[0], from: new Date(NOON - 20_000).toISOString() },
      (row) =>
        row.webhook_id === webhook &&
        row.event === EVENTS[0] &&
        stateOf(row) === 'failing' &&
        row.created_at >= NOON - 20_000
    );
  });

  it('takes the same filters in the log of one webhook, with its pages', async () => {
    const [id] = webhooks;
    const filters = filtersFor(webhooks);
    for (const name of names.filter((one) => one !== 'webhook')) {
      for (const [value, is] of filters[name]!) {
        const wanted = newestFirst(rows.filter((row) => row.webhook_id === id && is(row)));
        const found: number[] = [];
        for (let number = 1; number <= Math.ceil(wanted.length / 30); number += 1) {
          const query = queryOf({ [name]: value, page: number, per_page: 30 });
          const { body } = await site.request<Page<Delivery>>(
            'GET',
            `/api/fw-crm/v1/webhooks/${id}/deliveries${query}`
          );
          expect(body.meta.pagination).toEqual({
            page: number,
            per_page: 30,
            page_count: Math.ceil(wanted.length / 30),
            total: wanted.length,
          });
          found.push(...body.data.map((one) => one.id));
        }
        expect([name, value, found]).toEqual([name, value, wanted.map((row) => row.id)]);
      }
    }
  }, 60_000);

  it('neither skips nor repeats while deliveries arrive, at equal times too', async () => {
    for (const query of [{}, { webhook: webhooks[0] }, { q: 'turing' }, { state: 'failed' }]) {
      const before = (await walk({ ...query, limit: 100 })).data.map(({ id }) => id);
      const seen: number[] = [];
      let cursor: string | null = null;
      do {
        const next: Log = await page({ ...query, limit: 12, ...(cursor && { cursor }) });
        seen.push(...next.data.map(({ id }) => id));
        cursor = next.meta.next_cursor;
        if (seen.length > 60) continue;
        // Newer ones, and one of the very time that was read last.
        const last = Date.parse(next.data.at(-1)!.created_at);
        const { id: _id, ...one } = rows[0]!;
        const like = { ...one, subject_label: 'Alan Turing', status: 'failed' as const };
        await insertLogged(site, [
          { ...like, is_test: false, webhook_id: webhooks[0]!, created_at: NOON + 90_000 },
          { ...like, is_test: false, webhook_id: webhooks[0]!, created_at: last },
        ]);
      } while (cursor !== null);
      expect(seen).toEqual([...new Set(seen)]);
      expect(seen.filter((id) => before.includes(id))).toEqual(before);
    }
    await site.control('sql', {
      statement: `delete from switchboard_deliveries where id > ${Math.max(...rows.map(({ id }) => id!))}`,
    });
  }, 60_000);

  it('finds a whole delivery id, and a part of one', async () => {
    const { data } = await page({ limit: 1 });
    const id = data[0]!.delivery_id;
    expect((await page({ q: id.toUpperCase() })).data).toEqual(data);
    expect((await page({ q: id.slice(3, 30) })).data).toEqual(data);
    expect((await page({ q: id, state: 'test', status: 'pending' })).data).toEqual([]);
    expect((await page({ q: '00000000-0000-7000-8000-000000000000' })).meta.total).toBe(0);
  });

  it('takes what stands for wildcards elsewhere as it is, and says how far it looked', async () => {
    for (const q of ['%', 'timeou_', 'A%g', '*', '\\', "'", 'Alan_Turing']) {
      const { data, meta } = await page({ q });
      expect([q, data, meta.total]).toEqual([q, [], 0]);
    }
    const oldest = newestFirst(rows).at(-1)!.created_at;
    const { meta } = await page({ q: 'turing' });
    expect(Date.parse(meta.searched_from!)).toBe(oldest);
    expect((await page({ q: 'ÉMILIE' })).data[0]?.subject?.label).toBe('Émilie du Châtelet');
    expect((await page({ q: 'x', webhook: 2_000_000_000 })).meta.searched_from).toBeNull();
  });

  itOnce(database)('refuses what is wrong, and names each field', async () => {
    const wrong = {
      webhook: 'abc',
      status: 'lost',
      state: 'pending',
      cause: '',
      subject_type: 'planet',
      subject_id: '',
      from: 'yesterday',
      to: '2026-02-30T00:00:00Z',
      q: ' ',
      limit: 101,
      cursor: 'abc',
    };
    const answer = await site.request('GET', `${LOG}${queryOf(wrong)}`);
    expect(answer.status).toBe(400);
    const named = (body: { error: { details: { errors: { path: string[] }[] } } }): string[] =>
      body.error.details.errors.map(({ path }) => path.join('.')).sort();
    expect(named(answer.body)).toEqual(Object.keys(wrong).sort());
    const { limit: _limit, cursor: _cursor, ...filters } = wrong;
    const causes = await site.request('GET', `${LOG}/causes${queryOf(filters)}`);
    expect(named(causes.body)).toEqual(Object.keys(filters).sort());
    const { webhook: _webhook, ...own } = filters;
    const ofOne = await site.request(
      'GET',
      `/api/fw-crm/v1/webhooks/${webhooks[0]}/deliveries${queryOf(own)}`
    );
    expect(named(ofOne.body)).toEqual(Object.keys(own).sort());
  });

  itOnce(database)(
    'refuses each wrong value by itself, and a cursor of another search',
    async () => {
      const cursor = (numbers: unknown) =>
        Buffer.from(JSON.stringify(numbers)).toString('base64url');
      for (const query of [
        { limit: 0 },
        { limit: 'many' },
        { webhook: 2_147_483_648 },
        { webhook: [1, 2] },
        { from: '2026-03-01' },
        { cursor: cursor([1, 2_147_483_648]) },
        { cursor: cursor([1e300, 1]) },
        { cursor: cursor([1]) },
        { cursor: cursor([1, 2, 3]) },
        { cursor: cursor(['1', 2]) },
        { cursor: cursor([NOON, 1]), q: 'turing' },
        { cursor: cursor([NOON, 1, NOON, 1, 1, 0]) },
      ]) {
        const answer = await site.request('GET', `${LOG}${queryOf(query)}`);
        expect([query, answer.status]).toEqual([query, 400]);
        expect(answer.body.error.message).toContain(Object.keys(query)[0]);
      }
    }
  );

  itOnce(database)('is the same for the screens', async () => {
    const query = queryOf({ state: 'failed', limit: 5 });
    const own = await site.request('GET', `${LOG}${query}`);
    const screen = await site.request('GET', `/switchboard/webhook-deliveries${query}`);
    expect([screen.status, screen.body]).toEqual([200, own.body]);
  });

  it('shows one by either id', async () => {
    const { data } = await page({ limit: 1 });
    const { id, delivery_id: deliveryId } = data[0]!;
    for (const one of [id, deliveryId, deliveryId.toUpperCase()]) {
      expect((await site.request('GET', `${LOG}/${one}`)).body).toEqual(data[0]);
      const screen = await site.request('GET', `/switchboard/webhook-deliveries/${one}`);
      expect(screen.body).toEqual({ data: data[0] });
    }
    for (const none of [2_000_000_000, 'abc', '00000000-0000-7000-8000-000000000000']) {
      expect((await site.request('GET', `${LOG}/${none}`)).status).toBe(404);
    }
  });

  it('counts causes of what is failing or failed, and of no test', async () => {
    const expectCauses = async (query: Record<string, unknown>, is: Is): Promise<void> => {
      const { body, status } = await site.request('GET', `${LOG}/causes${queryOf(query)}`);
      expect([query, status]).toEqual([query, 200]);
      const groups = new Map<string, LoggedRow[]>();
      for (const row of newestFirst(rows.filter(is))) {
        if (!['failing', 'failed'].includes(stateOf(row))) continue;
        const key = `${row.webhook_id} ${row.error}`;
        groups.set(key, [...(groups.get(key) ?? []), row]);
      }
      const wanted = [...groups.values()].map((group) => ({
        cause: group[0]!.error,
        webhook_id: group[0]!.webhook_id,
        count: group.length,
        first_at: new Date(group.at(-1)!.created_at).toISOString().replace('Z', '+00:00'),
        last_at: new Date(group[0]!.created_at).toISOString().replace('Z', '+00:00'),
      }));
      expect([query, body.data]).toEqual([query, expect.arrayContaining(wanted)]);
      expect([query, body.data.length]).toEqual([query, wanted.length]);
      const counts = body.data.map(({ count }: { count: number }) => count);
      expect(counts).toEqual([...counts].sort((a, b) => b - a));
    };
    await expectCauses({}, () => true);
    for (const [name, filters] of Object.entries(filtersFor(webhooks)))
      for (const [value, is] of filters) await expectCauses({ [name]: value }, is);
    const screen = await site.request('GET', '/switchboard/webhook-deliveries/causes');
    expect(screen.body).toEqual((await site.request('GET', `${LOG}/causes`)).body);
  });

  it('counts the causes of the newest 50,000, also of those of one moment', async () => {
    const OLDER = 20;
    const COUNTED = 50_000;
    const NEWER = COUNTED - 8;
    const from = Date.UTC(2001, 0, 1);
    await site.evaluate(
      async ({ strapi }, { first, older, newer, webhook }) => {
        const rows = Array.from({ length: older + newer }, (_one, at) => ({
          ...{ id: 1_000_000 + at, group_id: webhook, state: 3, due_at: first, section: 2 },
          ...{ error: at < older ? 'timeout' : 'refused', event: 'x.y' },
          created_at: at < older ? first : first + 1000,
        }));
        const table = 'switchboard_delivery_queue';
        await strapi.db.connection.batchInsert(table, rows, 500);
      },
      { first: from, older: OLDER, newer: NEWER, webhook: webhooks[0]! }
    );
    const window = { from: new Date(from).toISOString(), to: new Date(from + 5000).toISOString() };
    const { body } = await site.request('GET', `${LOG}/causes${queryOf(window)}`);
    await site.evaluate(({ strapi }) =>
      strapi.db.connection('switchboard_delivery_queue').where('id', '>=', 1_000_000).delete()
    );
    expect(
      body.data.map(({ cause, count }: { cause: string; count: number }) => [cause, count])
    ).toEqual([
      ['refused', NEWER],
      ['timeout', 8],
    ]);
    expect(body.meta.searched_from).toBe('2001-01-01T00:00:00.000+00:00');
  });
});
