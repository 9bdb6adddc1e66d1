import { AsyncLocalStorage } from 'node:async_hooks';
import type { Core } from '@strapi/strapi';
import { knex, type Knex } from 'knex';
import type { DatabaseKind } from './databases';
import { SERVERS } from './servers';
import { type App, appOf } from '../../server/src/app';
import { rowsOf } from '../../server/src/database/connection';
import { ensureTables, type PlainTable } from '../../server/src/database/tables/plain-tables';
import { purchasesTable } from '../../server/src/pos/customers';
import { itemSalesTable, salesTable } from '../../server/src/pos/sales-figures';
import {
  connectionType,
  posClosingTable,
  posEventTable,
  posMappedLineTable,
  posMappingTable,
  posWaitTable,
  recordQueueTable,
} from '../../server/src/pos/tables';
import {
  catalogueHeadTable,
  catalogueTable,
  changesTable,
  documentTable,
  epochsTable,
  itemTable,
  levelTable,
  locationTable,
  movementTable,
  retiredSkusTable,
  trialCountTable,
} from '../../server/src/stock/tables';
import { Publisher } from '../../server/src/webhooks/publish';
import {
  attemptsTable,
  deliveryOwnColumns,
  deliveryType,
  deliveryOrderTable,
  deliveryQueueTable,
  deliverySlotsTable,
  messageType,
  recoveriesTable,
  recoveryItemsTable,
  webhookOwnColumns,
  webhookLocksTable,
  webhookType,
} from '../../server/src/webhooks/tables';
import { rollupsTable, totalsTable } from '../../server/src/webhooks/figures/rollups';
import { journalTable, replaysTable } from '../../server/src/webhooks/journal';
import { subscriptionsTable } from '../../server/src/webhooks/subscriptions';
import { sleep } from './wait';

/** What of the host a delivery and a till's record need, in this process: no HTTP, no admin. */
export interface SmallSite {
  app: App;
  strapi: Core.Strapi;
  connection: Knex;
  /** What was logged so far, of all levels, without the level. */
  lines: string[];
  close(): Promise<void>;
}

interface Open {
  trx: Knex.Transaction;
  callbacks: (() => void)[];
}

/** Where such a site keeps its rows; a SQLite in memory where none is given. */
export interface SmallDatabase {
  kind: DatabaseKind;
  /** Of a SQLite its file. */
  name: string;
  /** Another process, so to speak, made the tables. */
  hasTables?: boolean;
}

interface SqliteConnection {
  prepare(statement: string): unknown;
}

/** The query builder prepares each statement anew, which costs more than most of them do. */
const prepareOnce = (connection: SqliteConnection): void => {
  const prepare = connection.prepare.bind(connection);
  const prepared = new Map<string, unknown>();
  connection.prepare = (statement) => {
    const known = prepared.get(statement) ?? prepare(statement);
    prepared.set(statement, known);
    return known;
  };
};

const connect = ({ kind, name }: SmallDatabase): Knex => {
  if (kind === 'sqlite') {
    return knex({
      client: 'better-sqlite3',
      connection: { filename: name },
      useNullAsDefault: true,
      pool: {
        ...{ min: 1, max: 1 },
        afterCreate(connection: SqliteConnection, done: (error: null) => void) {
          prepareOnce(connection);
          done(null);
        },
      },
    });
  }
  const { host, port, user, password } = SERVERS[kind];
  return knex({
    client: kind === 'postgres' ? 'pg' : 'mysql2',
    connection: { host, port, user, password, database: name },
    pool: { min: 0, max: 5 },
  });
};

const INDEXES: Record<DatabaseKind, string> = {
  sqlite: 'SELECT name FROM pragma_index_list(?)',
  postgres: 'SELECT indexname AS name FROM pg_indexes WHERE tablename = ?',
  mysql:
    'SELECT DISTINCT index_name AS name FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ?',
};

const createDatabase = (connection: Knex, client: DatabaseKind) => {
  const current = new AsyncLocalStorage<Open>();
  const toolsOf = ({ trx, callbacks }: Open) => ({
    trx,
    onCommit: (callback: () => void) => void callbacks.push(callback),
  });
  return {
    connection,
    dialect: {
      client,
      schemaInspector: {
        getIndexes: async (name: string) =>
          rowsOf<{ name: string }>(await connection.raw(INDEXES[client], [name])),
      },
    },
    getSchemaName: () => undefined,
    getSchemaConnection: () => connection.schema,
    inTransaction: () => current.getStore() !== undefined,
    async transaction(work?: (tools: object) => Promise<unknown>) {
      const open = current.getStore();
      if (!work) return { get: () => open?.trx };
      if (open) return work(toolsOf(open));
      const callbacks: (() => void)[] = [];
      const result = await connection.transaction((trx) =>
        current.run({ trx, callbacks }, () => work(toolsOf({ trx, callbacks })))
      );
      for (const callback of callbacks) callback();
      return result;
    },
  };
};

interface Schema {
  collectionName: string;
  attributes: Record<string, { type: string; columnName?: string }>;
}

/** The columns that the host would make for a content type. */
const asPlainTable = ({ schema }: { schema: unknown }): PlainTable => {
  const { collectionName, attributes } = schema as Schema;
  const columns = Object.entries(attributes).flatMap(([name, { type, columnName = name }]) => {
    if (type === 'relation') return [];
    const known = { integer: 'biginteger', boolean: 'boolean' } as const;
    return [[columnName, { type: known[type as keyof typeof known] ?? 'text' }] as const];
  });
  return {
    tableName: collectionName,
    attributes: {
      id: { type: 'increments' },
      document_id: { type: 'string' },
      ...Object.fromEntries(columns),
    },
  };
};

const TABLES: readonly PlainTable[] = [
  ...[webhookType, messageType, deliveryType, connectionType].map(asPlainTable),
  deliveryOwnColumns,
  webhookOwnColumns,
  subscriptionsTable,
  attemptsTable,
  rollupsTable,
  deliveryQueueTable,
  deliveryOrderTable,
  deliverySlotsTable,
  webhookLocksTable,
  totalsTable,
  journalTable,
  replaysTable,
  recoveriesTable,
  recoveryItemsTable,
  posEventTable,
  recordQueueTable,
  posWaitTable,
  posClosingTable,
  salesTable,
  itemSalesTable,
  purchasesTable,
  posMappingTable,
  posMappedLineTable,
  itemTable,
  levelTable,
  locationTable,
  movementTable,
  documentTable,
  changesTable,
  catalogueTable,
  catalogueHeadTable,
  epochsTable,
  retiredSkusTable,
  trialCountTable,
  {
    tableName: 'strapi_core_store_settings',
    attributes: { id: { type: 'increments' }, key: { type: 'string' }, value: { type: 'text' } },
  },
];

/** @param level of the host's log; `http` is what it has where nobody sets one */
export const startSmallSite = async (
  options: Record<string, unknown> = {},
  level: 'debug' | 'http' = 'debug',
  database: SmallDatabase = { kind: 'sqlite', name: ':memory:' }
): Promise<SmallSite> => {
  const connection = connect(database);
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  const container = new Map<string, unknown>([['hooks', new Map<string, unknown>()]]);
  const settings: Record<string, unknown> = {
    'plugin::switchboard': options,
    'admin.secrets.encryptionKey': 'key',
    'server.absoluteUrl': 'https://example.com',
  };
  const services: Record<string, unknown> = {
    'admin::encryption': { encrypt: (value: string) => value, decrypt: (value: string) => value },
  };
  const tableOf = { 'plugin::switchboard.webhook': 'switchboard_webhooks' } as const;
  const db = createDatabase(connection, database.kind);
  const strapi = {
    db,
    log: {
      isDebugEnabled: () => level === 'debug',
      debug: level === 'debug' ? say : () => undefined,
      info: say,
      warn: say,
      error: say,
    },
    config: { get: (key: string) => settings[key] },
    store: () => ({ get: async () => null, set: async () => undefined }),
    has: (name: string) => container.has(name),
    add: (name: string, value: unknown) => void container.set(name, value),
    get: (name: string) => container.get(name),
    service: (uid: string) => services[uid],
    plugin: () => undefined,
    eventHub: { emit: async () => undefined },
    documents: (uid: keyof typeof tableOf) => ({
      async update({ documentId, data }: { documentId: string; data: object }) {
        const { trx } = (await db.transaction(async (tools) => tools)) as { trx: Knex };
        await trx(tableOf[uid]).where({ document_id: documentId }).update(data);
      },
    }),
  } as unknown as Core.Strapi;
  const app = appOf(strapi);
  await app.prepare();
  services['plugin::switchboard.publisher'] = new Publisher(app);
  app.hooks.register();
  if (!database.hasTables) await ensureTables(strapi, TABLES);
  await app.site.load();
  return { app, strapi, connection, lines, close: () => connection.destroy() };
};

/** How far the clocks of two nodes may be from each other; a test that sets one sets it further away. */
const CLOCKS_DIFFER_MS = 500;

/**
 * Waits until a node's clock has reached what the others' say: some milliseconds, for each reads the
 * database's by itself. What one of them has made due now is due for it then, too.
 */
export const catchUp = async (
  node: { now(): number },
  others: readonly { now(): number }[]
): Promise<void> => {
  const behind = Math.max(...others.map((other) => other.now())) - node.now();
  if (behind > 0 && behind < CLOCKS_DIFFER_MS) await sleep(behind + 1);
};
