'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');
const { siteFolders } = require('./site-folders');

const siteStrapi = () => {
  try {
    // The site's own Strapi, whatever copy this package might find.
    return createRequire(path.resolve('package.json'))('@strapi/strapi');
  } catch {
    throw new Error(`This is not the folder of a Strapi site: ${process.cwd()}`);
  }
};

/** The site's work during a command that only reads: nothing is sent or applied. */
const NO_WORK = { sends: false, applies: false };

/** How long a command waits for SQLite's lock, milliseconds. */
const LOCK_MS = 5000;

/**
 * Makes transactions take SQLite's lock as they begin, and wait for it while another process writes. The site's own
 * wait is short, as requests stand still meanwhile, and a transaction that has read never waits: a boot would fail at
 * one of the host's writes. Does nothing on other databases. Call it before the site is loaded.
 * @param milliseconds the least that a statement waits before it fails
 * @returns a function that ends this
 */
const waitForLocks = (strapi, milliseconds = LOCK_MS) => {
  const { client, pool } = strapi.config.get('database.connection', {});
  if (client !== 'sqlite') return () => {};
  const prolonged = new Map();
  let isOver = false;
  const prolong = (connection) => {
    if (isOver) return;
    const { prepare } = connection;
    connection.prepare = (sql) =>
      prepare.call(connection, sql === 'BEGIN;' && !isOver ? 'BEGIN IMMEDIATE;' : sql);
    const wait = connection.pragma('busy_timeout', { simple: true });
    if (wait >= milliseconds) return;
    prolonged.set(connection, wait);
    connection.pragma(`busy_timeout = ${milliseconds}`);
  };
  const afterCreate = (connection, done) => {
    const opened = (error, ...rest) => {
      if (!error) prolong(connection);
      return done(error, ...rest);
    };
    return pool?.afterCreate ? pool.afterCreate(connection, opened) : opened(null, connection);
  };
  strapi.config.set('database.connection.pool', { ...pool, afterCreate });
  return () => {
    isOver = true;
    for (const [connection, wait] of prolonged) {
      const isOurs =
        connection.open && connection.pragma('busy_timeout', { simple: true }) === milliseconds;
      if (isOurs) connection.pragma(`busy_timeout = ${wait}`);
    }
  };
};

const create = async (work = NO_WORK, level = 'error') => {
  const { compileStrapi, createStrapi } = siteStrapi();
  // The host ends the process where TypeScript finds a mistake, with 1: a finding, to a command.
  const couldNotRun = () => {
    process.exitCode = 2;
  };
  process.once('exit', couldNotRun);
  const folders = await siteFolders(compileStrapi);
  process.off('exit', couldNotRun);
  const strapi = createStrapi({ ...folders, serveAdminPanel: false });
  // The site's messages while it loads are of no interest to most commands.
  if (level) strapi.log.level = level;
  strapi.config.set('switchboard-command', work);
  return strapi;
};

/**
 * Runs `work` with the site loaded: services are there, nothing listens.
 * @param does whether this process sends meanwhile
 */
const withSite = async (work, { sends = false } = {}) => {
  const strapi = await create({ ...NO_WORK, sends });
  const endWaits = waitForLocks(strapi);
  // The site's own scheduled tasks are its nodes' to run.
  strapi.config.set('server.cron.enabled', false);
  try {
    await strapi.load();
  } catch (error) {
    // The end of a half-loaded site may fail, too, for reasons that say nothing of the first.
    await strapi.destroy().catch(() => {});
    throw error;
  }
  // Posts have deadlines, and a wait would hold them up.
  if (sends) endWaits();
  try {
    return await work(strapi);
  } finally {
    await strapi.destroy();
  }
};

/**
 * Runs `work` with the site's types known and its database connected, and nothing changed in it: no
 * schema is synchronised and nothing is bootstrapped. The plugin need not be in the configuration.
 */
const withDatabase = async (work) => {
  const strapi = await create();
  waitForLocks(strapi);
  try {
    await strapi.register();
    await strapi.db.init({ models: [] });
    return await work(strapi);
  } finally {
    await strapi.db?.destroy();
  }
};

/** The site, created and not loaded, for a process that works until it is stopped. It logs as usual. */
const createWorkingSite = (work) => create(work, null);

/** The site, created and not loaded, for a command that only looks. */
const createSilentSite = () => create();

module.exports = { createSilentSite, createWorkingSite, waitForLocks, withDatabase, withSite };
