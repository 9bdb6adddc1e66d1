import {
  aroundCalls,
  aroundWrites,
  DOCUMENT_WRITES,
  type DocumentCall,
  documentIdsOf,
  existingOf,
  giveDocumentId,
  idNamed,
  inChunks,
  listenToWrites,
  lockVersions,
  lockWritten,
  ofOneOrMany,
  type Where,
  type WriteEvent,
} from '../database/written-rows';
import { inTurn, readNewest } from '../database/transactions';
import type { Tx } from '../database/db';
import { getPublisher } from '../webhooks/publish';
import { subscribersOf } from '../webhooks/subscriptions';
import { type Changes, silenced, UnitOfWork, UnitsOfWork } from '../webhooks/unit-of-work';
import { derive, type EntryStatus, eventOf, FILE, serialize, type Version } from './rules';
import { type EntryType, type EntryTypes, getEntryTypes } from './types';
import type { App } from '../app';

type Data = Record<string, unknown>;

interface Row extends Data {
  id: number;
  documentId: string;
  locale?: string | null;
  publishedAt?: unknown;
}

const isDraftRow = ({ publishedAt }: Data): boolean => (publishedAt ?? null) === null;

const statusOf = (type: EntryType, row: Row): EntryStatus =>
  type.draftAndPublish && isDraftRow(row) ? 'draft' : 'published';

/** True if receivers get drafts of the type; otherwise no draft is read. */
const seesDrafts = ({ draftAndPublish, drafts }: EntryType): boolean => !draftAndPublish || drafts;

const localeOf = ({ localized }: EntryType, { locale }: Row): string | null =>
  localized ? (locale ?? null) : null;

type Versions = Map<string, Version[]>;

/** Reads all delivered versions of documents without the host's lifecycles; `lock` locks them for the transaction. */
const readVersions = async (
  app: App,
  type: EntryType,
  documentIds: readonly string[],
  lock = false
): Promise<Versions> => {
  // Also unpublished versions: two that publish a draft for the first time have no other in common.
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

/** A document within a unit of work, as it was before the first write to it. */
interface TrackedDocument {
  before: readonly Version[];
  /** Its content was written again, whether it differs or not. */
  rewritten: boolean;
}

const isGone = (before: readonly Version[], after: readonly Version[]): boolean =>
  before.some(({ locale, status }) => {
    const isSame = (one: Version): boolean => one.locale === locale && one.status === 'published';
    return status === 'published' && !after.some(isSame);
  });

const rowKey = ({ uid }: EntryType, id: unknown): string => `${uid}:${String(id)}`;

/** A file is replaced under its own address: its record may look the same afterwards. */
const isReplaced = ({ uid }: EntryType, data: Data | undefined): boolean =>
  uid === FILE && data?.hash !== undefined;

/** The documents that a write changes, by its own condition, and that receivers know. */
async function* matching(app: App, type: EntryType, event: WriteEvent): AsyncGenerator<string[]> {
  const data = event.params.data as Data | undefined;
  // Rows that are given a time of publishing become visible to receivers.
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

class EntryWrite extends UnitOfWork<EntryType, TrackedDocument> {
  /** Rows of tracked documents: a write that names one of them needs no look. */
  private readonly rows = new Set<string>();

  /** Notes documents as they are now, before the write; the first note of a document stays. */
  async trackDocuments(type: EntryType, documentIds: readonly string[]): Promise<void> {
    const documents = this.changesOf(type);
    for (const ids of inChunks(documentIds.filter((id) => !documents.has(id)))) {
      const versions = await readVersions(this.app, type, ids, true);
      for (const id of ids) {
        const before = versions.get(id) ?? [];
        documents.set(id, { before, rewritten: false });
        for (const { row } of before) this.rows.add(rowKey(type, row));
      }
    }
  }

  /** Notes what is about to be created; a row may also be a further one of a document that exists. */
  async trackCreated(type: EntryType, rows: readonly Data[]): Promise<void> {
    const { strapi } = this.app;
    const documents = this.changesOf(type);
    const unknown: string[] = [];
    for (const data of rows) {
      if (!seesDrafts(type) && isDraftRow(data)) continue;
      if (typeof data.documentId !== 'string') {
        documents.set(giveDocumentId(strapi, type.uid, data), { before: [], rewritten: false });
      } else if (!documents.has(data.documentId)) {
        unknown.push(data.documentId);
      }
    }
    if (unknown.length === 0) return;
    const existing = await existingOf(strapi, type.uid, unknown);
    for (const id of unknown) {
      if (!existing.includes(id)) documents.set(id, { before: [], rewritten: false });
    }
    await this.trackDocuments(type, existing);
  }

  async trackMatching(type: EntryType, event: WriteEvent): Promise<void> {
    const replaced = isReplaced(type, event.params.data as Data | undefined);
    const row = idNamed(event.params.where);
    if (row !== null && this.rows.has(rowKey(type, row)) && !replaced) return;
    for await (const ids of matching(this.app, type, event)) {
      await this.trackDocuments(type, ids);
      if (!replaced) continue;
      for (const id of ids) {
        const tracked = this.changesOf(type).get(id);
        if (tracked) tracked.rewritten = true;
      }
    }
  }

  protected async publishSome(type: EntryType, changes: Changes<TrackedDocument>, tx: Tx) {
    const ids = changes.map(([id]) => id);
    const after = await readVersions(this.app, type, ids);
    const drafts = await this.draftsLeft(type, changes, after);
    const { uid, shape, draftAndPublish } = type;
    const subscriptions = await this.subscriptions(type.events);
    const events = changes
      .flatMap(([id, { before, rewritten }]) =>
        derive({
          shape,
          draftAndPublish,
          before,
          after: after.get(id) ?? [],
          drafts: drafts.get(id) ?? new Set(),
          rewritten,
        }).map((change) => eventOf(uid, shape, change))
      )
      .filter(({ event }) => subscriptions.isSubscribed(event));
    if (events.length > 0) await getPublisher(this.app).publish(events, { subscriptions, tx });
  }

  /** The languages in which a draft is left: there an entry is unpublished, and in the others deleted. */
  private async draftsLeft(type: EntryType, changes: Changes<TrackedDocument>, after: Versions) {
    const locales = new Map<string, Set<string | null>>();
    const gone = changes.filter(([id, { before }]) => isGone(before, after.get(id) ?? []));
    if (!type.draftAndPublish || gone.length === 0) return locales;
    const query = this.app.strapi.db.queryBuilder(type.uid).init({
      select: ['id', 'documentId', ...(type.localized ? ['locale'] : [])],
      where: { documentId: { $in: gone.map(([id]) => id) }, publishedAt: null },
    });
    for (const row of (await query.execute()) as Row[]) {
      locales.set(row.documentId, new Set(locales.get(row.documentId)).add(localeOf(type, row)));
    }
    return locales;
  }
}

const writes = new UnitsOfWork<EntryWrite>();

/**
 * Runs `work` as a unit of work or a part of one; without subscribers it is left to the host.
 * @param begin notes known changes, before the work writes any of its rows
 */
const capture = async <T>(
  app: App,
  { events }: EntryType,
  work: () => Promise<T>,
  begin?: (write: EntryWrite) => Promise<void>
): Promise<T> => {
  const outer = writes.tracked;
  if (outer) {
    return outer.include(async () => {
      if (begin && (await outer.isAnySubscribed(events))) await begin(outer);
      return work();
    });
  }
  if (subscribersOf(app).known(events)?.isAnySubscribed(events) === false) return work();
  return inTurn(app.strapi, () =>
    writes.enter(new EntryWrite(app), events, async (write) => {
      if (silenced.has(app) || !(await write.isAnySubscribed(events))) return work();
      return write.run(async () => {
        await begin?.(write);
        return work();
      });
    })
  );
};

const OF_PUBLISHED: ReadonlySet<string> = new Set(['publish', 'unpublish', 'delete']);

/** True if a call may change what receivers see: for many types, unless it writes a draft. */
const concerns = (type: EntryType, { action, params }: DocumentCall): boolean => {
  if (seesDrafts(type)) return DOCUMENT_WRITES.has(action);
  const publishes = params.status === 'published' && (action === 'create' || action === 'update');
  return publishes || OF_PUBLISHED.has(action);
};

/** Makes each document service call for a named type one unit of work. Call it in `register`, before other plugins. */
export const wrapDocuments = (app: App, types: () => EntryTypes): void => {
  aroundCalls(app.strapi, async (call, run) => {
    const type = types().get(call.uid);
    if (!type || !concerns(type, call)) return run();
    const { documentId } = call.params;
    const named = typeof documentId === 'string' && call.action !== 'clone' ? [documentId] : [];
    return capture(app, type, run, (write) => write.trackDocuments(type, named));
  });
};

/** Watches every write to a named type, of any origin, and notes what is about to change. */
const watchWrites = (app: App, types: EntryTypes): void => {
  const tracking = async (
    uid: string,
    track: (write: EntryWrite, type: EntryType) => Promise<void>
  ): Promise<void> => {
    const write = writes.tracked;
    const type = types.get(uid);
    if (write && type && (await write.isAnySubscribed(type.events))) await track(write, type);
  };
  const beforeCreate = ({ model, params }: WriteEvent): Promise<void> => {
    const rows = [params.data ?? []].flat() as Data[];
    return tracking(model.uid, (write, type) => write.trackCreated(type, rows));
  };
  const beforeChange = (event: WriteEvent): Promise<void> =>
    tracking(event.model.uid, (write, type) => write.trackMatching(type, event));
  const listeners = { beforeCreate, beforeUpdate: beforeChange, beforeDelete: beforeChange };
  listenToWrites(app.strapi, [...types.keys()], ofOneOrMany(listeners));
};

/** Captures writes to named types, in a transaction with their events; once all plugins have registered. */
export const captureWrites = (app: App): void => {
  const types = getEntryTypes(app);
  if (types.size === 0) return;
  aroundWrites(app.strapi, ({ uid }, run) => {
    const type = types.get(uid);
    return type ? capture(app, type, run) : run();
  });
  watchWrites(app, types);
};
