// npm run bench: what the plugin costs and carries, each number beside a baseline that is measured
// in the same run, as one table. docs/performance.md says what the rows mean.
//
// A row's home: every `bench/rows/*.mjs` and every `bench/pos*.mjs` exports
//
//   export const rows = (context) => [{ name, what, unit, budget, run }]
//
// - `name` is what `--only` matches, by its beginning; rows run in the order of files and arrays
// - `unit` is that of value and baseline, such as `ms` or `/s`; '' for plain counts
// - `budget` is `{ max: 1.25 }` or `{ min: 0.5 }`, of the ratio value / baseline; absent: for
//   information; `{ max: 5, of: 'value' }` is of the value itself; `{ min: 5, of: 'value', or: 0.9 }`
//   is met by either. `budget: (database) => …` where it is not the same on every database
// - `run()` resolves with `{ value, baseline, ratio?, note? }`, or with `{ skip: 'why' }`;
//   `compare()` of lib/measure.mjs interleaves the two and takes medians
//
// `rows` is called once a database with
//
//   context.database      'sqlite' | 'postgres' | 'mysql'
//   context.rounds        how often to repeat what is compared
//   context.site()        the site of this database, booted once and shared by all rows
//   context.inSite(name, args)   runs bench/site/<name>.js in the site's process
//   context.inServingSite(name, args)   the same, in a site with `webhooks.dispatch: false`
//   context.inSiteWith(options, work)   `work(run, site)` with `run(name, args)` in a site with those options
//   context.receiver()    a loopback receiver in a process of its own, shared by all rows
//   context.startSite(options)   another site, for a row that needs its own; it stops it itself
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { createContext } from './lib/context.mjs';
import { parseArguments, USAGE } from './lib/arguments.mjs';
import { judge, toTable } from './lib/table.mjs';
import { support } from './lib/support.mjs';

const HERE = import.meta.dirname;

// Sites as their owners start them, with what Node does by itself.
process.env.SITE_AS_USED = '1';

const rowFiles = () => {
  const below = (folder, test) =>
    fs
      .readdirSync(folder)
      .filter(test)
      .sort()
      .map((name) => path.join(folder, name));
  return [
    ...below(path.join(HERE, 'rows'), (name) => name.endsWith('.mjs')),
    ...below(HERE, (name) => /^pos.*\.mjs$/.test(name)),
  ];
};

const modules = async () => {
  const loaded = await Promise.all(rowFiles().map((file) => import(pathToFileURL(file).href)));
  return loaded.filter((module) => typeof module.rows === 'function');
};

const runRow = async (row, database) => {
  try {
    const result = await row.run();
    return judge(row, database, result);
  } catch (error) {
    process.stderr.write(`${error?.stack ?? error}\n`);
    return judge(row, database, { skip: 'failed', failed: true });
  }
};

const benchDatabase = async (database, options, say) => {
  const context = createContext({ database, rounds: options.rounds });
  const results = [];
  try {
    for (const module of await modules()) {
      for (const row of module.rows(context)) {
        if (options.only.length > 0 && !options.only.some((name) => row.name.startsWith(name)))
          continue;
        const started = Date.now();
        const result = await runRow(row, database);
        results.push(result);
        const seconds = ((Date.now() - started) / 1000).toFixed(1);
        say(`${database}: ${row.name} ${result.ratio?.toFixed(2) ?? result.skip} (${seconds} s)`);
      }
    }
  } finally {
    await context.close();
  }
  return results;
};

const main = async () => {
  const options = parseArguments(process.argv.slice(2));
  if (options.help) {
    console.log(USAGE);
    return;
  }
  const say = (line) => process.stderr.write(`${line}\n`);
  const reachable = support('databases').databases();
  const results = [];
  for (const database of options.databases ?? reachable) {
    if (!reachable.includes(database)) {
      say(`${database}: not reachable, left out`);
      continue;
    }
    results.push(...(await benchDatabase(database, options, say)));
  }
  console.log(options.json ? JSON.stringify(results, null, 2) : toTable(results));
  if (results.some(({ failed }) => failed)) process.exitCode = 1;
};

await main();
