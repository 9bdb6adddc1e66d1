#!/usr/bin/env node
'use strict';

/**
 * Works every stock level out anew from the ledger and reports where the stored one differs.
 * Strapi lets no plugin add a command of its own, so this is one: run it in the site's folder.
 *
 *   npx switchboard-stock-rebuild          report
 *   npx switchboard-stock-rebuild --mend   report, and set the stored levels right
 *
 * Ends with 0 where there is no difference left, 1 where there is one, 2 on a failure.
 */

const { createRequire } = require('node:module');
const path = require('node:path');

const say = (line) => process.stdout.write(`${line}\n`);
const complain = (line) => process.stderr.write(`${line}\n`);

const USAGE = 'Usage, in the folder of a Strapi site: switchboard-stock-rebuild [--mend]';

const loadSite = async () => {
  // The site's own Strapi, whatever copy this package might find.
  const { compileStrapi, createStrapi } = createRequire(path.resolve('package.json'))(
    '@strapi/strapi'
  );
  const strapi = createStrapi({ ...(await compileStrapi()), serveAdminPanel: false });
  // What the site has to say while it loads is not what was asked for.
  strapi.log.level = 'error';
  return strapi.load();
};

const main = async () => {
  const [flag, ...more] = process.argv.slice(2);
  if ((flag !== undefined && flag !== '--mend') || more.length > 0) {
    complain(USAGE);
    return 2;
  }
  const strapi = await loadSite();
  try {
    const mend = flag === '--mend';
    const report = await strapi.service('plugin::switchboard.stock-rebuild').rebuild({ mend });
    for (const { sku, location, quantity, should_be: right } of report.differences) {
      say(`${sku} at ${location}: is ${quantity}, should be ${right}${mend ? ' (mended)' : ''}`);
    }
    say(`${report.levels} levels, ${report.differences.length} differences.`);
    return report.differences.length === 0 || mend ? 0 : 1;
  } finally {
    await strapi.destroy();
  }
};

main().then(
  (code) => process.exit(code),
  (error) => {
    complain(error.message);
    process.exit(2);
  }
);
