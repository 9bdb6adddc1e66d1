'use strict';

const { pluginModule } = require('./plugin-module');
const { series } = require('./series');

const WEBHOOKS = 20;
const PENDING = 1000;
const HOUR_MS = 3_600_000;
const DAYS = 30;
const AT_ONCE = 1_000_000;

/** Finished deliveries over the last 30 days, oldest first, and so many of the newest failing. */
const fillLog = async (strapi, { size, ids, now, failing }) => {
  const { client } = strapi.db.dialect;
  const concat = client === 'mysql' ? "CONCAT('log-', n)" : "'log-' || n";
  const group = `CASE n % ${WEBHOOKS} ${ids.map((id, at) => `WHEN ${at} THEN ${id}`).join(' ')} END`;
  const from = now - DAYS * 24 * HOUR_MS;
  const step = Math.floor((now - from) / size);
  for (let start = 0; start < size; start += AT_ONCE) {
    // PostgreSQL's own integers end before a month of milliseconds.
    const number = client === 'postgres' ? 'CAST(n AS bigint)' : 'n';
    const numbers = `SELECT ${number} + ${start} AS n FROM (${series(strapi, Math.min(AT_ONCE, size - start))}) part`;
    const made = `${from} + n * ${step}`;
    const fails = `n >= ${size - failing}`;
    await strapi.db.connection.raw(
      `INSERT INTO switchboard_deliveries (document_id, site_instance, webhook_id, event, status, tries, is_test,
         next_attempt_at, created_at, finished_at, url, body, attempts)
       SELECT ${concat}, NULL, ${group}, 'bench.event', CASE WHEN ${fails} THEN 'pending' ELSE 'sent' END, 1,
         ${client === 'postgres' ? 'false' : '0'}, CASE WHEN ${fails} THEN ${now + 24 * HOUR_MS} END, ${made}, CASE WHEN ${fails} THEN NULL ELSE ${made} END,
         'http://127.0.0.1/', '{}', '[]'
       FROM (${numbers}) numbers`
    );
  }
  await strapi.db.connection.raw(
    `INSERT INTO switchboard_delivery_queue (id, group_id, state, due_at, section, error, event, created_at)
     SELECT id, webhook_id, 0, next_attempt_at, 1, 'http_500', event, created_at
     FROM switchboard_deliveries WHERE status = 'pending'`
  );
};

const fillRollups = async (app, { size, ids, now }) => {
  const { addToRollups } = pluginModule('webhooks/figures/rollups');
  const hours = Math.min(DAYS * 24, size);
  for (let hour = 0; hour < hours; hour += 1) {
    const at = now - hour * HOUR_MS;
    await addToRollups(
      app.db.pool,
      ids.map((webhookId) => ({ webhookId, at, ok: true, ended: 'sent', answeredIn: 50 }))
    );
  }
};

const SETTLE = {
  sqlite: ['ANALYZE', 'PRAGMA wal_checkpoint(TRUNCATE)'],
  postgres: ['VACUUM ANALYZE switchboard_deliveries'],
  mysql: ['ANALYZE TABLE switchboard_deliveries'],
};

/** @returns how long it took to make the rows, in seconds. */
const prepare = async (strapi, { size, failing = PENDING }) => {
  const started = performance.now();
  const ids = [];
  const service = strapi.service('plugin::switchboard.webhooks');
  for (let at = 0; at < WEBHOOKS; at += 1) {
    const url = 'http://127.0.0.1:9/';
    const input = { name: `health ${at}`, url, events: ['bench.nothing'], active: true };
    ids.push((await service.create(input)).id);
  }
  const now = Date.now();
  await fillLog(strapi, { size, ids, now, failing });
  await fillRollups(pluginModule('app').appOf(strapi), { size, ids, now });
  for (const statement of SETTLE[strapi.db.dialect.client]) {
    await strapi.db.connection.raw(statement);
  }
  return (performance.now() - started) / 1000;
};

const medianOf = async (times, ask) => {
  const took = [];
  for (let turn = 0; turn < times; turn += 1) {
    const started = performance.now();
    await ask();
    took.push(performance.now() - started);
  }
  return took.sort((a, b) => a - b)[times >> 1];
};

/**
 * What the home page and the list of webhooks ask for, without what the controller remembers.
 * @returns the median milliseconds.
 */
const time = async (strapi, { times }) => {
  const { readHealth } = pluginModule('overview/health');
  const webhooks = strapi.service('plugin::switchboard.webhooks');
  return medianOf(times, async () => {
    const report = await readHealth(pluginModule('app').appOf(strapi), Date.now());
    await webhooks.list({ page: 1, per_page: 100 });
    if (report.totals.failing !== PENDING) throw new Error('The figures are wrong.');
  });
};

/** What the log and its causes ask for, of the whole log. @returns the median milliseconds of each. */
const timeLog = async (strapi, { times }) => {
  const app = pluginModule('app').appOf(strapi);
  const { countCauses, readDeliveries } = pluginModule('webhooks/deliveries/log');
  const { selectionOf } = pluginModule('webhooks/deliveries/log-filter');
  const asked = {
    'first page of the log': () => readDeliveries(app, selectionOf({}), { limit: 50 }),
    'of one event': () => readDeliveries(app, selectionOf({ event: 'bench.event' }), { limit: 50 }),
    causes: () => countCauses(app, selectionOf({})),
  };
  const medians = {};
  for (const [name, ask] of Object.entries(asked)) medians[name] = await medianOf(times, ask);
  return medians;
};

module.exports = ({ strapi, args: { op, ...rest } }) =>
  ({ prepare, time, timeLog })[op](strapi, rest);
