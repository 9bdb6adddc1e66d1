import { AsyncLocalStorage } from 'node:async_hooks';
import {
  copyParamsOf,
  documentIdsOf,
  existingOf,
  giveDocumentId,
  idNamed,
  inChunks,
  listenUntilClosed,
  lockVersions,
  lockWritten,
  type Where,
  type WriteEvent,
} from '../database/written-rows';
import { inTurn, readNewest } from '../database/transactions';
import { isSilenced } from '../webhooks/events-service';
import { getPublisher } from '../webhooks/publish';
import {
  currentSubscriptions,
  type PrefetchedSubscriptions,
  prefetchSubscriptions,
  type Subscriptions,
} from '../webhooks/subscriptions';
import {
  derive,
  type EntryStatus,
  type EventAboutEntry,
  eventOf,
  FILE,
  serialize,
  type Version,
} from './rules';
import { type EntryType, type EntryTypes, getEntryTypes } from './types';
import type { App } from '../app';

interface Row extends Record<string, unknown> {
  id: number;
  documentId: string;
  locale?: string | null;
  publishedAt?: unknown;
}

const statusOf = (type: EntryType, { publishedAt }: Row): EntryStatus =>
  type.draftAndPublish && (publishedAt ?? null) === null ? 'draft' : 'published';

/** Whether receivers hear of drafts of the type: else nothing of them is read. */
const seesDrafts = ({ draftAndPublish, drafts }: EntryType): boolean => !draftAndPublish || drafts;

const localeOf = ({ localized }: EntryType, { locale }: Row): string | null =>
  localized ? (locale ?? null) : null;

/** By document id. */
type Versions = Map<string, Version[]>;

/**
 * Reads documents in all versions that receivers hear of, without the host's read lifecycles. `lock`:
 * until the transaction ends nobody else may change them, so that what differs is this write's doing.
 */
const readVersions = async (
  app: App,
  type: EntryType,
  documentIds: readonly string[],
  { lock = false }: { lock?: boolean } = {}
): Promise<Versions> => {
  // Also those that nobody hears of: two that publish a draft for the first time have no other in common.
  if (lock && (type.draftAndPublish || type.localized)) {
    await lockVersions(app.strapi, type.uid, documentIds);
  }
  const where: Where = { documentId: { $in: [...documentIds] } };
  if (!seesDrafts(type)) where.publishedAt = { $notNull: true };
  const query = app.strapi.db
    .queryBuilder(type.uid)
    .init({ where, populate: type.populate, orderBy: { id: 'asc' } });
  if (lock) query.forUpdate();
  const versions: Versions = new Map();
  for (const row of (await readNewest(app.strapi, () => query.execute())) as Row[]) {
    const status = statusOf(type, row);
    const found = versions.get(row.documentId) ?? [];
    found.push({
      row: row.id,
      locale: localeOf(type, row),
      status,
      entry: serialize(type.shape, row, status),
    });
    versions.set(row.documentId, found);
  }
  return versions;
};

/** The languages of which documents have a draft. */
const readDraftLocales = async (
  app: App,
  type: EntryType,
  documentIds: readonly string[]
): Promise<Map<string, Set<string | null>>> => {
  const rows = (await app.strapi.db
    .queryBuilder(type.uid)
    .init({
      select: ['id', 'documentId', ...(type.localized ? ['locale'] : [])],
      where: { documentId: { $in: [...documentIds] }, publishedAt: null },
    })
    .execute()) as Row[];
  const locales = new Map<string, Set<string | null>>();
  for (const row of rows) {
    const found = locales.get(row.documentId) ?? new Set<string | null>();
    found.add(localeOf(type, row));
    locales.set(row.documentId, found);
  }
  return locales;
};

/** A document within a unit of work, as it was before the first write to it. */
interface TrackedDocument {
  before: readonly Version[];
  /** Its content was written anew, whether it differs or not. */
  rewritten: boolean;
}

const writes = new AsyncLocalStorage<EntryWrite>();

/**
 * One write of the site's: a call of the document service, or of the query engine outside of one. What it
 * changes is tracked, and compared at its end: however many rows it writes, each version of a document
 * has its event once.
 */
class EntryWrite {
  /** Whether changes are tracked here now: from the beginning of its work to the comparison. */
  isTracking = false;
  readonly documents = new Map<EntryType, Map<string, TrackedDocument>>();
  /** Rows of tracked documents: a write that names one of them needs no look. */
  readonly rows = new Set<string>();

  constructor(
    readonly app: App,
    readonly prefetched: PrefetchedSubscriptions | null
  ) {}

  subscriptions({ events }: EntryType): Promise<Subscriptions> {
    return currentSubscriptions(this.app, events, this.prefetched);
  }

  async isSubscribed(type: EntryType): Promise<boolean> {
    const subscriptions = await this.subscriptions(type);
    return type.events.some((event) => subscriptions.isSubscribed(event));
  }

  /** What is tracked of a type, by document id. */
  documentsOf(type: EntryType): Map<string, TrackedDocument> {
    const documents = this.documents.get(type) ?? new Map<string, TrackedDocument>();
    this.documents.set(type, documents);
    return documents;
  }
}

/** The write that is being tracked here, if there is one. */
const trackedWrite = (): EntryWrite | undefined => {
  const write = writes.getStore();
  return write?.isTracking ? write : undefined;
};

/** Runs `work` as a write of its own; who subscribed is asked for beside what the host does first. */
const inWrite = <T>(app: App, { events }: EntryType, work: (write: EntryWrite) => T): T => {
  const prefetched = app.db.inTransaction()
    ? (writes.getStore()?.prefetched ?? null)
    : prefetchSubscriptions(app, events);
  const write = new EntryWrite(app, prefetched);
  return writes.run(write, () => work(write));
};

type Chunk = readonly (readonly [id: string, tracked: TrackedDocument])[];

const isGone = (before: readonly Version[], after: readonly Version[]): boolean =>
  before.some(({ locale, status }) => {
    const isSame = (one: Version): boolean => one.locale === locale && one.status === 'published';
    return status === 'published' && !after.some(isSame);
  });

/** What is not published any more is unpublished where a draft of it is left, and else deleted. */
const draftsLeft = async (
  { app }: EntryWrite,
  type: EntryType,
  chunk: Chunk,
  after: Versions
): Promise<Map<string, ReadonlySet<string | null>>> => {
  if (!type.draftAndPublish) return new Map();
  const gone = chunk.filter(([id, { before }]) => isGone(before, after.get(id) ?? []));
  if (gone.length === 0) return new Map();
  return readDraftLocales(
    app,
    type,
    gone.map(([id]) => id)
  );
};

const publishChunk = async (write: EntryWrite, type: EntryType, chunk: Chunk): Promise<void> => {
  const { app } = write;
  const ids = chunk.map(([id]) => id);
  const after = await readVersions(app, type, ids);
  const drafts = await draftsLeft(write, type, chunk, after);
  const { uid, shape, draftAndPublish } = type;
  const events: EventAboutEntry[] = chunk.flatMap(([id, { before, rewritten }]) =>
    derive({
      shape,
      draftAndPublish,
      before,
      after: after.get(id) ?? [],
      drafts: drafts.get(id) ?? new Set(),
      rewritten,
    }).map((change) => eventOf(uid, shape, change))
  );
  const subscriptions = await write.subscriptions(type);
  const subscribed = events.filter(({ event }) => subscriptions.isSubscribed(event));
  if (subscribed.length > 0) await getPublisher(app).publish(subscribed, subscriptions);
};

/** Compares every document that a write may have changed, and publishes what happened to it, in its transaction. */
const publishChanges = async (write: EntryWrite): Promise<void> => {
  for (const [type, documents] of write.documents) {
    for (const chunk of inChunks([...documents])) await publishChunk(write, type, chunk);
  }
};

type Data = Record<string, unknown>;

const rowKey = ({ uid }: EntryType, id: unknown): string => `${uid}:${String(id)}`;

/** Notes documents as they are now, before the write; those that are noted already stay as they were. */
const trackDocuments = async (
  write: EntryWrite,
  type: EntryType,
  documentIds: readonly string[]
): Promise<void> => {
  const documents = write.documentsOf(type);
  const unread = documentIds.filter((id) => !documents.has(id));
  for (const ids of inChunks(unread)) {
    const versions = await readVersions(write.app, type, ids, { lock: true });
    for (const id of ids) {
      const before = versions.get(id) ?? [];
      documents.set(id, { before, rewritten: false });
      for (const { row } of before) write.rows.add(rowKey(type, row));
    }
  }
};

const isDraftRow = ({ publishedAt }: Data): boolean => (publishedAt ?? null) === null;

/** Notes what is about to be created; a row may also be a further one of a document that exists. */
const trackCreated = async (
  write: EntryWrite,
  type: EntryType,
  rows: readonly Data[]
): Promise<void> => {
  const given: string[] = [];
  for (const data of rows) {
    if (!seesDrafts(type) && isDraftRow(data)) continue;
    if (typeof data.documentId === 'string') {
      given.push(data.documentId);
    } else {
      const id = giveDocumentId(write.app.strapi, type.uid, data);
      write.documentsOf(type).set(id, { before: [], rewritten: false });
    }
  }
  const unknown = given.filter((id) => !write.documentsOf(type).has(id));
  const existing = unknown.length > 0 ? await existingOf(write.app.strapi, type.uid, unknown) : [];
  for (const id of unknown) {
    if (!existing.includes(id)) write.documentsOf(type).set(id, { before: [], rewritten: false });
  }
  if (existing.length > 0) await trackDocuments(write, type, existing);
};

/** The documents that a write changes, by its own condition, of which receivers hear. */
async function* matching(
  { app }: EntryWrite,
  type: EntryType,
  event: WriteEvent
): AsyncGenerator<string[]> {
  const data = event.params.data as Data | undefined;
  // Rows that are given a time of publishing come to be heard of.
  const isHeard = seesDrafts(type) || data?.publishedAt !== undefined;
  const locked = await lockWritten(app.strapi, event);
  if (!locked) {
    const where = event.params.where as Where;
    const published: Where = { publishedAt: { $notNull: true } };
    yield* documentIdsOf(app.strapi, type.uid, {
      where: isHeard ? where : { $and: [where, published] },
    });
    return;
  }
  const heard = locked.filter((row) => isHeard || !isDraftRow({ ...row }));
  yield* inChunks([...new Set(heard.map(({ documentId }) => documentId))]);
}

/** A file is replaced under its own address: its record may look the same afterwards. */
const isReplaced = ({ uid }: EntryType, data: Data | undefined): boolean =>
  uid === FILE && data?.hash !== undefined;

/** Notes the documents that a write's own condition matches. */
const trackMatching = async (
  write: EntryWrite,
  type: EntryType,
  event: WriteEvent
): Promise<void> => {
  const replaced = isReplaced(type, event.params.data as Data | undefined);
  const row = idNamed(event.params.where);
  if (row !== null && write.rows.has(rowKey(type, row)) && !replaced) return;
  for await (const ids of matching(write, type, event)) {
    await trackDocuments(write, type, ids);
    if (!replaced) continue;
    const documents = write.documentsOf(type);
    for (const id of ids) {
      const tracked = documents.get(id);
      if (tracked) tracked.rewritten = true;
    }
  }
};

/**
 * Makes `work` a unit of work where somebody subscribed to an event of the type: in one transaction,
 * its changes are tracked, then compared, and their events are published. Within a unit of work it is
 * a part of that one; where nobody subscribed it is the host's alone.
 * @param begin notes what is known to change, before the work writes any of its rows
 */
const capture = async <T>(
  app: App,
  type: EntryType,
  begin: (write: EntryWrite) => Promise<void>,
  work: () => Promise<T>
): Promise<T> => {
  const outer = trackedWrite();
  if (outer) {
    if (await outer.isSubscribed(type)) await begin(outer);
    return work();
  }
  return inTurn(app.strapi, () =>
    inWrite(app, type, async (write) => {
      if (isSilenced(app) || !(await write.isSubscribed(type))) return work();
      const tracked = async (): Promise<T> => {
        write.isTracking = true;
        try {
          await begin(write);
          return await work();
        } finally {
          write.isTracking = false;
        }
      };
      return app.db.unitOfWork(tracked, () => publishChanges(write));
    })
  );
};

interface DocumentCall {
  uid: string;
  action: string;
  params: { documentId?: unknown; status?: unknown };
}

const OF_PUBLISHED: ReadonlySet<string> = new Set(['publish', 'unpublish', 'delete']);
const OF_ANY: ReadonlySet<string> = new Set(
  'create update delete clone publish unpublish discardDraft'.split(' ')
);

/** Whether a call may change what receivers hear of: of many types that is no draft. */
const concerns = (type: EntryType, { action, params }: DocumentCall): boolean => {
  if (seesDrafts(type)) return OF_ANY.has(action);
  const publishes = params.status === 'published' && (action === 'create' || action === 'update');
  return publishes || OF_PUBLISHED.has(action);
};

/**
 * Makes each call of the document service for a named type one unit of work. Publishing deletes a row
 * and inserts another, a component's row is written before its owner's, and shared fields are copied
 * to other languages after it: only around all of that can before be compared with after. To be called
 * in `register`, so that it is around what other plugins add in their `bootstrap`.
 */
export const wrapDocuments = (app: App, types: () => EntryTypes): void => {
  app.strapi.documents.use(async (given, next) => {
    const call = given as unknown as DocumentCall;
    const type = types().get(call.uid);
    if (!type || !concerns(type, call)) return next();
    const { documentId } = call.params;
    const named = typeof documentId === 'string' && call.action !== 'clone' ? [documentId] : [];
    return capture(
      app,
      type,
      (write) => trackDocuments(write, type, named),
      async () => next()
    );
  });
};

const METHODS = ['create', 'createMany', 'update', 'updateMany', 'delete', 'deleteMany'] as const;
type Method = (typeof METHODS)[number];
type Write = (uid: string, params?: unknown) => Promise<unknown>;

/**
 * Gives each write of the query engine to a named type a transaction where it has none: the host runs
 * them without, and an event could outlive its write, or the other way round.
 */
const wrapWrites = (app: App, types: EntryTypes): void => {
  const manager = app.strapi.db.entityManager as unknown as Record<Method, Write>;
  for (const method of METHODS) {
    const original = manager[method];
    manager[method] = function write(this: unknown, uid, params) {
      const run = () => original.call(manager, uid, params);
      const type = types.get(uid);
      if (!type || trackedWrite()) return run();
      return capture(app, type, async () => undefined, run);
    };
  }
};

interface CreateEvent {
  model: { uid: string };
  params: { data?: Record<string, unknown> | Record<string, unknown>[] };
}

/** Hears of every write to a named type, from wherever it comes, and notes what is about to change. */
const watchWrites = (app: App, types: EntryTypes): void => {
  const tracking = async (
    uid: string,
    track: (write: EntryWrite, type: EntryType) => Promise<void>
  ): Promise<void> => {
    const write = trackedWrite();
    const type = types.get(uid);
    if (write && type && (await write.isSubscribed(type))) await track(write, type);
  };
  const beforeCreate = ({ model, params }: CreateEvent): Promise<void> => {
    const { data = [] } = params;
    const rows = Array.isArray(data) ? data : [data];
    return tracking(model.uid, (write, type) => trackCreated(write, type, rows));
  };
  const beforeChange = (event: WriteEvent): Promise<void> =>
    tracking(event.model.uid, (write, type) => trackMatching(write, type, event));
  const subscriber = {
    models: [...types.keys()],
    beforeCreate,
    beforeCreateMany: beforeCreate,
    beforeUpdate: beforeChange,
    beforeUpdateMany: beforeChange,
    beforeDelete: beforeChange,
    beforeDeleteMany: beforeChange,
  };
  app.strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof app.strapi.db.lifecycles.subscribe>[0]
  );
};

/** Begins to listen to writes of the query engine; once every plugin has registered. */
export const captureWrites = (app: App): void => {
  const types = getEntryTypes(app);
  if (types.size === 0) return;
  listenUntilClosed(app.strapi);
  copyParamsOf(app.strapi, [...types.keys()]);
  wrapWrites(app, types);
  watchWrites(app, types);
};
