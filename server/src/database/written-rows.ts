import type { Core, UID } from '@strapi/strapi';
import type { Knex } from 'knex';
import { randomDocumentId } from '../runtime/ids';
import { readNewest } from './transactions';

interface WrittenRow {
  id: number;
  documentId: string;
  publishedAt?: unknown;
}

export interface WriteEvent {
  action: string;
  model: { uid: string };
  params: { where?: unknown; filters?: unknown; _q?: unknown; data?: unknown };
}

/** The used part of the host's query builder, which it does not type. */
interface Query {
  state: { joins: unknown[] };
  processState(): void;
  forUpdate(): Query;
  first(): Query;
  execute(): Promise<unknown>;
}

const TRIES = 10;
/** More ids than this are written into the statement: servers limit the number of parameters. */
const MANY = 1000;

const and = (where: unknown, ...more: Where[]): Where => {
  const given = (where ?? {}) as Where;
  return { ...given, $and: [...((given.$and as unknown[] | undefined) ?? []), ...more] };
};

type Condition = Pick<WriteEvent['params'], 'where' | 'filters' | '_q'>;

/** The host's condition: `filters` and `_q` only if it deletes many. */
const conditionOf = ({ action, params: { where, filters, _q } }: WriteEvent): Condition =>
  action === 'beforeDeleteMany' ? { where, filters, _q } : { where };

const isOfOne = ({ action }: WriteEvent): boolean =>
  action === 'beforeUpdate' || action === 'beforeDelete';

/** The id that a condition names, and nothing else; null if it names rows in another way. */
export const idNamed = (where: unknown): number | string | null => {
  const { id, ...others } = (where ?? {}) as Where;
  const isOne = ['number', 'string'].includes(typeof id) && Object.keys(others).length === 0;
  return isOne ? (id as number | string) : null;
};

/** SQLite has one writer at a time: a write based on rows that another writer has changed since fails. */
const locksRows = (strapi: Core.Strapi): boolean => strapi.db.dialect.client !== 'sqlite';

/** A condition on other tables cannot be locked by: the rows are, and then it is asked again. */
const isPlain = (query: Query): boolean => {
  query.processState();
  return query.state.joins.length === 0;
};

const idsOf = (rows: readonly WrittenRow[]): number[] => rows.map(({ id }) => id);

const rowsOf = (query: Query): Promise<WrittenRow[]> => query.execute() as Promise<WrittenRow[]>;

class Rows {
  constructor(
    private readonly strapi: Core.Strapi,
    private readonly uid: string
  ) {}

  matching(condition: Condition, more?: object): Query {
    const { attributes } = this.strapi.db.metadata.get(this.uid);
    const select = ['id', 'documentId', 'publishedAt'].filter((name) => name in attributes);
    return this.strapi.db
      .queryBuilder(this.uid)
      .init({ ...condition, select, ...more } as never) as unknown as Query;
  }

  /** By their ids, so that two writers of the same rows wait, and never for each other. */
  inOrder(condition: Condition, limit?: number): Query {
    return this.matching(condition, { orderBy: { id: 'asc' }, ...(limit && { limit }) });
  }

  pin(ids: readonly number[]): Where {
    const { connection } = this.strapi.db;
    return { id: { $in: ids.length > MANY ? (connection as Knex).raw(ids.join(',')) : ids } };
  }

  lockIds(ids: readonly number[]): Promise<WrittenRow[]> {
    return rowsOf(this.inOrder({ where: this.pin(ids) }).forUpdate());
  }

  async lockMany(condition: Condition): Promise<WrittenRow[]> {
    const query = this.inOrder(condition);
    if (isPlain(query)) return rowsOf(query.forUpdate());
    const found = await rowsOf(query);
    if (found.length === 0 || !locksRows(this.strapi)) return found;
    const locked = await this.lockIds(idsOf(found));
    const again = { ...condition, where: and(condition.where, this.pin(idsOf(locked))) };
    return readNewest(this.strapi, () => rowsOf(this.inOrder(again)));
  }

  async lockFirst(condition: Condition): Promise<WrittenRow[]> {
    const first = (lock: boolean): Promise<WrittenRow | null> => {
      const query = this.matching(condition).first();
      if (lock) query.forUpdate();
      return readNewest(this.strapi, () => query.execute() as Promise<WrittenRow | null>);
    };
    const isAtOnce = !locksRows(this.strapi) || isPlain(this.matching(condition));
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const found = await first(isAtOnce);
      if (found && isAtOnce) return [found];
      if (!found) {
        // PostgreSQL finds none if the one that it waited for matches no more.
        if (!isAtOnce || !(await first(false))) return [];
        continue;
      }
      await this.lockIds([found.id]);
      const where = and(condition.where, { id: found.id });
      const [still] = await readNewest(this.strapi, () =>
        rowsOf(this.matching({ ...condition, where }))
      );
      // Another writer has changed it meanwhile, so a different row may be the first now.
      if (still) return [still];
    }
    return [];
  }
}

const lockAndPin = async (strapi: Core.Strapi, event: WriteEvent): Promise<WrittenRow[]> => {
  const { model, params } = event;
  const all = new Rows(strapi, model.uid);
  const condition = conditionOf(event);
  const isEmpty = Object.keys((params.where ?? {}) as object).length === 0;
  // The host refuses that.
  if (isOfOne(event) && isEmpty) return [];
  const rows = await (isOfOne(event) ? all.lockFirst(condition) : all.lockMany(condition));
  const pin = all.pin(idsOf(rows));
  if (isOfOne(event) || isPlain(all.matching(condition))) {
    params.where = and(params.where, pin);
  } else {
    // Next to a condition on other tables the host would take their ids for the row's own.
    params.where = pin;
    delete params.filters;
    delete params._q;
  }
  return rows;
};

const locked = new WeakMap<object, Promise<WrittenRow[]>>();

/**
 * Locks the rows a write is about to change, by ascending id until the transaction ends, and binds the write to them:
 * later reads see the last writer's values, and rows that match later stay unchanged. Call it once a write; it changes
 * the parameter copy of `listenToWrites`. Returns null if the write names one row by id, which the read locks.
 */
export const lockWritten = async (
  strapi: Core.Strapi,
  event: WriteEvent
): Promise<readonly WrittenRow[] | null> => {
  const { params } = event;
  const known = locked.get(params);
  if (known) return known;
  const { filters, _q } = conditionOf(event);
  if (!filters && !_q && idNamed(params.where) !== null) return null;
  const rows = lockAndPin(strapi, event);
  locked.set(params, rows);
  return rows;
};

/** As `lockWritten`, the row too that a write names by its id. */
export const writtenRows = async (strapi: Core.Strapi, event: WriteEvent) =>
  (await lockWritten(strapi, event)) ??
  new Rows(strapi, event.model.uid).lockIds([idNamed(event.params.where) as number]);

/** Locks all rows of documents. PostgreSQL misses those inserted while it waited, such as a newly published one. */
export const lockVersions = async (
  strapi: Core.Strapi,
  uid: string,
  documentIds: readonly string[]
): Promise<void> => {
  if (!locksRows(strapi)) return;
  const isBlind = strapi.db.dialect.client === 'postgres';
  for (const ids of inChunks(documentIds)) {
    const versions = () => new Rows(strapi, uid).inOrder({ where: { documentId: { $in: ids } } });
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const known = new Set(idsOf(await rowsOf(versions().forUpdate())));
      if (!isBlind) break;
      const there = await rowsOf(versions());
      if (there.every(({ id }) => known.has(id))) break;
    }
  }
};

/** Which of these documents have a row. Nothing is locked: MySQL would lock the gaps of the others. */
export const existingOf = async (
  strapi: Core.Strapi,
  uid: string,
  documentIds: readonly string[]
): Promise<string[]> => {
  const rows = await findInChunks(documentIds, (ids: string[]) =>
    rowsOf(new Rows(strapi, uid).matching({ where: { documentId: { $in: ids } } }))
  );
  return [...new Set(rows.map(({ documentId }) => documentId))];
};

const METHODS = ['create', 'createMany', 'update', 'updateMany', 'delete', 'deleteMany'] as const;
type Method = (typeof METHODS)[number];
type Params = Record<string, unknown>;

/** A write of the host's query engine; calls of the document service come to such writes. */
export interface HostWrite {
  method: Method;
  uid: string;
  params?: Params;
}

/**
 * Wraps every write of the host's query engine, for good; `around` gets the write and a function to run it, perhaps
 * with other parameters. It cannot be undone, because others may have wrapped the methods since.
 */
export const aroundWrites = (
  strapi: Core.Strapi,
  around: (write: HostWrite, run: (params?: Params) => Promise<unknown>) => Promise<unknown>
): void => {
  const manager = strapi.db.entityManager as unknown as Record<
    Method,
    (uid: string, params?: Params) => Promise<unknown>
  >;
  for (const method of METHODS) {
    const original = manager[method];
    manager[method] = (uid, params) =>
      around({ method, uid, params }, (given = params) => original.call(manager, uid, given));
  }
};

/** A call of the document service; the host types it more narrowly than it is. */
export interface DocumentCall {
  uid: string;
  action: string;
  params: { documentId?: string; status?: unknown; data?: Params };
}

export const DOCUMENT_WRITES: ReadonlySet<string> = new Set(
  'create update delete clone publish unpublish discardDraft'.split(' ')
);

/** Puts `around` about every call of the document service. */
export const aroundCalls = (
  strapi: Core.Strapi,
  around: (call: DocumentCall, run: () => Promise<unknown>) => Promise<unknown>
): void => {
  strapi.documents.use(
    (call, next) =>
      around(call as unknown as DocumentCall, async () => next()) as ReturnType<typeof next>
  );
};

const copyOf = (data: unknown): unknown => {
  if (Array.isArray(data)) return data.map(copyOf);
  return typeof data === 'object' && data !== null ? { ...data } : data;
};

/** By the host's database: the types whose writes work on a copy. */
const copied = new WeakMap<object, Set<string>>();

/**
 * Listens before or after writes. Each write works on a copy of the caller's input, so ids and dates that lifecycles
 * add do not appear in the caller's object, which it may reuse for the next row.
 */
export const listenToWrites = (
  strapi: Core.Strapi,
  models: readonly string[],
  listeners: Partial<
    Record<`${'before' | 'after'}${Capitalize<Method>}`, (event: never) => Promise<void> | void>
  >
): void => {
  const known = copied.get(strapi.db);
  const types = known ?? new Set<string>();
  for (const uid of models) types.add(uid);
  if (!known) {
    copied.set(strapi.db, types);
    aroundWrites(strapi, ({ uid, params }, run) => {
      if (!types.has(uid) || !params) return run();
      return run('data' in params ? { ...params, data: copyOf(params.data) } : { ...params });
    });
  }
  strapi.db.lifecycles.subscribe({ models: [...models], ...listeners } as never);
};

/** Listeners to writes of one row that listen to writes of many, too. */
export const ofOneOrMany = <Listeners extends object>(listeners: Listeners) => ({
  ...listeners,
  ...Object.fromEntries(Object.entries(listeners).map(([name, one]) => [`${name}Many`, one])),
});

/** Closes the database before lifecycles are cleared; the host's order would commit late writes without events. */
export const listenUntilClosed = ({ db }: Core.Strapi): void => {
  db.destroy = async () => {
    await db.connection.destroy();
    db.lifecycles.clear();
  };
};

export type Where = Record<string, unknown>;

/** How many rows a bulk write is read, compared and published at a time. */
const CHUNK = 200;

/** Parts of a long list: memory and statements do not grow with a bulk write. */
export const inChunks = <T>(all: readonly T[]): T[][] => {
  const chunks: T[][] = [];
  for (let at = 0; at < all.length; at += CHUNK) chunks.push(all.slice(at, at + CHUNK));
  return chunks;
};

/** The rows that a query finds for some values, each asked for once, in statements of bounded length. */
export const findInChunks = async <Row, Value = number>(
  values: Iterable<Value>,
  find: (some: Value[]) => PromiseLike<Row[]>
): Promise<Row[]> => {
  const rows: Row[] = [];
  for (const some of inChunks([...new Set(values)])) {
    for (const row of await find(some)) rows.push(row);
  }
  return rows;
};

/** Documents that match a condition now, in chunks (bounded memory). For rows about to be written; see `readNewest`. */
export async function* documentIdsOf(strapi: Core.Strapi, uid: string, params: Condition) {
  let last = 0;
  for (;;) {
    const after = { id: { $gt: last } };
    const where = params.where ? { $and: [params.where, after] } : after;
    const query = new Rows(strapi, uid).inOrder({ ...params, where }, CHUNK);
    const rows = await readNewest(strapi, () => rowsOf(query));
    const tail = rows.at(-1);
    if (!tail) return;
    yield [...new Set(rows.map(({ documentId }) => documentId))];
    if (rows.length < CHUNK) return;
    last = Number(tail.id);
  }
}

const HOST_ID = /^[a-z][a-z0-9]{23}$/;

/** True by what makes the document ids of a type, if they have the host's form. */
const hasHostForm = new WeakMap<() => string, boolean>();

/**
 * A new row gets its document id here, so that it is known without asking (MySQL tells none). It has the host's form,
 * without the hash that took a tenth of a bulk write, unless the site makes ids of another form.
 */
export const giveDocumentId = (strapi: Core.Strapi, uid: string, data: Record<string, unknown>) => {
  const attribute = strapi.db.metadata.get(uid).attributes.documentId as { default: () => string };
  const given = attribute.default;
  const isHosts = hasHostForm.get(given) ?? HOST_ID.test(given());
  hasHostForm.set(given, isHosts);
  const id = isHosts ? randomDocumentId() : given();
  data.documentId = id;
  return id;
};

const TEXT_TYPES = 'string text richtext email uid enumeration'.split(' ');
const SURROGATE = /[\ud800-\udfff]/;

/** True if what is given for a column is what is read back of it, as JSON has it. */
const isKept = (type: string, value: unknown): boolean => {
  if (value === null) return true;
  if (TEXT_TYPES.includes(type)) return typeof value === 'string' && !SURROGATE.test(value);
  if (type === 'integer') return Number.isSafeInteger(value);
  if (type === 'boolean') return typeof value === 'boolean';
  if (type === 'datetime') return value instanceof Date && value.getTime() >= 0;
  if (type !== 'json' || typeof value !== 'object') return false;
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
};

/** Columns of a row that was just inserted, by what was given for it; null: it has to be read. */
export const insertedRow = (
  strapi: Core.Strapi,
  { uid, columns }: { uid: string; columns: readonly string[] },
  data: Params
): Params | null => {
  // MySQL may be set to cut what is too long.
  if (strapi.db.dialect.client === 'mysql') return null;
  const { attributes } = strapi.db.metadata.get(uid);
  const row: Params = { documentId: data.documentId };
  for (const name of columns) {
    const shape = attributes[name] as { type: string; default?: unknown; column?: Params };
    const isFilled = shape.default !== undefined || shape.column?.defaultTo !== undefined;
    row[name] = data[name] === undefined && !isFilled ? null : data[name];
    if (!isKept(shape.type, row[name])) return null;
  }
  return row;
};

/** True if a document of a type has a row for each of its languages. */
export const isLocalized = (strapi: Core.Strapi, uid: string): boolean => {
  const { pluginOptions } = strapi.contentTypes[uid as UID.ContentType] as {
    pluginOptions?: { i18n?: { localized?: boolean } };
  };
  return pluginOptions?.i18n?.localized === true && Boolean(strapi.plugins.i18n);
};

export const defaultLocale = async (strapi: Core.Strapi): Promise<string> => {
  const locales = strapi.plugin('i18n').service('locales') as {
    getDefaultLocale(): Promise<string>;
  };
  return locales.getDefaultLocale();
};
