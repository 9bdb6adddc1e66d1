'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');

const siteStrapi = () => {
  try {
    // The site's own Strapi, whatever copy this package might find.
    return createRequire(path.resolve('package.json'))('@strapi/strapi');
  } catch {
    throw new Error(`This is not the folder of a Strapi site: ${process.cwd()}`);
  }
};

const create = async () => {
  const { compileStrapi, createStrapi } = siteStrapi();
  // The host ends the process where TypeScript finds a mistake, with 1: a finding, to a command.
  const couldNotRun = () => {
    process.exitCode = 2;
  };
  process.once('exit', couldNotRun);
  const folders = await compileStrapi();
  process.off('exit', couldNotRun);
  const strapi = createStrapi({ ...folders, serveAdminPanel: false });
  // What the site has to say while it loads is not what was asked for.
  strapi.log.level = 'error';
  // A command does what it was asked: nothing is sent or applied by its process.
  strapi.config.set('switchboard-command', true);
  return strapi;
};

/** Runs `work` with the site loaded: services are there, nothing listens. */
const withSite = async (work) => {
  const strapi = await create();
  try {
    await strapi.load();
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
  try {
    await strapi.register();
    await strapi.db.init({ models: [] });
    return await work(strapi);
  } finally {
    await strapi.db?.destroy();
  }
};

module.exports = { withDatabase, withSite };
