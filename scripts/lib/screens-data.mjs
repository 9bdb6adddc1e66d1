import crypto from 'node:crypto';
import http from 'node:http';

/** Receivers that behave well and badly, for pictures of both. */
export const startReceivers = () =>
  new Promise((resolve) => {
    const server = http.createServer((request, response) => {
      request.resume();
      request.on('end', () => {
        const broken = request.url.startsWith('/broken');
        response.writeHead(broken ? 500 : 200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(broken ? { error: 'database is locked' } : { stored: true }));
      });
    });
    server.listen(0, '127.0.0.1', () =>
      resolve({
        url: `http://127.0.0.1:${server.address().port}`,
        close: () => server.close(),
      })
    );
  });

/** A client of the admin API, logged in. It sends a text as a CSV file, anything else as JSON. */
export const adminClient = async (siteUrl, { email, password }) => {
  let token;
  const call = async (method, route, body) => {
    const isFile = typeof body === 'string';
    const response = await fetch(`${siteUrl}${route}`, {
      method,
      headers: {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(body && { 'content-type': isFile ? 'text/csv' : 'application/json' }),
      },
      body: isFile ? body : body && JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text}`);
    return text ? JSON.parse(text).data : undefined;
  };
  token = (await call('POST', '/admin/login', { email, password })).token;
  return call;
};

/** Signs a record as a till does, and sends it (docs/contract-pos.md#authentication). */
export const sendRecord = async (siteUrl, { key, secret }, kind, record) => {
  const body = JSON.stringify(record);
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = crypto
    .createHmac('sha256', secret)
    .update(`${timestamp}\n${body}`)
    .digest('hex');
  const response = await fetch(`${siteUrl}/api/service-pos/v1/${kind}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-pos-key': key,
      'x-pos-timestamp': timestamp,
      'x-pos-signature': `sha256=${signature}`,
    },
    body,
  });
  return { status: response.status, body: await response.json() };
};

const SCOPES = ['sale:write', 'refund:write', 'inventory:write'];
const ago = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();

const seedStock = async (call) => {
  const sizes = [
    ['BOWL-BLUE', 'Bowl, blue', 40],
    ['BOWL-RED', 'Bowl, red', 25],
    ['TEA-MINT', 'Mint tea, 100 g', 60],
    ['TEA-ROOIBOS', 'Rooibos, 100 g', 12],
    ['POT-1L', 'Teapot, 1 l', 7],
  ];
  const shop = await call('POST', '/switchboard/locations', {
    name: 'Harbour shop',
    code: 'HARBOUR',
  });
  for (const [sku, name, quantity] of sizes) {
    await call('POST', '/switchboard/items', {
      sku,
      name,
      opening: [{ quantity }, { location: shop.id, quantity: Math.ceil(quantity / 3) }],
    });
  }
  await call('POST', '/switchboard/transfers', {
    from: shop.id,
    to: 'main',
    lines: [{ item: 'TEA-MINT', quantity: 5 }],
  });
  return shop;
};

/** Two rows are created, one is changed, and one is left out. */
const importProducts = (call) =>
  call(
    'POST',
    '/switchboard/items/import',
    [
      'sku,name,gtin,low_at,quantity',
      'CUP-WHITE,"Cup, white",4012345678901,5,30',
      'CUP-BLACK,"Cup, black",,5,18',
      'POT-1L,"Teapot, 1 l",,3,',
      'POT-2L,"Teapot, 2 l",,few,4',
    ].join('\n')
  );

const seedTills = async (call, siteUrl, shop) => {
  const till = await call('POST', '/switchboard/connections', {
    name: 'Front counter',
    scopes: SCOPES,
    mode: 'live',
    locations: [],
  });
  await call('POST', '/switchboard/connections', {
    name: 'Harbour till',
    scopes: SCOPES,
    mode: 'test',
    locations: [{ ref: 'store-7', location: shop.id }],
  });
  const sale = (id, minutes, sku, quantity) => ({
    external_id: id,
    occurred_at: ago(minutes),
    currency: 'EUR',
    total: 1290 * quantity,
    line_items: [{ sku, quantity, unit_price: 1290 }],
  });
  const send = (kind, record) => sendRecord(siteUrl, till, kind, record);
  await send('sale', sale('T1-0041', 190, 'BOWL-BLUE', 2));
  await send('sale', sale('T1-0042', 150, 'TEA-MINT', 4));
  await send('inventory', {
    external_id: 'T1-count-7',
    occurred_at: ago(120),
    mode: 'absolute',
    counts: [{ sku: 'BOWL-BLUE', quantity: 36 }],
  });
  await send('sale', sale('T1-0043', 60, 'BOWL-BLUE', 3));
  await send('sale', sale('T1-0040', 200, 'BOWL-BLUE', 1));
  await send('refund', {
    external_id: 'T1-R-0005',
    sale_external_id: 'T1-0043',
    occurred_at: ago(20),
    line_items: [{ sku: 'BOWL-BLUE', quantity: 1 }],
  });
  await send('sale', sale('T1-0044', 10, 'CUP-NEW', 2));
  // Without a product: refused.
  await send('sale', { ...sale('T1-0045', 8, 'TEA-MINT', 1), line_items: [{ quantity: 1 }] });
  await send('refund', {
    external_id: 'T1-R-0006',
    sale_external_id: 'T1-0099',
    occurred_at: ago(5),
    reason: 'wrong colour',
  });
};

const seedWebhooks = async (call, receivers) => {
  const create = (name, url, events) =>
    call('POST', '/switchboard/webhooks', { name, url, events, active: true });
  const good = await create('Newsletter tool', `${receivers.url}/hooks`, ['*']);
  const bad = await create('Accounting', `${receivers.url}/broken`, [
    'contact.created',
    'contact.updated',
    'deal.won',
  ]);
  await create('Warehouse', 'http://127.0.0.1:9/', ['contact.created']);
  for (let n = 0; n < 6; n += 1) {
    await call('POST', `/switchboard/webhooks/${good.id}/test`, { event: 'contact.tagged' });
  }
  for (let n = 0; n < 3; n += 1) {
    await call('POST', `/switchboard/webhooks/${bad.id}/test`, {});
  }
  return { good, bad };
};

/** A webhook that is made after the events, so that it has missed them. */
const seedLateWebhook = (call, receivers) =>
  call('POST', '/switchboard/webhooks', {
    name: 'Reporting',
    url: `${receivers.url}/reports`,
    events: ['contact.created', 'contact.updated', 'stock.changed'],
    active: true,
  });

const seedContact = (siteUrl, apiToken) =>
  fetch(`${siteUrl}/api/fw-crm/v1/contacts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ email: `kim-${Date.now()}@example.test`, first_name: 'Kim' }),
  });

/** Fills a playground with what is worth a picture: a shop on an ordinary afternoon. */
export const seedScreens = async (call, { siteUrl, apiToken, receivers }) => {
  const webhooks = await seedWebhooks(call, receivers);
  await seedContact(siteUrl, apiToken);
  const shop = await seedStock(call);
  await seedTills(call, siteUrl, shop);
  const imported = await importProducts(call);
  return { ...webhooks, imported, late: await seedLateWebhook(call, receivers) };
};
