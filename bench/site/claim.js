'use strict';

const { pluginModule } = require('./plugin-module');
const { series } = require('./series');

const GROUPS = 8;
const CLAIM = 32;

const queueOf = (strapi, tableName) => {
  const { Queue } = pluginModule('queue/queue');
  return new Queue(pluginModule('app').appOf(strapi).db, {
    tableName,
    columns: {},
    groups: { tableName: 'switchboard_webhooks', where: { active: true } },
    leaseMs: 30_000,
  });
};

/**
 * Fills a queue with rows that have been due for a while, spread over the groups; `together`: since the same
 * moment, as what one call published is.
 */
const fill = async (strapi, { table, size, ids, together }) => {
  const group = `CASE n % ${GROUPS} ${ids.map((id, at) => `WHEN ${at} THEN ${id}`).join(' ')} END`;
  await strapi.db.connection.raw(
    `INSERT INTO ${table} (id, group_id, state, due_at)
     SELECT n, ${group}, 0, ${Date.now() - 10_000_000} + ${together ? 0 : 'n'} FROM (${series(strapi, size)}) numbers`
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
const prepare = async (strapi, { sizes, together = [] }) => {
  const ids = [];
  const service = strapi.service('plugin::switchboard.webhooks');
  for (let at = 0; at < GROUPS; at += 1) {
    const url = 'http://127.0.0.1:9/';
    const input = { name: `claim ${at}`, url, events: ['bench.nothing'], active: true };
    ids.push((await service.create(input)).id);
  }
  for (const [table, size] of Object.entries(sizes))
    await fill(strapi, { table, size, ids, together: together.includes(table) });
  return ids;
};

/**
 * What a dispatcher does for work: look when each group is due, claim from those that are.
 * @returns the median turn's milliseconds.
 */
const time = async (strapi, { table, times }) => {
  const rows = queueOf(strapi, table);
  const held = [];
  const turns = [];
  for (let turn = 0; turn < times; turn += 1) {
    const started = performance.now();
    const due = await rows.due();
    const [group] = [...due.keys()].slice(turn % GROUPS);
    held.push(...(await rows.claim([{ group, limit: CLAIM }])));
    turns.push(performance.now() - started);
  }
  if (held.length !== times * CLAIM) throw new Error(`${held.length} rows were claimed`);
  await rows.release(held.slice(0, CLAIM));
  return turns.sort((a, b) => a - b)[times >> 1];
};

const AT_ONCE = 100;

/** One row that is due of each of these webhooks. */
const wait = async (strapi, { table, due }) => {
  const rows = due.map((id, at) => ({ id: at + 1, group_id: id, state: 0, due_at: Date.now() }));
  await strapi.db.connection.batchInsert(table, rows, AT_ONCE);
};

/**
 * What an idle dispatcher does again and again: look when each group is due.
 * @returns the median look's milliseconds.
 */
const look = async (strapi, { table, times, due }) => {
  const rows = queueOf(strapi, table);
  const looks = [];
  for (let at = 0; at < times; at += 1) {
    const started = performance.now();
    const found = await rows.due();
    looks.push(performance.now() - started);
    if (found.size !== due) throw new Error(`${found.size} groups were found`);
  }
  return looks.sort((a, b) => a - b)[times >> 1];
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
  ({ prepare, time, wait, look, finish })[op](strapi, rest);
