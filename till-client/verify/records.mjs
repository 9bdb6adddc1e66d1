import { expectAnswer, expectRefusal, expectThat, NotTried, some } from './service.mjs';

/** Records of this run: their SKUs are nobody's. */
export const saleOf = (service, more = {}) => ({
  external_id: service.id('sale'),
  occurred_at: service.time(60),
  currency: 'GBP',
  total: 1298,
  line_items: [{ sku: service.id('sku'), quantity: 2, unit_price: 649 }],
  ...more,
});

const refundOf = (service, sale, more = {}) => ({
  external_id: service.id('refund'),
  sale_external_id: sale.external_id,
  occurred_at: service.time(30),
  ...more,
});

const countOf = (service, sku, more = {}) => ({
  external_id: service.id('count'),
  occurred_at: service.time(60),
  mode: 'absolute',
  counts: [{ sku, quantity: 5 }],
  ...more,
});

const NEW = { ok: true, event_id: some.integer, state: some.text, duplicate: false };

export const expectNew = (answer) => expectAnswer(answer, 202, NEW);
export const expectRepeat = (answer, { event_id: id }) =>
  expectAnswer(answer, 200, { ok: true, event_id: id, state: some.text, duplicate: true });

/** The route of a kind, or that the connection may not use it. */
export const requireScope = async (service, kind, scope) => {
  const answer = await service.post(`/${kind}`, '{nonsense');
  if (answer.status !== 403) return;
  expectRefusal(answer, 403, 'insufficient_scope', { required_scope: scope });
  throw new NotTried(`the connection has no ${scope}`);
};

const scoped = (kind, checks) =>
  checks.map(([what, check]) => [
    `${kind}: ${what}`,
    async (service) => {
      await requireScope(service, kind, `${kind}:write`);
      await check(service);
    },
  ]);

/** A 400 names schema and field, and takes no id. */
const refuses = (kind, what, field, broken, whole) => [
  `${what} is 400 and takes no id`,
  async (service) => {
    const good = await whole(service);
    const bad = broken(good);
    const answer = await service.post(`/${kind}`, bad);
    const { message } = expectRefusal(answer, 400, 'schema_invalid', { schema: `${kind}.v1` });
    expectThat(message.includes(field), `has a message that does not name ${field}: ${message}`);
    expectNew(await service.post(`/${kind}`, good));
  },
];

const withLine = (line) => (record) => ({ ...record, line_items: [{ sku: 'X', ...line }] });
const refusesSale = (what, field, broken) => refuses('sale', what, field, broken, saleOf);

const SALES = scoped('sale', [
  [
    'a new one is 202 with event_id, state and duplicate: false',
    async (service) => expectNew(await service.post('/sale', saleOf(service))),
  ],
  [
    'the same bytes again are 200 with duplicate: true and the same event_id',
    async (service) => {
      const sale = saleOf(service);
      const first = expectNew(await service.post('/sale', sale));
      expectRepeat(await service.post('/sale', sale), first);
    },
  ],
  [
    'the same id with another body is a repeat, never an error',
    async (service) => {
      const sale = saleOf(service);
      const first = expectNew(await service.post('/sale', sale));
      expectRepeat(await service.post('/sale', { ...sale, total: 1 }), first);
    },
  ],
  [
    'six at the same time are one record',
    async (service) => {
      const sale = saleOf(service);
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => service.post('/sale', sale))
      );
      const statuses = answers.map(({ status }) => status).sort();
      expectThat(statuses.join() === '200,200,200,200,200,202', `answers ${statuses.join(', ')}`);
      const ids = new Set(answers.map(({ body }) => body?.event_id));
      expectThat(ids.size === 1, `gives one record ${ids.size} event_ids`);
    },
  ],
  [
    'fields it does not know are accepted',
    async (service) =>
      expectNew(await service.post('/sale', saleOf(service, { later: { version: 2 } }))),
  ],
  [
    'unreadable JSON is 400 schema_invalid',
    async (service) =>
      expectRefusal(await service.post('/sale', '{nonsense'), 400, 'schema_invalid', {
        schema: 'sale.v1',
      }),
  ],
  [
    'a key that stands twice is 400',
    async (service) => {
      const text = JSON.stringify(saleOf(service)).replace('{', '{"total":1,');
      expectRefusal(await service.post('/sale', text), 400, 'schema_invalid');
    },
  ],
  [
    'a body that is encoded is 415',
    async (service) => {
      const headers = { 'Content-Encoding': 'gzip' };
      const answer = await service.post('/sale', saleOf(service), { headers });
      expectRefusal(answer, 415, 'unsupported_encoding');
    },
  ],
  [
    'a body of more than 256 KiB is 413',
    async (service) =>
      expectRefusal(
        await service.post('/sale', saleOf(service, { meta: { x: 'x'.repeat(262_144) } })),
        413,
        'payload_too_large'
      ),
  ],
  refusesSale('a quantity of 0', 'quantity', withLine({ quantity: 0 })),
  refusesSale('a negative quantity', 'quantity', withLine({ quantity: -1 })),
  refusesSale('a quantity of 1.5', 'quantity', withLine({ quantity: 1.5 })),
  refusesSale('a quantity in quotes', 'quantity', withLine({ quantity: '1' })),
  refusesSale('a line without sku and gtin', 'line_items', (sale) => ({
    ...sale,
    line_items: [{ quantity: 1 }],
  })),
  refusesSale('a total that is no integer', 'total', (sale) => ({ ...sale, total: 12.98 })),
  refusesSale('a currency that is none', 'currency', (sale) => ({ ...sale, currency: 'POUND' })),
  refusesSale('a time without an offset', 'occurred_at', (sale) => ({
    ...sale,
    occurred_at: sale.occurred_at.slice(0, 19),
  })),
  refusesSale('no line_items', 'line_items', ({ line_items: _, ...rest }) => rest),
]);

const refundOfSale = async (service) => {
  const sale = saleOf(service);
  expectNew(await service.post('/sale', sale));
  return refundOf(service, sale);
};

const REFUNDS = scoped('refund', [
  [
    'one of a whole sale is 202, and 200 again',
    async (service) => {
      const refund = await refundOfSale(service);
      const first = expectNew(await service.post('/refund', refund));
      expectRepeat(await service.post('/refund', refund), first);
    },
  ],
  [
    'one that comes before its sale is 202, and so is the sale',
    async (service) => {
      const sale = saleOf(service);
      const more = { restock: false, reason: 'Broken', line_items: sale.line_items };
      expectNew(await service.post('/refund', refundOf(service, sale, more)));
      expectNew(await service.post('/sale', sale));
    },
  ],
  [
    'it shares its ids with other kinds',
    async (service) => {
      const sale = saleOf(service);
      const first = expectNew(await service.post('/sale', sale));
      const refund = refundOf(service, sale, { external_id: sale.external_id });
      expectRepeat(await service.post('/refund', refund), first);
    },
  ],
  refuses(
    'refund',
    'line_items: []',
    'line_items',
    (one) => ({ ...one, line_items: [] }),
    refundOfSale
  ),
  refuses(
    'refund',
    'no sale_external_id',
    'sale_external_id',
    ({ sale_external_id: _, ...rest }) => rest,
    refundOfSale
  ),
]);

const count = (service) => countOf(service, service.id('sku'));
const refusesCount = (what, field, broken) => refuses('inventory', what, field, broken, count);

const INVENTORY = scoped('inventory', [
  [
    'a count is 202, and 200 again',
    async (service) => {
      const record = count(service);
      const first = expectNew(await service.post('/inventory', record));
      expectRepeat(await service.post('/inventory', record), first);
    },
  ],
  [
    'an adjustment may be negative, and older than a count',
    async (service) => {
      const sku = service.id('sku');
      expectNew(await service.post('/inventory', countOf(service, sku)));
      const more = { mode: 'relative', occurred_at: service.time(600) };
      const counts = [{ sku, quantity: -1, reason: 'Broken' }];
      expectNew(await service.post('/inventory', countOf(service, sku, { ...more, counts })));
    },
  ],
  [
    'a count older than the last one is 409 stale_count',
    async (service) => {
      // Only items that the service knows have a last count.
      const { body } = await service.post('/catalogue', { limit: 100 });
      const item = body?.items?.find(({ deleted, stock }) => !deleted && stock?.length > 0);
      if (!item) throw new NotTried('the catalogue has no item in stock for this connection');
      const place = item.stock[0].location_ref;
      const more = place === null ? {} : { location_ref: place };
      const latest = countOf(service, item.sku, { ...more, occurred_at: service.time() });
      expectNew(await service.post('/inventory', latest));
      const older = countOf(service, item.sku, { ...more, occurred_at: service.time(600) });
      expectRefusal(await service.post('/inventory', older), 409, 'stale_count');
    },
  ],
  refusesCount('a negative count', 'quantity', (one) => ({
    ...one,
    counts: [{ sku: 'X', quantity: -1 }],
  })),
  refusesCount('a mode that is none', 'mode', (one) => ({ ...one, mode: 'both' })),
  [
    'what is signed for another route is 400',
    async (service) =>
      expectRefusal(await service.post('/inventory', saleOf(service)), 400, 'schema_invalid'),
  ],
]);

/** Sales, refunds and counts: `[what, check]`. */
export const RECORDS = [...SALES, ...REFUNDS, ...INVENTORY];
