import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import path from 'node:path';
import { ROOT } from './paths';
import { SERVERS } from './servers';
import { isOfDeadProcess } from './tidy';

export type DatabaseKind = 'sqlite' | 'postgres' | 'mysql';

const env = process.env;

const PREFIX = 'swb_t_';

type Row = Record<string, unknown>;

const onPostgres = async (statements: string[], database = 'postgres'): Promise<Row[]> => {
  const { Client } = await import('pg');
  const { host, port, user, password } = SERVERS.postgres;
  const client = new Client({ host, port, user, password, database });
  await client.connect();
  try {
    let rows: Row[] = [];
    for (const statement of statements) rows = (await client.query(statement)).rows;
    return rows;
  } finally {
    await client.end();
  }
};

const onMysql = async (statements: string[], database?: string): Promise<Row[]> => {
  const { createConnection } = await import('mysql2/promise');
  const settings = { ...SERVERS.mysql, database, multipleStatements: true, charset: 'utf8mb4' };
  const connection = await createConnection(settings);
  try {
    let rows: Row[] = [];
    for (const statement of statements) rows = (await connection.query(statement))[0] as Row[];
    return rows;
  } finally {
    await connection.end();
  }
};

const onSqlite = async (statements: string[], file: string): Promise<Row[]> => {
  const { default: Sqlite } = await import('better-sqlite3');
  const connection = new Sqlite(file);
  try {
    let rows: Row[] = [];
    for (const statement of statements) {
      if (/^select/i.test(statement)) rows = connection.prepare(statement).all() as Row[];
      else connection.exec(statement);
    }
    return rows;
  } finally {
    connection.close();
  }
};

/**
 * Runs SQL on a test's database without a site: each text may hold several statements, and the rows
 * are the last one's (which must be a `SELECT` alone).
 */
export const runSql = (kind: DatabaseKind, name: string, ...statements: string[]): Promise<Row[]> =>
  ({ sqlite: onSqlite, postgres: onPostgres, mysql: onMysql })[kind](statements, name);

const TABLES = {
  sqlite: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  postgres: "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
  mysql: 'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
};

export const listTables = async (kind: DatabaseKind, name: string): Promise<string[]> =>
  (await runSql(kind, name, TABLES[kind])).map((row) => String(row.name)).sort();

/** The host writes this setting once a week, which may be while a test looks. */
const WRITTEN_WEEKLY = 'plugin_upload_metrics';
/** A running node updates `seen_at` in its row every ten seconds. */
const NODES = 'switchboard_nodes';

/** Every row of every table, each as JSON and in an order of its own, to compare databases by. */
export const readEverything = async (
  kind: DatabaseKind,
  name: string
): Promise<Record<string, string[]>> => {
  const quote = kind === 'mysql' ? '`' : '"';
  const everything: Record<string, string[]> = {};
  for (const table of await listTables(kind, name)) {
    const rows = await runSql(kind, name, `SELECT * FROM ${quote}${table}${quote}`);
    everything[table] = rows
      .filter(({ key }) => key !== WRITTEN_WEEKLY)
      .map((row) => JSON.stringify(table === NODES ? { ...row, seen_at: null } : row))
      .sort();
  }
  return everything;
};

/** The pid of the test process is in the name, so that what a killed run left can be told apart. */
const newName = (): string => `${PREFIX}${process.pid}_${crypto.randomBytes(4).toString('hex')}`;

const dropLeftovers = async (kind: 'postgres' | 'mysql'): Promise<void> => {
  const list =
    kind === 'postgres'
      ? `SELECT datname AS name FROM pg_database WHERE datname LIKE '${PREFIX}%'`
      : `SELECT schema_name AS name FROM information_schema.schemata WHERE schema_name LIKE '${PREFIX}%'`;
  const rows = await (kind === 'postgres' ? onPostgres : onMysql)([list]);
  for (const row of rows) {
    const name = String(row.name);
    if (isOfDeadProcess(name.slice(PREFIX.length).split('_')[0] ?? ''))
      await dropDatabase(kind, name).catch(() => {});
  }
};

/** What the server commits is there for everybody at once, on its disk a moment later: none is killed here. */
const quickCommits = (name: string): string =>
  `ALTER DATABASE ${name} SET synchronous_commit = ${process.env.SITE_AS_USED === '1' ? 'on' : 'off'}`;

const tidied = new Set<string>();

/** Makes an empty database on a server, in place of one of that name, and resolves with the name. */
export const createDatabase = async (
  kind: 'postgres' | 'mysql',
  name: string = newName()
): Promise<string> => {
  if (!tidied.has(kind)) {
    tidied.add(kind);
    await dropLeftovers(kind);
  }
  await dropDatabase(kind, name);
  if (kind === 'postgres') await onPostgres([`CREATE DATABASE ${name}`, quickCommits(name)]);
  else await onMysql([`CREATE DATABASE ${name} CHARACTER SET utf8mb4`]);
  return name;
};

/** Columns that hold values of their own; the server takes none for those that it works out itself. */
const columnsOf = async (name: string, table: string): Promise<string> => {
  const found = await onMysql([
    `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = '${name}'
       AND table_name = '${table}' AND extra NOT LIKE '%VIRTUAL GENERATED%' ORDER BY ordinal_position`,
  ]);
  return found.map((row) => `\`${String(row.name)}\``).join(', ');
};

/** What makes a copy of a database, run in an empty one; nothing where the database has its own way. */
export const statementsOf = async (kind: DatabaseKind, name: string): Promise<string[]> => {
  if (kind !== 'mysql') return [];
  const statements = ['SET FOREIGN_KEY_CHECKS = 0'];
  for (const table of await listTables(kind, name)) {
    const [shown] = await onMysql([`SHOW CREATE TABLE \`${table}\``], name);
    statements.push(String(shown?.['Create Table']));
    const columns = await columnsOf(name, table);
    statements.push(
      `INSERT INTO \`${table}\` (${columns}) SELECT ${columns} FROM ${name}.\`${table}\``
    );
  }
  return statements;
};

/**
 * Makes a copy of a database that no site is using, and resolves with its name.
 * @param file where a copy of a SQLite database is put
 */
export const createDatabaseLike = async (
  kind: DatabaseKind,
  from: { databaseName: string; statements: string[] },
  file: string
): Promise<string> => {
  if (kind === 'sqlite') {
    await onSqlite([`VACUUM INTO '${file.replaceAll("'", "''")}'`], from.databaseName);
    return file;
  }
  const name = newName();
  if (kind === 'postgres') {
    // The default since version 15 reads and logs each page: four times the processor time.
    const [server] = await onPostgres(["SELECT current_setting('server_version_num') AS version"]);
    const strategy = Number(server?.version) >= 150_000 ? 'STRATEGY file_copy' : '';
    const create = `CREATE DATABASE ${name} TEMPLATE ${from.databaseName} ${strategy}`;
    await onPostgres([create, quickCommits(name)]);
  } else {
    await createDatabase(kind, name);
    await onMysql(from.statements, name);
  }
  return name;
};

export const dropDatabase = async (kind: 'postgres' | 'mysql', name: string): Promise<void> => {
  if (kind === 'postgres') await onPostgres([`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`]);
  else await onMysql([`DROP DATABASE IF EXISTS ${name}`]);
};

/** The environment that tests/site/config/database.js reads. */
export const databaseEnv = (kind: DatabaseKind, name: string): Record<string, string> => {
  if (kind === 'sqlite') return { DATABASE_CLIENT: 'sqlite', DATABASE_FILENAME: name };
  const server = SERVERS[kind];
  return {
    DATABASE_CLIENT: kind,
    DATABASE_HOST: server.host,
    DATABASE_PORT: String(server.port),
    DATABASE_USERNAME: server.user,
    DATABASE_PASSWORD: server.password,
    DATABASE_NAME: name,
  };
};

// Jest wants to know its suites before anything asynchronous can run.
const isReachable = (kind: 'postgres' | 'mysql'): boolean =>
  spawnSync(process.execPath, [path.join(ROOT, 'tests/support/reachable.js'), kind], {
    timeout: 8000,
  }).status === 0;

let reachable: DatabaseKind[] | undefined;

/**
 * The databases to run a suite on: `describe.each(databases())`. SQLite is always there; the
 * servers where they can be reached. `TEST_DATABASES=sqlite,mysql` narrows the list. With
 * `REQUIRE_ALL=1` nothing is left out, so a suite fails where a server is missing.
 */
export const databases = (): DatabaseKind[] => {
  if (reachable) return reachable;
  const known: DatabaseKind[] = ['sqlite', 'postgres', 'mysql'];
  const wanted = env.TEST_DATABASES
    ? known.filter((kind) => env.TEST_DATABASES!.split(',').includes(kind))
    : known;
  reachable = wanted.filter(
    (kind) => kind === 'sqlite' || env.REQUIRE_ALL === '1' || isReachable(kind)
  );
  return reachable;
};

/** Those of `databases()` that two processes on two machines could share. */
export const serverDatabases = (): ('postgres' | 'mysql')[] =>
  databases().filter((kind): kind is 'postgres' | 'mysql' => kind !== 'sqlite');

/**
 * The first of `databases()`, SQLite where nothing narrows them: for what has no statement of its own,
 * so that another database could only fail for what is tested on all of them. `TEST_EVERY_DATABASE=1`
 * runs it on all.
 */
export const anyDatabase = (): DatabaseKind[] =>
  env.TEST_EVERY_DATABASE === '1' ? databases() : databases().slice(0, 1);

/** The first of `serverDatabases()`: for what several processes do together that has no statement of its own. */
export const anyServer = (): ('postgres' | 'mysql')[] =>
  env.TEST_EVERY_DATABASE === '1' ? serverDatabases() : serverDatabases().slice(0, 1);

const notHere = Object.assign(() => {}, { each: () => () => {} }) as unknown as jest.It;

/**
 * `it` on the first of the databases alone: for a test that has no statement of its own, beside others of
 * its site that have.
 */
export const itOnce = (
  kind: DatabaseKind,
  first: readonly DatabaseKind[] = anyDatabase()
): jest.It => (first.includes(kind) ? it : notHere);

/** `describe.each` refuses an empty list; this skips, visibly, where there is nothing to run on. */
export const describeEach = (
  kinds: readonly DatabaseKind[],
  name: string,
  body: (kind: DatabaseKind) => void
): void => {
  if (kinds.length === 0) {
    describe.skip(`${name} (no database server reachable)`, () => {
      it('needs a database server', () => {});
    });
    return;
  }
  for (const kind of kinds) describe(`${name} [${kind}]`, () => body(kind));
};
