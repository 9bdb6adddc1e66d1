import { execFileSync } from 'node:child_process';
import Database from 'better-sqlite3';
import servers from '../../tests/support/servers.js';

const { SERVERS } = servers;

const literal = (value) => {
  if (value === null) return 'NULL';
  if (Buffer.isBuffer(value)) return `X'${value.toString('hex')}'`;
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
};

const quoted = (name) => `"${name.replaceAll('"', '""')}"`;

const dumpSqlite = (file) => {
  const database = new Database(file, { readonly: true });
  const objects = database
    .prepare(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    )
    .all();
  const lines = ['PRAGMA foreign_keys = OFF;', 'BEGIN;'];
  const tables = objects.filter(({ type }) => type === 'table');
  for (const { sql } of tables) lines.push(`${sql};`);
  for (const { name } of tables) {
    const statement = database.prepare(`SELECT * FROM ${quoted(name)}`).raw();
    for (const row of statement.iterate())
      lines.push(`INSERT INTO ${quoted(name)} VALUES (${row.map(literal).join(',')});`);
  }
  for (const { sql } of objects.filter(({ type }) => type !== 'table')) lines.push(`${sql};`);
  database.close();
  return [...lines, 'COMMIT;'].join('\n');
};

const run = (command, args, env) =>
  execFileSync(command, args, {
    env: { ...process.env, ...env },
    maxBuffer: 256 * 1024 * 1024,
  }).toString('utf8');

const dumpPostgres = (name) => {
  const { host, port, user, password } = SERVERS.postgres;
  const args = ['-h', host, '-p', String(port), '-U', user, '--no-owner', '--no-privileges'];
  const text = run('pg_dump', [...args, '--inserts', name], { PGPASSWORD: password });
  // For psql alone, and comments.
  return text.replaceAll(/^(\\|--|SET transaction_timeout).*\n/gm, '');
};

const dumpMysql = (name) => {
  const { host, port, user, password } = SERVERS.mysql;
  const args = ['-h', host, '-P', String(port), '-u', user, '--skip-comments', '--skip-triggers'];
  const text = run('mysqldump', [...args, '--skip-extended-insert', '--no-tablespaces', name], {
    MYSQL_PWD: password,
  });
  // Collations that the other server of the two does not know; the default one does.
  return text
    .replaceAll(/^(\/\*M!|LOCK TABLES|UNLOCK TABLES).*\n/gm, '')
    .replaceAll(/ COLLATE[ =]\w+/g, '');
};

/** A whole database as SQL text that its driver can execute in one go. */
export const dumpDatabase = (kind, name) => {
  const text = { sqlite: dumpSqlite, postgres: dumpPostgres, mysql: dumpMysql }[kind](name);
  return `${text.replaceAll(/\n{2,}/g, '\n').trim()}\n`;
};
