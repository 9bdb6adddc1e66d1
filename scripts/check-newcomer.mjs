// Follows a newcomer with nothing but the packed tarball and the pages in it: a new TypeScript
// project and a new JavaScript project are made as Strapi's own command makes them, the README's
// blocks are run in them as they stand, and four people do what they came for: the site's owner (a
// signed event arrives and verifies), a shop (a sale moves stock), an integrator (the package's own
// receiver) and a plugin's author (the event of a plugin made from the template).
// The TypeScript project is developed, then built with the author's plugin and started as a live site, which
// refuses to post to a private address. The JavaScript project is a live site that allows them: it goes on
// with what the other one has installed and with the admin panel that it has built.
// Usage: node scripts/check-newcomer.mjs [--keep] [--strapi newest|<version>]
// Without --strapi it is the version that the repository is tested with; `newest` is the newest 5.x that
// the registry has whole, in a TypeScript project alone.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { checkTypes } from './lib/check-types.mjs';
import { pagesOf } from './lib/newcomer/blocks.mjs';
import * as programs from './lib/newcomer/programs.mjs';
import * as projects from './lib/newcomer/project.mjs';
import * as sites from './lib/newcomer/site.mjs';
import * as tasks from './lib/newcomer/tasks.mjs';
import { findNewestStrapi } from './lib/newest-strapi.mjs';
import { ROOT } from './lib/paths.mjs';

const { values: options } = parseArgs({
  options: { keep: { type: 'boolean' }, strapi: { type: 'string' } },
});
const strapi =
  options.strapi === 'newest'
    ? findNewestStrapi(projects.PINNED)
    : (options.strapi ?? projects.PINNED);
if (options.strapi === 'newest' && strapi === projects.PINNED) {
  console.log(`[newcomer] ${strapi} is the newest Strapi 5 that the registry has whole:`);
  console.log('[newcomer] that is the version which the check without --strapi tries.');
  console.log('1 passed, 0 failed');
  process.exit(0);
}

const workspace = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-newcomer-'));
const readme = fs.readFileSync(path.join(ROOT, 'README.md'), 'utf8');
const began = Date.now();
const results = [];

const say = (text) =>
  console.log(`[newcomer ${Math.round((Date.now() - began) / 1000)} s] ${text}`);

/** A step that counts; the ones after it still run where they can. */
const step = async (name, work) => {
  say(name);
  try {
    const answer = await work();
    results.push(true);
    return answer;
  } catch (error) {
    results.push(false);
    say(`FAILED: ${name}: ${error.stack ?? error}`);
    return undefined;
  }
};

/** A project that has the package and what the pages say to add, in the words of `tasks`. */
const settle = async (project, extension) => {
  const pages = pagesOf(project);
  projects.addEntries(project, pages.toAdd('docs/install.md', extension));
  projects.shell(pages.toRun('docs/install.md', 'make a key'), project);
  const sitePort = await programs.freePort();
  const url = `http://localhost:${sitePort}`;
  projects.setEnvironment(project, { PORT: sitePort, PUBLIC_URL: url });
  return { project, extension, pages, sitePort, url, port: await programs.freePort() };
};

const mustSay = (site, text, holds = true) => {
  if (site.output().includes(text) === holds) return;
  throw new Error(`the log ${holds ? 'lacks' : 'has'} "${text}":\n${site.output().slice(-5000)}`);
};

const startSite = ({ project, sitePort }, command) => sites.startSite(command, project, sitePort);

/** Checks the author's plugin on a site that is started with it. */
const asAuthor = async (person, site, command, isGenuine) => {
  const before = await tasks.eventNames(person);
  const receiver = await tasks.awaitPlugin(person, isGenuine);
  try {
    await site.stop();
    tasks.createPlugin(person);
    const restarted = await startSite(person, command);
    const names = await tasks.pluginEvents(person, before);
    await tasks.pluginEventArrives(receiver, names);
    await restarted.stop();
  } finally {
    await receiver.close();
  }
};

/**
 * Three of the four, one after the other, on a site that `command` starts and whose log has `line`.
 * @returns {Promise<object | undefined>} what the author needs, who comes last; undefined without a webhook
 */
const everybodyElse = async (newcomer, command, line, language) => {
  const site = await step(`${language}: ${command}`, async () => {
    const started = await startSite(newcomer, command);
    mustSay(started, line);
    mustSay(started, 'WAL', false);
    return started;
  });
  if (!site) return undefined;
  const person = { ...newcomer, accounts: await sites.makeAccounts(newcomer.url) };
  const webhook = await step(`${language}: the site's owner`, () => tasks.asOwner(person));
  if (!webhook) return undefined;
  await step(`${language}: the integrator`, () => tasks.asIntegrator(person, webhook));
  await step(`${language}: the shop`, () => tasks.asShop(person));
  return { site, person, isGenuine: webhook.isGenuine };
};

/** Both lines of the page: what builds, and what starts. */
const production = ({ pages }) =>
  pages.toRun('docs/install.md', 'build and start').trim().split('\n');

const mustServePanel = async (url) => {
  const page = await fetch(`${url}/admin`);
  if (!page.ok) throw new Error(`GET /admin: ${page.status}`);
};

/** On the site that was under development: its author's plugin goes live with it, and is compiled with it. */
const goLive = async (person, site) => {
  const before = await tasks.eventNames(person);
  const webhook = await tasks.subscribe(person);
  await site.stop();
  tasks.createPlugin(person);
  const live = await step('TypeScript: as a live site', async () => {
    const [build, start] = production(person);
    projects.shell(build, person.project);
    const started = await startSite(person, start);
    mustSay(started, 'private addresses are refused');
    await mustServePanel(person.url);
    return started;
  });
  if (!live) return;
  await step("TypeScript: the plugin's author", async () => {
    const names = await tasks.pluginEvents(person, before);
    await tasks.pluginEventIsRefused(person, webhook, names);
  });
  // Nothing is asked of the site after this, which takes longer than a connection is kept.
  await step('TypeScript: the doctor', () => {
    const doctor = person.pages.toRun('README.md', 'see whether all is well');
    say(projects.shell(doctor, person.project, { NODE_ENV: 'production' }).trim());
  });
};

const inTypeScript = async (project) => {
  const newcomer = await settle(project, '.ts');
  await step('TypeScript: the types of the package', () => {
    const faults = checkTypes(project);
    if (faults.length > 0) throw new Error(faults.join('\n'));
  });
  const developed = await everybodyElse(
    newcomer,
    'npm run develop',
    'private addresses are open',
    'TypeScript'
  );
  if (developed) await goLive(developed.person, developed.site);
};

/** An older project, which has no key yet, as a live site whose receivers are in its own network. */
const inJavaScript = async (project) => {
  projects.withoutKey(project, '.js');
  const newcomer = await settle(project, '.js');
  projects.editFile(project, 'config/plugins.js', (text) =>
    text.replace('config: {},', "config: { webhooks: { allowPrivateNetworks: ['127.0.0.0/8'] } },")
  );
  const start = production(newcomer)[1];
  const line = 'allowPrivateNetworks allows 127.0.0.0/8';
  const live = await everybodyElse(newcomer, start, line, 'JavaScript');
  if (!live) return;
  await step("JavaScript: the plugin's author", async () => {
    await mustServePanel(newcomer.url);
    await asAuthor(live.person, live.site, start, live.isGenuine);
  });
};

/** An error between steps counts as one failed step, and ends only this attempt. */
const attempt = async (work) => {
  try {
    await work();
  } catch (error) {
    results.push(false);
    say(`FAILED: ${error.stack ?? error}`);
  } finally {
    await programs.stopAll();
  }
};

const installed = await step(`new projects of Strapi ${strapi} with the packed tarball`, () => {
  const tarball = projects.pack(workspace);
  const languages = options.strapi === 'newest' ? ['typescript'] : ['typescript', 'javascript'];
  const created = projects.createProjects(workspace, languages, strapi);
  say('installing');
  projects.install(created.typescript, tarball, readme);
  return created;
});
/** Packages that a site may have already: the plugin is installed next to each. */
const BESIDE = [
  ['bullmq@5', 'ioredis@5'],
  ['bullmq@6', 'ioredis@6'],
];

if (installed) {
  for (const packages of BESIDE)
    await step(`beside ${packages.join(' and ')}`, () =>
      projects.resolveBeside(installed.typescript, packages)
    );
  const { typescript, javascript } = installed;
  await attempt(() => inTypeScript(typescript));
  if (javascript)
    await attempt(async () => {
      projects.handOver(typescript, javascript);
      await inJavaScript(javascript);
    });
}

if (!options.keep) projects.remove(workspace);
else say(`kept in ${workspace}`);
const passed = results.filter(Boolean).length;
console.log(`${passed} passed, ${results.length - passed} failed`);
process.exit(passed > 0 && passed === results.length ? 0 : 1);
