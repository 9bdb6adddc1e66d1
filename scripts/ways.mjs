// npm run ways [-- folder]: which functions of which files run for one contact, from its write to its
// signed post, and for one sale, from its request to its stock. On a warm site on SQLite; a function
// counts that runs in each of four writes, more often than in as long a time in which nothing happens.
// `folder` is another checkout to look at.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from './lib/paths.mjs';
import { compileTraced } from './lib/traced-plugin.mjs';

const WRITES = 4;
/** Writes before those that count: what is done once is done by then. */
const WARMING = 4;
const IDLE_WINDOWS = 4;
/** From a write until all that follows from it has ended, in milliseconds. */
const WINDOW_MS = 1500;

const GROUND = ['runtime', 'config', 'observability', 'secrets', 'hooks', 'modules', 'database'];
/** Files of `net` that make the attempt do not count as ground. */
const ATTEMPT = /^(guard|http-client|.*transport.*)\.ts$/;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** True if the file belongs to the ground, which a reader learns once. */
export const isGround = (file) => {
  const [folder, name] = path.relative('server/src', file).split('/');
  if (folder === 'net') return !ATTEMPT.test(name);
  return GROUND.includes(folder);
};

const count = (calls) => {
  const counts = new Map();
  for (const call of calls) counts.set(call, (counts.get(call) ?? 0) + 1);
  return counts;
};

/**
 * The functions that ran for each write and not by themselves, in the order of their first call.
 * @param {string[][]} writes the calls of each
 * @param {string[][]} idle the calls of each window in which nothing happened
 * @returns {{ file: string, name: string, calls: number }[]}
 */
export const wayOf = (writes, idle) => {
  const counted = writes.map(count);
  const atRest = idle.map(count);
  const most = (call) => Math.max(0, ...atRest.map((counts) => counts.get(call) ?? 0));
  const least = (call) => Math.min(...counted.map((counts) => counts.get(call) ?? 0));
  return [...counted[0].keys()]
    .filter((call) => least(call) > most(call))
    .map((call) => {
      const [file, name] = call.split('|');
      return { file, name, calls: least(call) };
    });
};

/**
 * The two ways of a checkout.
 * @param {string} [source] its folder
 */
export const measureWays = async (source = ROOT) => {
  const target = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-ways-'));
  compileTraced(source, target);
  process.env.SWITCHBOARD_PATH = target;
  const { support } = await import('../bench/lib/support.mjs');
  const receiver = await support('receiver').startReceiver();
  const site = await support('site').startSite({
    database: 'sqlite',
    // Without threads, their work is traced in the site's own process.
    options: { webhooks: { threads: 0 } },
  });
  try {
    const calls = () => site.evaluate(() => globalThis.__calls.splice(0));
    const windowOf = async (work) => {
      await calls();
      await work();
      await pause(WINDOW_MS);
      return calls();
    };
    const repeat = async (times, work) => {
      const windows = [];
      for (let at = 0; at < times; at += 1) windows.push(await windowOf(work));
      return windows;
    };
    await site.evaluate(() => void (globalThis.__calls = []));
    const body = { name: 'r', url: receiver.url, events: ['contact.created'] };
    await site.request('POST', '/api/fw-crm/v1/webhooks', { body });
    const { createItem, createTill, saleBody } = support('../api/pos-till');
    const till = await createTill(site);
    await createItem(site, 'TEA', 1000);

    let contacts = 0;
    const contact = async () => {
      contacts += 1;
      await site.evaluate(
        ({ strapi }, email) =>
          strapi.documents('plugin::switchboard.contact').create({ data: { email } }),
        `${contacts}@example.test`
      );
      await receiver.waitFor(contacts);
    };
    const sale = async () => {
      const answer = await till.send('sale', saleBody([['TEA', 1]]));
      if (answer.status !== 202) throw new Error(`${answer.status} ${answer.text}`);
    };
    await repeat(WARMING, contact);
    await repeat(WARMING, sale);
    const idle = await repeat(IDLE_WINDOWS, async () => {});
    return {
      contact: wayOf(await repeat(WRITES, contact), idle),
      sale: wayOf(await repeat(WRITES, sale), idle),
    };
  } finally {
    await site.stop();
    await receiver.close();
    fs.rmSync(target, { recursive: true, force: true });
  }
};

/** Sums of a way: files outside the ground, their functions, files of the ground. */
export const sumOf = (way) => {
  const files = [...new Set(way.map(({ file }) => file))];
  return {
    files: files.filter((file) => !isGround(file)).length,
    functions: way.filter(({ file }) => !isGround(file)).length,
    ground: files.filter(isGround),
  };
};

const print = (title, way) => {
  const { files, functions, ground } = sumOf(way);
  const lines = [
    `${title}: ${files} files outside the ground, ${functions} functions in them; ${ground.length} files of the ground`,
  ];
  for (const [nth, file] of [...new Set(way.map((one) => one.file))].entries()) {
    const names = way.filter((one) => one.file === file).map(({ name }) => name);
    const where = path.relative('server/src', file);
    lines.push(
      `${String(nth + 1).padStart(3)} ${isGround(file) ? '(ground) ' : ''}${where}: ${names.join(', ')}`
    );
  }
  process.stdout.write(`${lines.join('\n')}\n\n`);
};

/** Files outside the ground, as ARCHITECTURE.md names them, in the order of their first call. */
export const filesOf = (way) =>
  [...new Set(way.map(({ file }) => file))]
    .filter((file) => !isGround(file))
    .map((file) => path.relative('server/src', file));

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { contact, sale } = await measureWays(path.resolve(process.argv[2] ?? ROOT));
  print('A contact, from its write to its post', contact);
  print('A sale, from its request to its stock', sale);
}
