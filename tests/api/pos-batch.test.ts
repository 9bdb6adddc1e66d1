import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { databases, describeEach, anyDatabase, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  admin,
  allProcessed,
  BASE,
  createItem,
  createTill,
  eventOf,
  isoAgo,
  levelOf,
  rebuild,
  saleBody,
  settled,
  type Till,
} from './pos-till';

jest.setTimeout(180_000);

interface Entry {
  kind: string;
  body: unknown;
}

const sale = (sku: string, quantity: number, more: Record<string, unknown> = {}): Entry => ({
  kind: 'sale',
  body: saleBody([[sku, quantity]], more),
});
const refund = (saleId: string, more: Record<string, unknown> = {}): Entry => ({
  kind: 'refund',
  body: {
    external_id: randomUUID(),
    sale_external_id: saleId,
    occurred_at: isoAgo(0),
    ...more,
  },
});
const count = (sku: string, quantity: number, more: Record<string, unknown> = {}): Entry => ({
  kind: 'inventory',
  body: {
    external_id: randomUUID(),
    occurred_at: isoAgo(0),
    mode: 'absolute',
    counts: [{ sku, quantity }],
    ...more,
  },
});

const sendBatch = (till: Till, records: readonly unknown[], to?: Site) =>
  till.send('batch', { records }, to ? { to } : {});

const statuses = (answer: { body: { results: { status: number }[] } }): number[] =>
  answer.body.results.map(({ status }) => status);

describeEach(databases(), 'a batch of records', (database) => {
  let site: Site;
  let till: Till;

  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { ratePerMinute: 100_000 } } });
    till = await createTill(site);
  });
  afterAll(() => site?.stop());

  it('is answered record by record, in the order sent, as its singles would be', async () => {
    await createItem(site, 'ORDER', 10);
    const id = randomUUID();
    const answer = await sendBatch(till, [
      sale('ORDER', 2, { external_id: id, occurred_at: isoAgo(50) }),
      sale('ORDER', 0),
      refund(id, { line_items: [{ sku: 'ORDER', quantity: 1 }] }),
      sale('ORDER', 2, { external_id: id, occurred_at: isoAgo(50), total: 7 }),
      count('ORDER', 5, { occurred_at: isoAgo(20) }),
      count('ORDER', 6, { occurred_at: isoAgo(30) }),
      { kind: 'gift', body: {} },
      'nothing',
      { kind: 'sale' },
    ]);
    expect(answer.status).toBe(200);
    expect(answer.body.ok).toBe(true);
    expect(statuses(answer)).toEqual([202, 400, 202, 200, 202, 409, 400, 400, 400]);
    const [first, bad, , again, , stale, kind, text, bodiless] = answer.body.results;
    expect(first).toEqual({
      status: 202,
      ok: true,
      event_id: expect.any(Number),
      state: 'pending',
      duplicate: false,
    });
    expect(bad).toMatchObject({
      ok: false,
      code: 'schema_invalid',
      field: 'line_items[0].quantity',
      schema: 'sale.v1',
    });
    expect(again).toMatchObject({ ok: true, event_id: first.event_id, duplicate: true });
    expect(again).toHaveProperty('payload_mismatch', true);
    expect(stale).toMatchObject({ code: 'stale_count', stale: [{ sku: 'ORDER', quantity: 6 }] });
    expect([kind.field, text.field, bodiless.field]).toEqual([
      'records[6].kind',
      'records[7]',
      'records[8].body',
    ]);
    expect([kind.schema, text.code]).toEqual(['batch.v1', 'schema_invalid']);
    await allProcessed(site);
    expect(await levelOf(site, 'ORDER')).toBe(6);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  itOnce(database)(
    'takes effect in the order sent: a sale and its refund of everything',
    async () => {
      await createItem(site, 'PAIR', 10);
      const id = randomUUID();
      const answer = await sendBatch(till, [sale('PAIR', 3, { external_id: id }), refund(id)]);
      const [sold, back] = answer.body.results;
      expect(back.event_id).toBeGreaterThan(sold.event_id);
      await settled(site, back.event_id, 'applied');
      expect(await levelOf(site, 'PAIR')).toBe(10);
    }
  );

  it('sent again is all duplicates, and changes nothing', async () => {
    await createItem(site, 'AGAIN', 100);
    const records = Array.from({ length: 100 }, () => sale('AGAIN', 1));
    const body = JSON.stringify({ records });
    const first = await till.send('batch', body);
    expect(new Set(statuses(first))).toEqual(new Set([202]));
    const second = await till.send('batch', body);
    expect(new Set(statuses(second))).toEqual(new Set([200]));
    const idsOf = ({ body: { results } }: typeof first) =>
      results.map(({ event_id: event }: { event_id: number }) => event);
    expect(idsOf(second)).toEqual(idsOf(first));
    expect([...idsOf(first)].sort((a, b) => a - b)).toEqual(idsOf(first));
    await allProcessed(site);
    expect(await levelOf(site, 'AGAIN')).toBe(0);
  });

  itOnce(database)('stores each record’s text as it was sent', async () => {
    const [one, two, three] = [randomUUID(), randomUUID(), randomUUID()];
    const texts = [
      `{ "external_id" : "${one}",\n\t"occurred_at":"${isoAgo(0)}", "currency":"GBP","total":5.0 , "line_items":[{"sku":"T\\u0045XT","quantity":1}], "meta":{"says":"\\"}],{ \\\\","é":"\\u00e9 ☕"} }`,
      `{"occurred_at":"${isoAgo(0)}","external_id":"${two}","sale_external_id":"${one}"}`,
      `{"external_id":"${three}","occurred_at":"${isoAgo(0)}","mode":"relative","counts":[{"quantity":-0,"sku":"TEXT"}]}`,
    ];
    const kinds = ['sale', 'refund', 'inventory'];
    const body = `\n{ "other":[1,{"a":"]"}],"records" : [${texts
      .map((text, at) => ` {"body":  ${text} , "kind" :"${kinds[at]}", "x":[{}]}\n`)
      .join(',')}] } `;
    const answer = await till.send('batch', body);
    expect(statuses(answer)).toEqual([202, 202, 202]);
    for (const [at, { event_id: id }] of answer.body.results.entries()) {
      expect((await eventOf(site, id)).body).toBe(texts[at]);
    }
    // Its single is its duplicate, byte for byte.
    const single = await till.send('sale', texts[0]!);
    expect([single.status, single.body.payload_mismatch]).toEqual([200, undefined]);
  });

  itOnce(database)('judges scope, depth, size and keys a record', async () => {
    const seller = await createTill(site, { scopes: ['sale:write'] });
    const deep = JSON.stringify(saleBody([['DEEP', 1]], { meta: { a: 'DEEP' } })).replace(
      '"DEEP"}}',
      `${'['.repeat(40_000)}${']'.repeat(40_000)}}}`
    );
    const twice = JSON.stringify(saleBody([['TWICE', 1]])).replace('{', '{"total":1,');
    const large = JSON.stringify(saleBody([['LARGE', 1]], { meta: { a: 'x'.repeat(270_000) } }));
    const good = JSON.stringify(saleBody([['GOOD', 1]]));
    const texts = [deep, twice, large, good].map((body) => `{"kind":"sale","body":${body}}`);
    texts.push(`{"kind":"sale","kind":"sale","body":${good}}`);
    texts.push(JSON.stringify(refund('none')));
    const answer = await seller.send('batch', `{"records":[${texts.join(',')}]}`);
    expect(statuses(answer)).toEqual([400, 400, 413, 202, 400, 403]);
    expect(answer.body.results[2].code).toBe('payload_too_large');
    expect(answer.body.results[5]).toEqual({
      status: 403,
      ok: false,
      code: 'insufficient_scope',
      message: expect.any(String),
      required_scope: 'refund:write',
    });
  });

  itOnce(database)('keeps what it refused for the owner, each with its kind and id', async () => {
    const own = await createTill(site, { scopes: ['sale:write'] });
    const [bad, unscoped] = [sale('KEPT', 0), refund('none')];
    await sendBatch(own, [bad, sale('KEPT', 1), unscoped, { kind: 'gift', body: {} }]);
    await own.send('batch', '{"records":[]}');
    const kept = await waitFor(async () => {
      const rows = await admin(site, 'GET', `/connections/${own.id}/refusals`);
      if (rows.length < 4) throw new Error(`${rows.length} refusals`);
      return rows as { kind: string; code: string; external_id: string | null }[];
    });
    const idOf = ({ body }: Entry) => (body as { external_id: string }).external_id;
    expect(kept.map(({ kind, code, external_id: id }) => `${kind} ${code} ${id}`).sort()).toEqual(
      [
        `sale schema_invalid ${idOf(bad)}`,
        `refund insufficient_scope ${idOf(unscoped)}`,
        'batch schema_invalid null',
        'batch schema_invalid null',
      ].sort()
    );
  });

  itOnce(database).each([
    ['no JSON', '{"records":[{]}'],
    ['cut off', '{"records":[{"kind":"sale","body":{}'],
    ['a key of it twice', '{"records":[{}],"records":[{}]}'],
    ['a key twice in what is not a record', '{"records":[{}],"x":{"a":1,"a":2}}'],
    ['no records', '{"records":[]}'],
    ['records that are no list', '{"records":{}}'],
    ['nothing', ''],
    ['no object', '[]'],
    ['without records', '{}'],
    ['101 records', JSON.stringify({ records: Array.from({ length: 101 }, () => sale('NO', 1)) })],
    ['a sale beside its records', JSON.stringify({ ...saleBody([['NO', 1]]), records: [{}] })],
  ])('with %s is refused as a whole, and stores nothing', async (_what, body) => {
    const answer = await till.send('batch', body);
    expect([answer.status, answer.body.code, answer.body.schema]).toEqual([
      400,
      'schema_invalid',
      'batch.v1',
    ]);
    expect(answer.body.results).toBeUndefined();
  });

  itOnce(database)('with wrong UTF-8 or more than 1 MiB is refused as a whole', async () => {
    const record = JSON.stringify(sale('BYTES', 1));
    const wrong = Buffer.concat([
      Buffer.from(`{"records":[${record}],"x":"`),
      Buffer.from([0xff]),
      Buffer.from('"}'),
    ]);
    expect((await till.send('batch', wrong)).status).toBe(400);
    const full = `{"records":[${record}]}`;
    const pad = (bytes: number) => full + ' '.repeat(bytes - Buffer.byteLength(full));
    expect((await till.send('batch', pad(1_048_576))).status).toBe(200);
    expect((await till.send('batch', pad(1_048_577))).status).toBe(413);
  });

  itOnce(database)('is published as a schema, and knows its method', async () => {
    const schema = await site.request('GET', `${BASE}/schema/batch`, { as: 'nobody' });
    expect([schema.status, schema.body.$id]).toEqual([200, 'batch.v1']);
    expect((await site.request('GET', `${BASE}/batch`, { as: 'nobody' })).status).toBe(405);
    const unsigned = await till.send(
      'batch',
      { records: [sale('NO', 1)] },
      { secret: 'pos_other' }
    );
    expect([unsigned.status, unsigned.body.code]).toEqual([401, 'signature_mismatch']);
  });

  it('two at once, of the same records in other orders, are both answered', async () => {
    const other = database === 'sqlite' ? site : await site.sibling({ accounts: false });
    try {
      await createItem(site, 'RACE', 1000);
      for (let round = 0; round < 5; round += 1) {
        const records = Array.from({ length: 40 }, (_value, at) =>
          at % 4 === 0
            ? count('RACE', 500 + at, { occurred_at: isoAgo(1000 - round * 100 - at) })
            : sale('RACE', 1)
        );
        const answers = await Promise.all([
          sendBatch(till, records),
          sendBatch(till, [...records].reverse(), other),
          sendBatch(till, records, other),
        ]);
        for (const answer of answers) {
          expect(answer.status).toBe(200);
          for (const status of statuses(answer)) expect([200, 202, 409]).toContain(status);
        }
      }
      await allProcessed(site);
      expect((await rebuild(site)).differences).toEqual([]);
    } finally {
      if (other !== site) await other.stop();
    }
  });
});

/** What a till sends in a random world; `time` is its place in that world's day. */
type Happening =
  | { what: 'sale' | 'adjustment' | 'count'; item: number; quantity: number }
  | { what: 'refund'; sale: number; quantity: number | null }
  | { what: 'again'; of: number }
  | { what: 'nonsense' };

const ITEMS = 3;
const item = fc.nat({ max: ITEMS - 1 });
const quantity = fc.integer({ min: 1, max: 5 });

const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({ what: fc.constant('sale' as const), item, quantity }),
  fc.record({ what: fc.constant('adjustment' as const), item, quantity }),
  fc.record({ what: fc.constant('count' as const), item, quantity }),
  fc.record({
    what: fc.constant('refund' as const),
    sale: fc.nat({ max: 20 }),
    quantity: fc.option(quantity),
  }),
  fc.record({ what: fc.constant('again' as const), of: fc.nat({ max: 20 }) }),
  fc.record({ what: fc.constant('nonsense' as const) })
);

const world = fc.array(happening, { minLength: 2, maxLength: 24 }).chain((happenings) =>
  fc.record({
    happenings: fc.constant(happenings),
    order: fc.shuffledSubarray([...happenings.keys()], { minLength: happenings.length }),
    other: fc.shuffledSubarray([...happenings.keys()], { minLength: happenings.length }),
    sizes: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 24, maxLength: 24 }),
  })
);

const DAY = Date.UTC(2026, 0, 1);

/** The records of a world with items of its own; times are distinct, as those of counts have to be. */
const entriesOf = (happenings: readonly Happening[], name: string): Entry[] => {
  const entries: Entry[] = [];
  const base = (at: number) => ({
    external_id: `record-${at}`,
    occurred_at: new Date(DAY + at * 60_000).toISOString(),
  });
  const saleIds = happenings.flatMap(({ what }, at) => (what === 'sale' ? [`record-${at}`] : []));
  for (const [at, one] of happenings.entries()) {
    switch (one.what) {
      case 'sale': {
        const line_items = [{ sku: `${name}-${one.item}`, quantity: one.quantity }];
        const body = { ...base(at), currency: 'GBP', total: 1, line_items };
        entries.push({ kind: 'sale', body });
        break;
      }
      case 'adjustment':
      case 'count': {
        const mode = one.what === 'count' ? 'absolute' : 'relative';
        const counts = [{ sku: `${name}-${one.item}`, quantity: one.quantity }];
        entries.push({ kind: 'inventory', body: { ...base(at), mode, counts } });
        break;
      }
      case 'refund': {
        const id = saleIds[one.sale % Math.max(1, saleIds.length)] ?? 'never';
        const lines = [{ sku: `${name}-0`, quantity: one.quantity }];
        const some = one.quantity === null ? {} : { line_items: lines };
        entries.push({ kind: 'refund', body: { ...base(at), sale_external_id: id, ...some } });
        break;
      }
      case 'again':
        entries.push(entries[one.of % Math.max(1, entries.length)] ?? { kind: 'sale', body: {} });
        break;
      case 'nonsense':
        entries.push({ kind: 'sale', body: { ...base(at), total: 'much' } });
    }
  }
  return entries;
};

describeEach(anyDatabase(), 'batches of random worlds', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { ratePerMinute: 1_000_000 } } });
  });
  afterAll(() => site?.stop());

  let worlds = 0;

  it('are answered as their singles, and leave the same shelf, in any order', async () => {
    /** Sends to a till and items of its own. @returns what was answered, and what the shelf holds then */
    const live = async (
      { happenings }: { happenings: readonly Happening[] },
      order: readonly number[],
      send: (till: Till, entries: readonly Entry[]) => Promise<Record<string, unknown>[]>
    ) => {
      worlds += 1;
      const name = `w${worlds}`;
      for (let at = 0; at < ITEMS; at += 1) await createItem(site, `${name}-${at}`, 20);
      const till = await createTill(site);
      const entries = entriesOf(happenings, name);
      const answers = await send(
        till,
        order.map((at) => entries[at] as Entry)
      );
      const told = answers.map(({ status, code, duplicate, field, payload_mismatch: other }) => ({
        ...{ status, code, duplicate, field, other },
      }));
      return { name, told };
    };
    const shelfOf = async (name: string) =>
      Promise.all([0, 1, 2].map((at) => levelOf(site, `${name}-${at}`)));

    await fc.assert(
      fc.asyncProperty(world, async (one) => {
        const inBatches = async (till: Till, entries: readonly Entry[]) => {
          const results: Record<string, unknown>[] = [];
          for (let start = 0, turn = 0; start < entries.length; turn += 1) {
            const size = one.sizes[turn] as number;
            const answer = await sendBatch(till, entries.slice(start, start + size));
            results.push(...answer.body.results);
            start += size;
          }
          return results;
        };
        const oneByOne = async (till: Till, entries: readonly Entry[]) => {
          const results: Record<string, unknown>[] = [];
          for (const { kind, body } of entries) {
            const answer = await till.send(kind, body);
            results.push({ status: answer.status, ...answer.body });
          }
          return results;
        };
        const together = await live(one, one.order, inBatches);
        const apart = await live(one, one.order, oneByOne);
        const otherwise = await live(one, one.other, inBatches);
        expect(together.told).toEqual(apart.told);
        await allProcessed(site);
        const shelf = await shelfOf(apart.name);
        expect(await shelfOf(together.name)).toEqual(shelf);
        expect(await shelfOf(otherwise.name)).toEqual(shelf);
      }),
      { numRuns: Number(process.env.POS_WORLDS ?? 8), seed: Number(process.env.POS_SEED ?? 20262) }
    );
    expect((await rebuild(site)).differences).toEqual([]);
  });
});

describeEach(anyDatabase(), 'the rate limit of batches', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { ratePerMinute: 12 } } });
  });
  afterAll(() => site?.stop());

  it('counts ten records as one, and one that does not fit is one 429 that stores nothing', async () => {
    const till = await createTill(site);
    const records = (length: number) => Array.from({ length }, () => sale('RATE', 1));
    const full = await sendBatch(till, records(91));
    expect(full.headers['ratelimit']).toMatch(/;r=2;/);
    const tooMuch = await sendBatch(till, records(21));
    expect([tooMuch.status, tooMuch.body.code]).toEqual([429, 'rate_limited']);
    expect(tooMuch.headers['retry-after']).toBeDefined();
    const asked = await till.send('status', {
      external_ids: Array.from({ length: 11 }, () => 'x'),
    });
    expect([asked.status, asked.headers['ratelimit']]).toEqual([
      200,
      expect.stringMatching(/;r=0;/),
    ]);
    expect((await sendBatch(till, records(1))).status).toBe(429);
    expect(await admin(site, 'GET', `/pos-events?connection=${till.id}&per_page=1`)).toHaveLength(
      1
    );
    const [{ n }] = await site.control('sql', {
      statement: `SELECT COUNT(*) AS n FROM switchboard_pos_events WHERE connection_id = ${till.id}`,
    });
    expect(Number(n)).toBe(91);
  });

  it('reads few batches for nothing that do not fit', async () => {
    const till = await createTill(site);
    const records = (length: number) => Array.from({ length }, () => sale('MISFIT', 1));
    await sendBatch(till, records(91));
    const left: unknown[] = [];
    for (let sent = 0; sent < 4; sent += 1) {
      const { status, headers } = await sendBatch(till, records(21));
      left.push([status, /;r=(\d+);/.exec(String(headers['ratelimit']))?.[1]]);
    }
    expect(left).toEqual([...Array(3).fill([429, '2']), [429, '1']]);
    expect((await sendBatch(till, records(1))).status).toBe(200);
  });
});
