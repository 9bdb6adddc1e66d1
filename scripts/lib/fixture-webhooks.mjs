import { support } from '../../bench/lib/support.mjs';

const API = '/api/fw-crm/v1';

/** How a fixture's receiver answers; `/later` fails until `works` is set. */
export const createReceiverState = () => {
  const state = { works: false };
  const isWell = (path) => path === '/ok' || (path === '/later' && state.works);
  const respond = ({ path }) =>
    isWell(path) ? {} : { status: 500, body: 'not now', headers: { 'x-reason': 'tests' } };
  return { state, respond };
};

const rows = (site, statement) => site.control('sql', { statement });

const found = (site, statement, what) =>
  support('wait').waitFor(async () => (await rows(site, statement)).length > 0, 60_000, what);

const listed = async (call, id, query = '') =>
  (await call('GET', `${API}/webhooks/${id}/deliveries${query}`)).data;

/** Webhooks of the first boot, by their purpose. */
export const makeWebhooks = async (call, base) => {
  const make = (name, route, events, more = {}) =>
    call('POST', `${API}/webhooks`, { name, url: `${base}${route}`, events, ...more });
  const made = {
    every: await make('Every event', 'ok', ['*']),
    dead: await make('Switched off by failures', 'dead', ['email.complained']),
    failing: await make('Failing', 'failing', ['campaign.sent']),
    byHand: await make('Switched off by hand', 'ok', ['deal.won']),
    // Sent the same messages as the first one.
    withHeaders: await make('Headers of its own', 'ok', ['contact.created', 'deal.won'], {
      headers: { Authorization: 'Bearer fixture', 'X-Tenant': 'north' },
    }),
    inOrder: await make('In order', 'failing', ['contact.updated'], {
      ordering: 'by_record',
      rate_per_second: 50.5,
      concurrency: 2,
      payload: 'thin',
      filter: { type: 'object', properties: { first_name: { const: 'Grace' } } },
    }),
    later: await make('Sent again', 'later', ['company.created']),
    removed: await make('Removed', 'ok', ['company.created']),
  };
  await call('POST', `${API}/webhooks/${made.withHeaders.id}/secret`, { overlap_hours: 168 });
  return made;
};

/** Makes quick failures: a webhook that is switched off, a test, and figures of a webhook that is gone. */
export const failSoon = async (site, call, { every, dead, later, removed }) => {
  const { waitFor } = support('wait');
  await call('POST', `${API}/webhooks/${every.id}/test`);
  for (let sent = 0; sent < 4; sent += 1)
    await site.control('send', { event: 'email.complained', data: { name: 'x' } });
  await waitFor(
    async () => !(await call('GET', `${API}/webhooks/${dead.id}`)).active,
    60_000,
    'the dead webhook to be switched off'
  );
  await waitFor(
    async () => (await listed(call, later.id, '?status=failed')).length === 1,
    60_000,
    'a delivery to be given up'
  );
  for (const { id } of [every, removed])
    await waitFor(
      async () => (await listed(call, id, '?status=pending')).length === 0,
      60_000,
      'everything to be sent'
    );
  await call('DELETE', `${API}/webhooks/${removed.id}`);
  await found(site, 'SELECT part FROM switchboard_delivery_totals', 'the figures to be kept');
};

const untilDone = (call, { id }) =>
  support('wait').waitFor(
    async () => (await call('GET', `${API}/webhook-recoveries/${id}`)).state === 'done',
    60_000,
    'a recovery to end'
  );

/** Recoveries of failed deliveries: one that ended, one that somebody paused. */
export const recover = async (site, call, { later, dead }) => {
  const start = (id) =>
    call('POST', `${API}/webhook-recoveries`, { filter: { webhook: id, state: 'failed' } });
  await untilDone(call, await start(later.id));
  const paused = await start(dead.id);
  await found(
    site,
    `SELECT id FROM switchboard_recoveries WHERE id = ${paused.id} AND collected_at IS NOT NULL`,
    'the deliveries of a recovery'
  );
  await call('POST', `${API}/webhook-recoveries/${paused.id}/pause`);
};

/** A webhook that is sent from the journal what was published before it. */
export const replay = async (call, base) => {
  await call('POST', `${API}/companies`, { name: 'Bombe Works' });
  const webhook = await call('POST', `${API}/webhooks`, {
    name: 'Sent from the journal',
    url: `${base}ok`,
    events: ['company.created'],
  });
  const at = (shift) => new Date(Date.now() + shift * 3_600_000).toISOString();
  const range = { from: at(-1), to: at(1) };
  await untilDone(call, await call('POST', `${API}/webhooks/${webhook.id}/replay`, range));
  return webhook;
};

/** Records whose first delivery fails and has later ones wait for it. @returns the first deliveries */
export const failInOrder = async (site, call, { inOrder }) => {
  const firsts = [];
  for (const email of ['grace@fixture.test', 'hopper@fixture.test']) {
    const contact = await call('POST', `${API}/contacts`, { email, first_name: 'Grace' });
    const change = (job_title) => call('PATCH', `${API}/contacts/${contact.id}`, { job_title });
    await change('Rear Admiral');
    const isTried = ({ id, tries }) => tries === 1 && !firsts.includes(id);
    await support('wait').waitFor(
      async () => {
        const first = (await listed(call, inOrder.id)).find(isTried);
        return first && firsts.push(first.id);
      },
      30_000,
      'the first of a record to fail'
    );
    await change('Programmer');
    await found(
      site,
      `SELECT q.id FROM switchboard_delivery_queue q JOIN switchboard_deliveries d ON d.id = q.id
       WHERE q.group_id = ${inOrder.id} AND q.state = 1 AND d.subject_id = '${contact.id}'`,
      'the second of a record to wait for the first'
    );
  }
  return firsts;
};

/** Deliveries that are not sent, or not yet; needs a site that sends nothing. */
export const leaveUnsent = async (site, call, { byHand }, [first]) => {
  await site.control('send', { event: 'deal.won', data: { title: 'Waits', note: 'ä ☃ 𝄞' } });
  await call('PATCH', `${API}/webhooks/${byHand.id}`, { active: false });
  await call('POST', `${API}/webhook-deliveries/${first}/skip`);
};

/** A failed first attempt of a webhook that keeps retrying. */
export const failOnce = async (site, call, { failing }) => {
  await site.control('send', { event: 'campaign.sent', data: { total: 3 } });
  await support('wait').waitFor(
    async () =>
      (await listed(call, failing.id, '?status=pending')).some(({ tries }) => tries === 1),
    30_000,
    'one failed try'
  );
};
