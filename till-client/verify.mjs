// Made of verify/ by scripts/build-till-client.mjs.
import till from './index.js';
const WAITS = 3;
const LONGEST_WAIT_S = 70;
const TIMEOUT_MS = 3e4;
class Broken extends Error {}
class NotTried extends Error {}
const shown = (value) => {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
};
const is = (expected, actual) =>
  typeof expected === 'function' ? expected(actual) : Object.is(expected, actual);
const some = {
  text: (value) => typeof value === 'string' && value !== '',
  integer: Number.isInteger,
  list: Array.isArray,
  truth: (value) => typeof value === 'boolean',
};
const expectAnswer = (answer, status, fields = {}) => {
  const { body } = answer;
  const code = body?.code ? ` ${body.code}` : '';
  if (answer.status !== status) throw new Broken(`answers ${answer.status}${code}, not ${status}`);
  if (typeof body !== 'object' || body === null) throw new Broken('answers no JSON object');
  for (const [name, expected] of Object.entries(fields)) {
    if (is(expected, body[name])) continue;
    const wanted = typeof expected === 'function' ? '' : `, not ${shown(expected)}`;
    throw new Broken(`answers ${name} ${shown(body[name])}${wanted}`);
  }
  return body;
};
const expectThat = (holds, message) => {
  if (!holds) throw new Broken(message);
};
const expectRefusal = (answer, status, code, fields = {}) =>
  expectAnswer(answer, status, { ok: false, code, message: some.text, ...fields });
class Service {
  #url;
  #key;
  #secret;
  #ids = 0;
  #run = Math.random().toString(36).slice(2, 10);
  clockOffset = 0;
  constructor({ url, key, secret }) {
    this.#url = url.replace(/\/+$/, '');
    this.#key = key;
    this.#secret = secret;
  }
  now() {
    return Math.floor(Date.now() / 1e3) + this.clockOffset;
  }
  time(secondsAgo = 0) {
    return new Date((this.now() - secondsAgo) * 1e3).toISOString();
  }
  id(what = 'record') {
    this.#ids += 1;
    return `verify-${this.#run}-${what}-${this.#ids}`;
  }
  ping(key = this.#key) {
    return this.#request('GET', '/ping', { 'X-POS-Key': key });
  }
  get(path) {
    return this.#request('GET', path, {});
  }
  post(path, record, changes = {}) {
    const body = typeof record === 'string' ? record : JSON.stringify(record);
    const timestamp = String(changes.timestamp ?? this.now());
    const { secret = this.#secret, signedBody = body, key = this.#key } = changes;
    const headers = {
      'Content-Type': 'application/json',
      'X-POS-Key': key,
      'X-POS-Timestamp': timestamp,
      'X-POS-Signature': till.sign({ secret, timestamp, body: signedBody }),
      ...changes.headers,
    };
    const sent = Object.entries(headers).filter(([, value]) => value !== undefined);
    return this.#request('POST', path, Object.fromEntries(sent), body);
  }
  async #request(method, path, headers, body) {
    for (let wait = 1; ; wait += 1) {
      const response = await fetch(`${this.#url}${path}`, {
        method,
        headers,
        body,
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const text = await response.text();
      const { status } = response;
      if (status !== 429) return { status, body: parsed(text) };
      const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
      expectThat(seconds >= 0, 'answers 429 without a Retry-After in seconds');
      if (wait > WAITS || seconds > LONGEST_WAIT_S) throw new NotTried('the service answers 429');
      await new Promise((resolve) => setTimeout(resolve, seconds * 1e3));
    }
  }
}
const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};
const saleOf = (service, more = {}) => ({
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
const expectNew = (answer) => expectAnswer(answer, 202, NEW);
const expectRepeat = (answer, { event_id: id }) =>
  expectAnswer(answer, 200, { ok: true, event_id: id, state: some.text, duplicate: true });
const requireScope = async (service, kind, scope) => {
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
        await service.post('/sale', saleOf(service, { meta: { x: 'x'.repeat(262144) } })),
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
const RECORDS = [...SALES, ...REFUNDS, ...INVENTORY];
const WRONG = 'pos_secret_of_somebody_else';
const OUTSIDE = 'timestamp_outside_window';
const skewOf = (seconds) => (skew) => Number.isInteger(skew) && Math.abs(skew - seconds) <= 30;
const AUTHENTICATION = [
  [
    'ping: answers with the key alone',
    async (service) => {
      const { server_time: time } = expectAnswer(await service.ping(), 200, {
        ok: true,
        connection: some.text,
        mode: 'test',
        schema: 'v1',
        server_time: some.integer,
      });
      expectThat(Math.abs(time - service.now()) <= 30, 'tells a server_time that stands still');
    },
  ],
  [
    'ping: a key nobody has is 401 unknown_key',
    async (service) => expectRefusal(await service.ping('pos_test_nobody'), 401, 'unknown_key'),
  ],
  ...['sale', 'refund', 'inventory', 'batch'].map((kind) => [
    `schema: /schema/${kind} is published to everybody`,
    async (service) => {
      const { properties } = expectAnswer(await service.get(`/schema/${kind}`), 200);
      const field = kind === 'batch' ? 'records' : 'external_id';
      expectThat(properties?.[field] !== undefined, `names no ${field} in its properties`);
    },
  ]),
  [
    'time: 400 seconds late is 401 timestamp_outside_window with skew_seconds',
    async (service) => {
      const timestamp = service.now() - 400;
      const answer = await service.post('/sale', saleOf(service), { timestamp });
      expectRefusal(answer, 401, OUTSIDE, { skew_seconds: skewOf(-400) });
    },
  ],
  [
    'time: 400 seconds early is the same',
    async (service) => {
      const timestamp = service.now() + 400;
      const answer = await service.post('/sale', saleOf(service), { timestamp });
      expectRefusal(answer, 401, OUTSIDE, { skew_seconds: skewOf(400) });
    },
  ],
  [
    'time: 280 seconds late is accepted',
    async (service) => {
      const timestamp = service.now() - 280;
      expectAnswer(await service.post('/sale', saleOf(service), { timestamp }), 202);
    },
  ],
  [
    'time: no timestamp is 401',
    async (service) => {
      const headers = { 'X-POS-Timestamp': undefined };
      expectRefusal(await service.post('/sale', saleOf(service), { headers }), 401, OUTSIDE);
    },
  ],
  [
    'order: time is judged before the signature',
    async (service) => {
      const changes = { timestamp: service.now() - 400, secret: WRONG };
      expectRefusal(await service.post('/sale', saleOf(service), changes), 401, OUTSIDE);
    },
  ],
  [
    'order: the key is judged before the time',
    async (service) => {
      const changes = { timestamp: 1, key: 'pos_test_nobody' };
      expectRefusal(await service.post('/sale', saleOf(service), changes), 401, 'unknown_key');
    },
  ],
  [
    'order: the signature is judged before the body',
    async (service) =>
      expectRefusal(
        await service.post('/sale', '{nonsense', { secret: WRONG }),
        401,
        'signature_mismatch'
      ),
  ],
  [
    'signature: one by another secret is 401 signature_mismatch',
    async (service) =>
      expectRefusal(
        await service.post('/sale', saleOf(service), { secret: WRONG }),
        401,
        'signature_mismatch'
      ),
  ],
  [
    'signature: it covers the exact bytes',
    async (service) => {
      const sale = saleOf(service);
      const changes = { signedBody: JSON.stringify(sale) };
      const answer = await service.post('/sale', JSON.stringify(sale, null, 1), changes);
      expectRefusal(answer, 401, 'signature_mismatch');
    },
  ],
  [
    'signature: none is 401 signature_mismatch',
    async (service) => {
      const headers = { 'X-POS-Signature': undefined };
      const answer = await service.post('/sale', saleOf(service), { headers });
      expectRefusal(answer, 401, 'signature_mismatch');
    },
  ],
  [
    'routes: an unknown one is 404 in JSON',
    async (service) =>
      expectAnswer(await service.post('/nothing', {}), 404, { ok: false, code: some.text }),
  ],
];
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
const shiftOf = (service) => {
  const start = Date.UTC(1990, 0, 1) + Math.floor(Math.random() * 5e11);
  const at = (seconds) => new Date(start + seconds * 1e3).toISOString();
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
const QUESTIONS = [...BATCHES, ...VALIDATIONS, ...STATUS, ...CATALOGUE, ...CLOSINGS];
const CHECKS = [...AUTHENTICATION, ...RECORDS, ...QUESTIONS];
const whyNot = async (service) => {
  try {
    const ping = expectAnswer(await service.ping(), 200, { ok: true, server_time: some.integer });
    service.clockOffset = ping.server_time - Math.floor(Date.now() / 1e3);
    if (ping.mode === 'test') return null;
    return `${ping.connection} is a ${ping.mode} connection; give one in test mode, which writes no stock`;
  } catch (error) {
    if (error instanceof Broken) return `ping ${error.message}`;
    return `the service cannot be reached: ${error.cause?.message ?? error.message}`;
  }
};
const verify = async ({ url, key, secret, say }) => {
  const service = new Service({ url, key, secret });
  const reason = await whyNot(service);
  if (reason !== null) {
    say(`not verified: ${reason}`);
    return false;
  }
  const found = { kept: 0, broken: 0, untried: 0 };
  for (const [what, check] of CHECKS) {
    try {
      await check(service);
      found.kept += 1;
    } catch (error) {
      if (error instanceof NotTried) {
        found.untried += 1;
        say(`not tried: ${what} (${error.message})`);
        continue;
      }
      found.broken += 1;
      const lost = `cannot be told: ${error.cause?.message ?? error.message}`;
      say(`not kept: ${what}: ${error instanceof Broken ? error.message : lost}`);
    }
  }
  say(`${found.kept} kept, ${found.broken} not kept, ${found.untried} not tried`);
  return found.broken === 0;
};
export { verify };
