// Makes the databases that later versions are tested with: one of this version for each kind.
//
//   node scripts/make-database-fixture.mjs            all three
//   node scripts/make-database-fixture.mjs sqlite     one
//
// Each release adds its own (.changeset/README.md). Needs pg_dump and mysqldump (or mariadb-dump under
// that name), and the servers that the tests use.
import fs from 'node:fs';
import path from 'node:path';
import { support } from '../bench/lib/support.mjs';
import { dumpDatabase } from './lib/fixture-dump.mjs';
import { EMPTY, fillSite, firstOptions, RECEIVER_URL } from './lib/fixture-world.mjs';
import { ROOT } from './lib/paths.mjs';

const { version } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
const TARGET = path.join(ROOT, 'tests/fixtures/databases', version);

/** A table that is new, and that nobody thought of in scripts/lib/fixture-world.mjs. */
const refuseEmpty = async (kind, name) => {
  const tables = await support('databases').readEverything(kind, name);
  const empty = Object.keys(tables).filter(
    (table) =>
      table.startsWith('switchboard_') && tables[table].length === 0 && !EMPTY.includes(table)
  );
  if (empty.length > 0) throw new Error(`${kind}: nothing is in ${empty.join(', ')}`);
};

const make = async (kind) => {
  const { startSite } = support('site');
  const receiver = await support('receiver').startReceiver();
  const site = await startSite({ database: kind, options: firstOptions });
  try {
    const notes = await fillSite(site, receiver);
    await site.kill('SIGTERM');
    await refuseEmpty(kind, site.databaseName);
    const text = dumpDatabase(kind, site.databaseName).replaceAll(receiver.url, RECEIVER_URL);
    fs.mkdirSync(TARGET, { recursive: true });
    fs.writeFileSync(path.join(TARGET, `${kind}.sql`), text);
    const written = JSON.stringify(notes, null, 2).replaceAll(receiver.url, RECEIVER_URL);
    fs.writeFileSync(path.join(TARGET, `${kind}.json`), `${written}\n`);
    process.stdout.write(`${kind}: ${(text.length / 1024).toFixed(0)} kB\n`);
  } finally {
    await site.stop();
    await receiver.close();
  }
};

const chosen = process.argv.slice(2);
const kinds = chosen.length > 0 ? chosen : ['sqlite', 'postgres', 'mysql'];
for (const kind of kinds) await make(kind);
