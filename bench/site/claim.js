'use strict';

const { pluginModule } = require('./plugin-module');

const GROUPS = 8;
const CLAIM = 32;

/** Numbers 0 … size-1, made by the database. */
const series = (strapi, size) => {
  const { client } = strapi.db.dialect;
  if (client === 'postgres') return `SELECT n FROM generate_series(0, ${size - 1}) AS s(n)`;
  const digits =
    'SELECT 0 AS d' + Array.from({ length: 9 }, (_, d) => ` UNION ALL SELECT ${d + 1}`).join('');
  const places = Math.ceil(Math.log10(size));
  const aliases = Array.from({ length: places }, (_, place) => `d${place}`);
  const sum = aliases.map((alias, place) => `${alias}.d * ${10 ** place}`).join(' + ');
  return `SELECT ${sum} AS n FROM ${aliases.map((alias) => `(${digits}) ${alias}`).join(', ')}`;
};

/** Fills a queue with rows that have been due for a while, spread over the groups. */
const fill = async (strapi, { table, size, ids }) => {
  const concat = strapi.db.dialect.client === 'mysql' ? "CONCAT('bench-', n)" : "'bench-' || n";
  const group = `CASE n % ${GROUPS} ${ids.map((id, at) => `WHEN ${at} THEN ${id}`).join(' ')} END`;
  const now = Date.now();
  await strapi.db.connection.raw(
    `INSERT INTO ${table} (document_id, webhook_id, event, status, tries, is_test, due_at, next_attempt_at, created_at, url, body, attempts)
     SELECT ${concat}, ${group}, 'bench.event', 'pending', 0, ${strapi.db.dialect.client === 'postgres' ? 'false' : '0'},
       ${now - 10_000_000} + n, ${now - 10_000_000} + n, ${now}, 'http://127.0.0.1/', '{}', '[]'
     FROM (${series(strapi, size)}) numbers`
  );
  // As it is where rows came one by one: statistics known, nothing left in the write-ahead log.
  const settle = {
    sqlite: 'PRAGMA wal_checkpoint(TRUNCATE)',
    postgres: `VACUUM ANALYZE ${table}`,
    mysql: `ANALYZE TABLE ${table}`,
  };
  await strapi.db.connection.raw(settle[strapi.db.dialect.client]);
};

/** Groups of its own, of which the site's dispatcher finds nothing due. */
const prepare = async (strapi, { sizes }) => {
  const ids = [];
  const service = strapi.service('plugin::switchboard.webhooks');
  for (let at = 0; at < GROUPS; at += 1) {
    const url = 'http://127.0.0.1:9/';
    const input = { name: `claim ${at}`, url, events: ['bench.nothing'], active: true };
    ids.push((await service.create(input)).id);
  }
  for (const [table, size] of Object.entries(sizes)) await fill(strapi, { table, size, ids });
  return ids;
};

/**
 * What a dispatcher does for work: look when each group is due, claim from those that are.
 * @returns the median turn's milliseconds.
 */
const time = async (strapi, { table, times }) => {
  const { createLeasedRows } = pluginModule('database/leases/leased-rows');
  const rows = createLeasedRows(strapi, {
    tableName: table,
    groupColumn: 'webhook_id',
    columns: { status: 'text' },
    groups: { tableName: 'switchboard_webhooks', where: { active: true } },
    leaseMs: 30_000,
  });
  const held = [];
  const turns = [];
  for (let turn = 0; turn < times; turn += 1) {
    const started = performance.now();
    const due = await rows.dueTimes();
    const [group] = [...due.keys()].slice(turn % GROUPS);
    held.push(...(await rows.claim(group, CLAIM)));
    turns.push(performance.now() - started);
  }
  if (held.length !== times * CLAIM) throw new Error(`${held.length} rows were claimed`);
  await rows.release(held.slice(0, CLAIM));
  return turns.sort((a, b) => a - b)[times >> 1];
};

const finish = async (strapi, { ids, tables }) => {
  const knex = strapi.db.connection;
  await knex('switchboard_webhooks').whereIn('id', ids).delete();
  for (const table of tables) {
    await knex.raw(
      strapi.db.dialect.client === 'sqlite' ? `DELETE FROM ${table}` : `TRUNCATE TABLE ${table}`
    );
  }
};

module.exports = ({ strapi, args: { op, ...rest } }) =>
  ({ prepare, time, finish })[op](strapi, rest);
