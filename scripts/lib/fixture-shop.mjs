import path from 'node:path';
import { support } from '../../bench/lib/support.mjs';

const loadTill = () => support(path.join('..', 'api', 'pos-till'));

const SCOPES = ['sale:write', 'refund:write', 'inventory:write', 'closing:write', 'stock:read'];

/** Sends records one after the other, each once everything before it is processed. */
const sendEach = async (site, requests) => {
  const answers = [];
  for (const request of requests) {
    const answer = await request();
    if (answer.status !== 202) throw new Error(`a till's record: ${answer.status} ${answer.text}`);
    await loadTill().allProcessed(site);
    answers.push(answer.body);
  }
  return answers;
};

const emptied = (site, table, column, what) =>
  support('wait').waitFor(
    async () => {
      const [row] = await site.control('sql', {
        statement: `SELECT COUNT(*) AS n FROM ${table} WHERE ${column} IS NOT NULL`,
      });
      return Number(row.n) === 0;
    },
    60_000,
    what
  );

/** Customers: a contact's sale and what came back of it, with prices for the sales figures. */
const makePurchases = async (site, till) => {
  const customer = { email: 'ada@fixture.test', phone: '020 7946 0018' };
  const line_items = [{ sku: 'TEA', quantity: 2, unit_price: 799 }];
  const sale = { external_id: 'SALE-ADA', location_ref: 'front', total: 1598, customer };
  await sendEach(site, [
    () => till.sale([], { ...sale, line_items }),
    () =>
      till.refund('SALE-ADA', {
        external_id: 'REFUND-ADA',
        line_items: [{ sku: 'TEA', quantity: 1 }],
      }),
  ]);
  await emptied(site, 'switchboard_pos_purchases', 'due_at', 'customers to be found');
};

/** Mappings that hold, one that was taken back, and a value that still waits. */
const makeMappings = async (site, call, till, tea) => {
  const { allProcessed } = loadTill();
  const unknown = (sku) => () => till.sale([[sku, 1]], { external_id: `SALE-${sku}` });
  const skus = ['TEA-OLD', 'BAG', 'GUESS', 'STILL-UNKNOWN'];
  await sendEach(site, skus.map(unknown));
  const to = { 'TEA-OLD': { item: tea }, BAG: { ignore: true }, GUESS: { create: true } };
  const made = {};
  for (const [value, target] of Object.entries(to)) {
    const body = { kind: 'sku', value, to: target };
    made[value] = (await call('POST', '/switchboard/mapping-inbox/resolve', body)).data.id;
    await allProcessed(site);
  }
  await call('POST', '/switchboard/mapping-inbox/undo', { id: made.GUESS });
  await allProcessed(site);
};

/** A refund without its sale that somebody accepted, and a record that somebody had processed again. */
const handleByHand = async (site, call, till, waiting) => {
  const { settled } = loadTill();
  const refund = { external_id: 'REFUND-3', total: 799, currency: 'GBP' };
  const [{ event_id: id }] = await sendEach(site, [
    () => till.refund('NEVER-CAME', { ...refund, line_items: [{ sku: 'TEA', quantity: 1 }] }),
  ]);
  await call('POST', `/switchboard/pos-events/${id}/accept-without-sale`);
  await settled(site, id, 'applied');
  await call('POST', `/switchboard/pos-events/${waiting}/reprocess`);
  await settled(site, waiting, 'needs_mapping');
  return [id, waiting];
};

/** A closing that names a record that never came, and other sums. */
const closeDay = async (till) => {
  const { isoAgo } = loadTill();
  const answer = await till.send('closing', {
    external_id: 'CLOSING-1',
    occurred_at: isoAgo(0),
    from: isoAgo(7200),
    to: isoAgo(1),
    totals: [
      { currency: 'GBP', sales: { count: 9, total: 9999 }, refunds: { count: 0, total: 0 } },
    ],
    external_ids: ['SALE-1', 'NEVER-ARRIVED'],
  });
  if (answer.body.state !== 'differs') throw new Error(`a closing: ${answer.text}`);
  return answer.body.event_id;
};

const refuse = async (till, trial) => {
  const forged = await till.send('sale', {}, { secret: trial.secret });
  if (forged.status !== 401) throw new Error(`a forged record: ${forged.status} ${forged.text}`);
  const half = await till.send('sale', { external_id: 'HALF' });
  if (half.status !== 400) throw new Error(`half a record: ${half.status} ${half.text}`);
};

/** Changes of stock by users: a transfer, a stocktake, a change, a low mark, an import, an archive. */
const moveByHand = async (site, call, { tea, shop }) => {
  const post = (route, body) => call('POST', `/switchboard/${route}`, body);
  await post('transfers', {
    external_id: 'T-1',
    from: 'main',
    to: shop,
    lines: [{ item: tea, quantity: 5, reason: 'for the window' }],
  });
  await post('stocktakes', {
    location: 'main',
    counts: [{ item: 'CUP', quantity: 7, reason: 'three broken' }],
  });
  await post(`items/${tea}/adjust`, { location: shop, quantity: -1, reason: 'a sample' });
  const { data: levels } = await call('GET', '/switchboard/levels?sku=TEA');
  await call('PUT', `/switchboard/levels/${levels[0].id}`, { low_at: 3 });
  const { data: old } = await post('items', { sku: 'GONE', opening: [{ quantity: 1 }] });
  await call('DELETE', `/switchboard/items/${old.id}`);
  const answer = await site.request('POST', '/switchboard/items/import', {
    body: 'sku;name;low at;quantity\nIMP-1;One;2;4\nIMP-2;Two;not a number;1\n',
    headers: { 'content-type': 'text/csv' },
  });
  const { created, failed } = answer.body.data ?? {};
  if (created !== 1 || failed !== 1) throw new Error(`an import: ${answer.text}`);
};

/**
 * Items, levels, movements and everything that tills do, and records of tills in every state but
 * `pending` and `failed`.
 * @returns the till, secrets in clear, and the ids of records that say more than the list of them does
 */
export const makeShop = async (site, call) => {
  const { createItem, createTill } = loadTill();
  const { id: tea } = await createItem(site, 'TEA', 100, { gtin: '4006381333931', name: 'Tea' });
  await createItem(site, 'CUP', 10);
  const { data: shop } = await call('POST', '/switchboard/locations', {
    name: 'Shop',
    code: 'shop',
  });
  const till = await createTill(site, {
    name: 'Till with a map',
    group: 'high street',
    scopes: SCOPES,
    customers: 'create',
    country: 'GB',
    locations: [{ ref: 'front', location: shop.id }],
    open_hours: [{ days: ['mon', 'sat'], from: '09:00', to: '18:00' }],
  });
  const trial = await createTill(site, { name: 'Trial till', mode: 'test' });
  const revoked = await createTill(site, { name: 'Stolen till' });
  await call('POST', `/switchboard/connections/${revoked.id}/revoke`);
  const sale = { external_id: 'SALE-1', location_ref: 'front' };
  const sent = await sendEach(site, [
    () => till.count([['TEA', 50]], { external_id: 'COUNT-1', location_ref: 'front' }),
    () => till.sale([['TEA', 3]], sale),
    () =>
      till.refund('SALE-1', {
        external_id: 'REFUND-1',
        line_items: [{ sku: 'TEA', quantity: 1 }],
      }),
    () => till.refund('NEVER-SEEN', { external_id: 'REFUND-2' }),
    () => till.sale([['NO-SUCH-SKU', 1]], { ...sale, external_id: 'SALE-2' }),
    () =>
      till.sale(
        [
          ['CUP', 2],
          ['NO-SUCH-SKU', 1],
        ],
        { ...sale, external_id: 'SALE-3' }
      ),
    () => trial.sale([['CUP', 4]], { external_id: 'SALE-1' }),
  ]);
  await makePurchases(site, till);
  await makeMappings(site, call, till, tea);
  const handled = await handleByHand(site, call, till, sent[4].event_id);
  await refuse(till, trial);
  await moveByHand(site, call, { tea, shop: shop.id });
  const closing = await closeDay(till);
  const catalogue = await till.send('catalogue', {});
  if (catalogue.status !== 200) throw new Error(`the catalogue: ${catalogue.text}`);
  const named = { 'Till with a map': till, 'Trial till': trial, 'Stolen till': revoked };
  return {
    till,
    records: [...handled, closing],
    secrets: Object.entries(named).map(([name, { id, key, secret }]) => ({
      id,
      name,
      key,
      secret,
    })),
  };
};

/** Accepted records that are not applied yet, or never will be; needs a site that processes nothing. */
export const leaveWaiting = async (site, call, till) => {
  for (const id of ['SALE-WAITS', 'SALE-FAILED']) {
    const answer = await till.sale([['CUP', 1]], { external_id: id });
    if (answer.status !== 202) throw new Error(`a late sale: ${answer.status} ${answer.text}`);
  }
  const [{ id }] = await site.control('sql', {
    statement: "SELECT id FROM switchboard_pos_events WHERE external_id = 'SALE-FAILED'",
  });
  for (const statement of [
    `UPDATE switchboard_pos_events SET state = 'failed', tries = 5, error = 'gave up' WHERE id = ${id}`,
    `UPDATE switchboard_record_queue SET state = 3 WHERE id = ${id}`,
  ])
    await site.control('sql', { statement });
  // Its place in the catalogue is numbered later.
  await call('POST', '/switchboard/items', { sku: 'LATE', opening: [{ quantity: 1 }] });
};
