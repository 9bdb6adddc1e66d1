import { expectAnswer, expectRefusal, expectThat, NotTried, some } from './service.mjs';
import { expectNew, expectRepeat, requireScope, saleOf } from './records.mjs';

const PAGES = 5;

const saleEntry = (body) => ({ kind: 'sale', body });
const batchOf = (...records) => ({ records });

const expectBatch = (answer, statuses) => {
  const { results } = expectAnswer(answer, 200, { ok: true, results: some.list });
  const given = results.map((result) => result?.status).join(', ');
  expectThat(given === statuses.join(', '), `answers ${given}, not ${statuses.join(', ')}`);
  return results;
};

const refusesBatch = (what, records) => [
  `batch: ${what} is one 400`,
  async (service) =>
    expectRefusal(
      await service.post('/batch', typeof records === 'string' ? records : { records }),
      400,
      'schema_invalid',
      { schema: 'batch.v1' }
    ),
];

const BATCHES = [
  [
    'batch: one bad record never fails its neighbours, and again all are duplicates',
    async (service) => {
      const [first, second] = [saleOf(service), saleOf(service)];
      const batch = batchOf(
        saleEntry(first),
        saleEntry(saleOf(service, { total: 'much' })),
        saleEntry(second)
      );
      const [one, bad, two] = expectBatch(await service.post('/batch', batch), [202, 400, 202]);
      expectThat(bad.schema === 'sale.v1', 'does not name the schema of the record in a batch');
      expectBatch(await service.post('/batch', batch), [200, 400, 200]);
      expectRepeat(await service.post('/sale', first), one);
      expectRepeat(await service.post('/sale', second), two);
    },
  ],
  [
    'batch: records take effect in the order sent',
    async (service) => {
      const sale = saleOf(service);
      const batch = batchOf(saleEntry(sale), saleEntry({ ...sale, total: 1 }), { kind: 'gift' });
      const [one, two] = expectBatch(await service.post('/batch', batch), [202, 200, 400]);
      expectThat(one.event_id === two.event_id, 'gives one id two event_ids');
    },
  ],
  refusesBatch('no record', []),
  refusesBatch(
    '101 records',
    Array.from({ length: 101 }, () => saleEntry({}))
  ),
  refusesBatch('unreadable JSON', '{"records":['),
];

const VALIDATIONS = [
  [
    'validate: tells what a record would become, and takes no id',
    async (service) => {
      const sale = saleOf(service);
      const answer = await service.post('/validate', saleEntry(sale));
      const { unknown } = expectAnswer(answer, 200, {
        ok: true,
        state: some.text,
        duplicate: false,
        stale: some.list,
        flags: some.list,
        movements: some.list,
        unknown: some.list,
      });
      const { sku } = sale.line_items[0];
      expectThat(
        unknown.some((one) => one.sku === sku),
        `does not name the unknown SKU ${sku}`
      );
      expectNew(await service.post('/sale', sale));
      const again = await service.post('/validate', saleEntry(sale));
      expectAnswer(again, 200, { ok: true, duplicate: true });
    },
  ],
  [
    'validate: refuses what the record’s route would refuse',
    async (service) => {
      const answer = await service.post('/validate', saleEntry(saleOf(service, { total: 'much' })));
      expectRefusal(answer, 400, 'schema_invalid', { schema: 'sale.v1' });
    },
  ],
];

const STATUS = [
  [
    'status: answers in the order asked, unknown ids too',
    async (service) => {
      const sale = saleOf(service);
      const { event_id: id } = expectNew(await service.post('/sale', sale));
      const never = service.id('never');
      const answer = await service.post('/status', { external_ids: [never, sale.external_id] });
      const { records } = expectAnswer(answer, 200, { ok: true, records: some.list });
      const [first, second] = records;
      expectThat(
        records.length === 2 && first.external_id === never && first.state === 'unknown',
        'does not say that an id is unknown'
      );
      expectAnswer({ status: 200, body: second }, 200, {
        external_id: sale.external_id,
        event_id: id,
        kind: 'sale',
        state: some.text,
        flags: some.list,
        accepted_at: some.text,
        movements: some.list,
      });
    },
  ],
  [
    'status: 101 ids are 400',
    async (service) => {
      const ids = Array.from({ length: 101 }, (_, index) => `id-${index}`);
      const answer = await service.post('/status', { external_ids: ids });
      expectRefusal(answer, 400, 'schema_invalid', { schema: 'status.v1' });
    },
  ],
];

const ITEM = { sku: some.text, stock: some.list, deleted: some.truth };

const CATALOGUE = [
  [
    'catalogue: pages have items, a cursor and has_more',
    async (service) => {
      let cursor;
      for (let page = 1; page <= PAGES; page += 1) {
        const answer = await service.post('/catalogue', { cursor, limit: 10 });
        const body = expectAnswer(answer, 200, {
          ok: true,
          items: some.list,
          cursor: some.text,
          has_more: some.truth,
        });
        expectThat(
          body.items.length <= 10,
          `answers ${body.items.length} items, 10 were asked for`
        );
        for (const item of body.items) expectAnswer({ status: 200, body: item }, 200, ITEM);
        if (!body.has_more) return;
        cursor = body.cursor;
      }
    },
  ],
  ...[
    ['a limit of 0', { limit: 0 }],
    ['a limit of 1001', { limit: 1001 }],
    ['a cursor that is none', { cursor: 'nonsense' }],
  ].map(([what, body]) => [
    `catalogue: ${what} is 400`,
    async (service) => {
      const answer = await service.post('/catalogue', body);
      expectRefusal(answer, 400, 'schema_invalid', { schema: 'catalogue.v1' });
    },
  ]),
].map(([what, check]) => [
  what,
  async (service) => {
    await requireScope(service, 'catalogue', 'stock:read');
    await check(service);
  },
]);

/** A shift long ago that no other run has used. */
const shiftOf = (service) => {
  const start = Date.UTC(1990, 0, 1) + Math.floor(Math.random() * 5e11);
  const at = (seconds) => new Date(start + seconds * 1000).toISOString();
  const sale = saleOf(service, { occurred_at: at(1) });
  const closing = (sales, ids) => ({
    external_id: service.id('closing'),
    occurred_at: at(3),
    from: at(0),
    to: at(2),
    totals: [{ currency: 'GBP', sales, refunds: { count: 0, total: 0 } }],
    external_ids: ids,
  });
  return { sale, closing };
};

const CLOSINGS = [
  [
    'closing: one that fits is matched, and 200 again',
    async (service) => {
      const { sale, closing } = shiftOf(service);
      expectNew(await service.post('/sale', sale));
      const record = closing({ count: 1, total: sale.total }, [sale.external_id]);
      const fields = { ok: true, event_id: some.integer, state: 'matched' };
      const answer = await service.post('/closing', record);
      const body = expectAnswer(answer, 202, { ...fields, duplicate: false });
      expectThat(body.differences?.length === 0, 'finds differences where there are none');
      expectAnswer(await service.post('/closing', record), 200, { ...fields, duplicate: true });
    },
  ],
  [
    'closing: one that differs names what is missing and which sums',
    async (service) => {
      const { sale, closing } = shiftOf(service);
      expectNew(await service.post('/sale', sale));
      const never = service.id('never');
      const record = closing({ count: 1, total: sale.total + 1 }, [sale.external_id, never]);
      const answer = await service.post('/closing', record);
      const { missing, differences } = expectAnswer(answer, 202, {
        state: 'differs',
        missing: some.list,
        differences: some.list,
      });
      expectThat(missing.join() === never, `misses ${missing.join() || 'nothing'}, not ${never}`);
      const [one] = differences;
      expectThat(
        differences.length === 1 &&
          one.field === 'sales.total' &&
          one.till === sale.total + 1 &&
          one.site === sale.total,
        'does not name the sum that differs'
      );
    },
  ],
].map(([what, check]) => [
  what,
  async (service) => {
    if ((await service.post('/closing', '{nonsense')).status === 404) {
      throw new NotTried('the service has no closings');
    }
    await requireScope(service, 'closing', 'closing:write');
    await check(service);
  },
]);

/** Several at once, and questions: `[what, check]`. */
export const QUESTIONS = [...BATCHES, ...VALIDATIONS, ...STATUS, ...CATALOGUE, ...CLOSINGS];
