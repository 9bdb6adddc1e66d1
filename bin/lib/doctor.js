'use strict';

const { createSilentSite } = require('./site');

const usage = `Usage, in the folder of a Strapi site: switchboard doctor [--json]

Checks what the plugin needs and prints a line for each, with what to do about it: the database, the
encryption key, NODE_ENV and private addresses, proxies, clocks, tables, waiting and failing work, the
write-ahead log of SQLite, Redis and its queues if they are used, the host's MCP switch. It changes
nothing.

  --json   print { "ok", "checks": [{ "name", "state", "message", "advice" }] };
           a state is "ok", "warn" or "fail"

Exit code: 0 if everything is in order (warnings ignored), 1 if something needs fixing, 2 if it could
not run.
`;

/** A driver may wait for minutes for a server that does not answer at all. */
const DATABASE_ANSWERS_WITHIN_MS = 15_000;

const fail = (name, message, advice) => ({ name, state: 'fail', message, advice });

const firstLine = (error) => String(error?.message || error?.code || error).split('\n')[0];

const within = async (milliseconds, work) => {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};

const connect = async (strapi) => {
  await strapi.db.init({ models: [] });
  await strapi.db.connection.raw('SELECT 1');
};

const examineDatabase = async (strapi, doctor) => {
  try {
    await within(DATABASE_ANSWERS_WITHIN_MS, connect(strapi));
  } catch (error) {
    const message = `the database does not answer: ${firstLine(error)}`;
    return [
      fail('database', message, 'start it, or fix config/database and its environment variables'),
    ];
  }
  const client = strapi.db.dialect.client;
  const answers = {
    name: 'database',
    state: 'ok',
    message: `${client} answers`,
    advice: 'nothing to do',
  };
  return [answers, ...(await doctor.examineDatabase())];
};

const examine = async () => {
  const strapi = await createSilentSite();
  try {
    await strapi.register();
  } catch (error) {
    // Options of the plugin that are wrong have a line each: all of them are what was asked for.
    const message = String(error?.message ?? error)
      .split('\n')
      .map((line) => line.trim())
      .join(' ');
    return [fail('site', `the site cannot be loaded: ${message}`, 'fix the named problem')];
  }
  if (!strapi.plugins.switchboard) {
    const message = 'the plugin switchboard is not on in this site';
    return [fail('plugin', message, 'set enabled to true for switchboard in config/plugins')];
  }
  const doctor = strapi.service('plugin::switchboard.doctor');
  const database = await examineDatabase(strapi, doctor);
  return [...database, ...(await doctor.examineSite())];
};

const describe = ({ name, state, message, advice }) =>
  `${state.padEnd(4)}  ${name}: ${message}${state === 'ok' ? '' : ` -> ${advice}`}`;

const run = async ({ json = false }, output) => {
  const checks = await examine();
  const ok = checks.every(({ state }) => state !== 'fail');
  if (json) output.json({ ok, checks });
  else output.result(checks.map(describe).join('\n'));
  return ok ? 0 : 1;
};

module.exports = {
  summary: 'check the installation, and say what to fix',
  usage,
  options: {},
  run,
};
