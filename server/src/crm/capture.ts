import {
  aroundCalls,
  aroundWrites,
  DOCUMENT_WRITES,
  type DocumentCall,
  documentIdsOf,
  existingOf,
  giveDocumentId,
  type HostWrite,
  inChunks,
  insertedRow,
  listenToWrites,
  lockVersions,
  lockWritten,
  ofOneOrMany,
  type Where,
  type WriteEvent,
  writtenRows,
} from '../database/written-rows';
import type { PlainTable } from '../database/tables/plain-tables';
import { inTurn, readNewest, runningCall } from '../database/transactions';
import type { Tx } from '../database/db';
import { isRecord, logFailure } from '../runtime/text';
import { getPublisher } from '../webhooks/publish';
import { subscribersOf } from '../webhooks/subscriptions';
import { type Changes, goOn, silenced, UnitOfWork, UnitsOfWork } from '../webhooks/unit-of-work';
import { submitForm } from './forms';
import {
  type Entry,
  getWatchPlan,
  type WatchedRelation,
  type WatchedSource,
  type WatchPlan,
} from './mapping/sources';
import { type Reading, readRows, serialize, tagsOf } from './mapping/records';
import { currentOrigin } from './origin';
import { type Before, type CrmEvent, KIND_RULES, subjectOf, type WriteImpact } from './rules';
import type { App } from '../app';

type Data = Record<string, unknown>;

const UNPUBLISHED_TABLE = 'switchboard_unpublished';

/**
 * Unpublished records, with the last version that receivers got. Unpublishing sends nothing; without this row,
 * publishing again would look like a new record, and deleting the draft would send no event.
 */
export const unpublishedTable: PlainTable = {
  tableName: UNPUBLISHED_TABLE,
  attributes: {
    kind: { type: 'string', column: { args: [32] } },
    document_id: { type: 'string', column: { args: [64] } },
    state: { type: 'text' },
  },
  indexes: [{ name: 'sb_unpublished_doc', columns: ['kind', 'document_id'], type: 'unique' }],
};

/**
 * Keeps the last published version of records that are unpublished but still exist (as a draft or in another locale):
 * they have no event now, and are compared with that version when they return. Returns the changes that may have
 * events.
 * @param rows the records that are published now, by document id
 */
const withoutUnpublished = async (
  app: App,
  { uid, source: { kind } }: WatchedSource,
  changes: Changes<TrackedChange>,
  rows: ReadonlyMap<string, unknown>
): Promise<Changes<TrackedChange>> => {
  const unsettled = changes.filter(([id, { before }]) => !before || !rows.has(id));
  if (unsettled.length === 0) return changes;
  const db = await app.db.current();
  const rowsOf = (ids: readonly string[]) =>
    db.table(UNPUBLISHED_TABLE).where({ kind }).whereIn('document_id', ids);
  const ids = unsettled.map(([id]) => id);
  const remembered = (await readNewest(app.strapi, async () => rowsOf(ids))) as {
    document_id: string;
    state: string;
  }[];
  const states = new Map(remembered.map((row) => [row.document_id, row.state]));
  const gone = ids.filter((id) => !rows.has(id));
  const existing = new Set(await readNewest(app.strapi, () => existingOf(app.strapi, uid, gone)));
  for (const [id, change] of unsettled) {
    const state = states.get(id);
    if (existing.has(id)) {
      if (!change.before) continue;
      await rowsOf([id]).delete();
      const now = { kind, document_id: id, state: JSON.stringify(change.before) };
      await db.table(UNPUBLISHED_TABLE).insert(now);
    } else if (state !== undefined) {
      change.before ??= JSON.parse(state) as Before;
      await rowsOf([id]).delete();
    }
  }
  return changes.filter(([id]) => !existing.has(id));
};

/** One record within a unit of work, as it was before the first write to it. */
interface TrackedChange {
  /** null: there was none. */
  before: Before | null;
  /** Its tags may have changed, so they are read again afterwards. */
  tags: boolean;
  /** The row after the write, if it need not be read again. */
  row: Entry | null;
  /** The values given for a new row, if nothing has written to it since. */
  inserted?: Data | null;
  /** Its earlier state is unknown (a computed field failed): no event is invented. */
  unknown: boolean;
}

const NEW = { before: null, row: null, unknown: false, inserted: null } as const;

/** The possible changes of a write with such data; null data: anything. */
const impactOf = (watched: WatchedSource, action: WriteImpact['action'], data: Data | null) => {
  const { tags } = watched.source;
  if (!data || action !== 'update') {
    return { action, keys: null, tags: tags !== null && (!data || (data[tags] ?? null) !== null) };
  }
  const keys = new Set<string>(watched.computedKeys);
  for (const [name, value] of Object.entries(data)) {
    if (value === undefined || name === 'updatedAt') continue;
    for (const key of watched.keysByAttribute.get(name) ?? []) keys.add(key);
  }
  return { action, keys, tags: tags !== null && data[tags] !== undefined };
};

/** Keys of a deletion's event, by kind; other kinds only have the record's id. */
const KEYS_OF_DELETED: Readonly<Record<string, readonly string[]>> = {
  contact: ['id', 'email'],
  deal: ['id', 'title'],
};

const readingBefore = (watched: WatchedSource, impact: WriteImpact): Reading => {
  if (impact.action !== 'delete') return { keys: impact.keys, tags: impact.tags };
  const keys = KEYS_OF_DELETED[watched.source.kind];
  return { keys: keys ? new Set(keys) : null, tags: false };
};

const logSkipped = (app: App, { source }: WatchedSource, id: unknown, error: unknown): void =>
  logFailure(app, `no event for ${source.kind} ${String(id)}`)(error);

const existingRecord = (app: App, watched: WatchedSource, row: Entry, reading: Reading) => {
  try {
    const whole = serialize(watched.source, row);
    const keys = watched.allKeys.filter((key) => !reading.keys || reading.keys.has(key));
    const payload = Object.fromEntries(keys.map((key) => [key, whole[key]]));
    const tags = reading.tags ? tagsOf(watched, row) : null;
    return { before: { payload, keys, tags }, tags: reading.tags, row: null, unknown: false };
  } catch (error) {
    logSkipped(app, watched, row.documentId, error);
    return { before: null, tags: false, row: null, unknown: true };
  }
};

/** Keys that the first write found stay; a later write may add others. */
const mergeBefore = (first: Before, later: Before): Before => {
  const known = new Set(first.keys);
  return {
    payload: { ...later.payload, ...first.payload },
    keys: [...first.keys, ...later.keys.filter((key) => !known.has(key))],
    tags: first.tags ?? later.tags,
  };
};

/** True if everything needed of a record is known already. */
const isKnown = (change: TrackedChange, watched: WatchedSource, reading: Reading): boolean => {
  // New in this unit of work, or never to have an event.
  if (!change.before || change.unknown) return true;
  const known = new Set(change.before.keys);
  const needed = [...(reading.keys ?? watched.allKeys)];
  return needed.every((key) => known.has(key)) && (!reading.tags || change.before.tags !== null);
};

type RowId = number | string;

const idsOf = (value: unknown): RowId[] => {
  const list = Array.isArray(value) ? value : [value];
  return list.flatMap((one: unknown) => {
    const id = isRecord(one) ? one.id : one;
    return typeof id === 'number' || typeof id === 'string' ? [id] : [];
  });
};

const connectedIds = (value: unknown): RowId[] =>
  !isRecord(value) || 'id' in value ? idsOf(value) : [...idsOf(value.set), ...idsOf(value.connect)];

/** Reads a relation input in any form of the entity manager: ids of rows, and whether unnamed links are removed. */
export const relationInput = (value: unknown): { replaces: boolean; ids: RowId[] } => {
  const ids = connectedIds(value);
  if (!isRecord(value) || 'id' in value) return { replaces: true, ids };
  return { replaces: value.set !== undefined, ids: [...ids, ...idsOf(value.disconnect)] };
};

/** True if records that are linked to a written one may lose it by this value of the relation. */
const unlinks = ({ exclusive }: WatchedRelation, value: unknown): boolean =>
  // A single-valued end loses its previous link, even if the new one is only "connected".
  relationInput(value).replaces || (exclusive && connectedIds(value).length > 0);

export class CrmWrite extends UnitOfWork<WatchedSource, TrackedChange> {
  /** @param compound rows may still change after their own write: a document service call does several */
  constructor(
    app: App,
    private readonly compound: boolean
  ) {
    super(app);
  }

  /** True if an event that a change or a deletion may cause has a subscriber. */
  isHeard(watched: WatchedSource, impact: WriteImpact): boolean | Promise<boolean> {
    const events = (!watched.form && KIND_RULES[watched.source.kind]?.possible(impact)) || [];
    return events.length > 0 && this.isAnySubscribed(events, watched.events);
  }

  /** Tracks what is about to be created. @returns a promise if something has to be read */
  trackCreated(watched: WatchedSource, rows: readonly Data[]): Promise<void> | void {
    const { events, eventsOfNew, form } = watched;
    if (!form && eventsOfNew.length === 0) return;
    const heard = form !== null || this.isAnySubscribed(eventsOfNew, events);
    return goOn(heard, (isHeard) => (isHeard ? this.trackNew(watched, rows) : undefined));
  }

  private trackNew(watched: WatchedSource, rows: readonly Data[]): Promise<void> | void {
    const changes = this.changesOf(watched);
    const given: string[] = [];
    for (const data of rows) {
      if (typeof data.documentId === 'string') {
        given.push(data.documentId);
      } else {
        const { tags } = impactOf(watched, 'create', data);
        changes.set(giveDocumentId(this.app.strapi, watched.uid, data), { ...NEW, tags });
      }
    }
    if (given.length > 0) return this.trackGiven(watched, given);
  }

  /** Tracks the documents that a write changes, by its own condition, if that has subscribers. */
  async trackMatching(watched: WatchedSource, action: 'update' | 'delete', event: WriteEvent) {
    const { app } = this;
    const data = action === 'update' ? ((event.params.data ?? {}) as Data) : null;
    const impact = impactOf(watched, action, data);
    if (!(await this.isHeard(watched, impact))) return;
    const locked = await lockWritten(app.strapi, event);
    if (locked) {
      const ids = locked.map(({ documentId }) => documentId);
      return this.trackDocuments(watched, ids, impact);
    }
    // One row, by its id: it is locked as it is read.
    const where = event.params.where as Where;
    const isWhole = !watched.draftAndPublish && !watched.localized;
    if (isWhole && this.changesOf(watched).size === 0) {
      const reading = readingBefore(watched, impact);
      const rows = await readRows(app, watched, where, reading, { lock: true });
      for (const row of rows) this.remember(watched, row, reading);
      return;
    }
    await this.trackWhere(watched, where, impact);
  }

  /**
   * Tracks records that a write changes without naming them: at the other end of an edited relation, or the previous
   * holder of an exclusive relation, which the host changes without a lifecycle. Written rows are locked first, so a
   * write that links to a record under deletion waits for the deletion, or precedes it.
   */
  async trackRelated(
    plan: WatchPlan,
    action: WriteImpact['action'],
    event: WriteEvent,
    data: Data
  ): Promise<void> {
    const { uid } = event.model;
    const isDelete = action === 'delete';
    for (const relation of plan.relationsByTarget.get(uid) ?? []) {
      const value = relation.inverse ? data[relation.inverse] : undefined;
      if (!isDelete && value === undefined) continue;
      const { watched, attribute } = relation;
      const impact = impactOf(watched, 'update', { [attribute]: [] });
      if (!(await this.isHeard(watched, impact))) continue;
      if (isDelete || (action === 'update' && unlinks(relation, value))) {
        const written = (await writtenRows(this.app.strapi, event)).map(({ id }) => id);
        await this.trackIds(watched, written, impact, attribute);
      }
      if (!isDelete) await this.trackIds(watched, relationInput(value).ids, impact);
    }
    if (isDelete) return;
    for (const { watched, attribute } of plan.exclusiveRelations.get(uid) ?? []) {
      const value = data[attribute];
      const ids = value === undefined ? [] : connectedIds(value);
      // Records that lose a link because the write gives it to another record of their own type.
      const impact = impactOf(watched, 'update', { [attribute]: [] });
      if (ids.length === 0 || !(await this.isHeard(watched, impact))) continue;
      await this.trackIds(watched, ids, impact, attribute);
    }
  }

  /** Tracks records whose relation is about to be changed in its own table. */
  async trackLinking(watched: WatchedSource, attribute: string, ids: readonly string[]) {
    const impact = impactOf(watched, 'update', { [attribute]: [] });
    if (await this.isHeard(watched, impact)) await this.trackDocuments(watched, ids, impact);
  }

  /** Tracks documents before they change. Each is locked, so that overlapping writers take turns. */
  async trackDocuments(
    watched: WatchedSource,
    documentIds: readonly string[],
    impact: WriteImpact
  ): Promise<void> {
    const { app } = this;
    const reading = readingBefore(watched, impact);
    const changes = this.changesOf(watched);
    const unread = [...new Set(documentIds)].filter((id) => {
      const change = changes.get(id);
      if (!change) return true;
      change.row = change.inserted = null;
      change.tags ||= reading.tags;
      return !isKnown(change, watched, reading);
    });
    for (const ids of inChunks(unread)) {
      const where = { documentId: { $in: ids } };
      if (watched.draftAndPublish || watched.localized) {
        await lockVersions(app.strapi, watched.uid, ids);
      }
      const page = { lock: true, orderBy: { id: 'asc' } };
      const rows = await readRows(app, watched, where, reading, page);
      const byId = new Map(rows.map((row) => [String(row.documentId), row]));
      // In the order of the write, not in the order in which the database answers.
      for (const id of ids) {
        const row = byId.get(id);
        if (row) this.remember(watched, row, reading);
        else if (!changes.has(id)) changes.set(id, { ...NEW, tags: reading.tags });
      }
    }
  }

  /** Keeps the row that a create returned, if that is everything about the record. */
  keepRow(watched: WatchedSource, params: { data?: Data; select?: unknown }, result: unknown) {
    const { data = {}, select } = params;
    const change = this.changesOf(watched).get(String(data.documentId));
    if (!change || !result || this.compound || !watched.isOneRow || select) return;
    if (watched.relations.some((name) => (data[name] ?? null) !== null)) return;
    const row: Entry = { ...(result as Entry) };
    for (const name of watched.relations) if (name in row) row[name] = undefined;
    change.row = row;
  }

  /** Keeps what a write of many inserted, likewise. */
  keepInserted(watched: WatchedSource, rows: readonly Data[]): void {
    if (this.compound || !watched.isOneRow || watched.computedKeys.length > 0) return;
    const changes = this.changesOf(watched);
    for (const data of rows) {
      const change = changes.get(String(data.documentId));
      const isRelated = watched.relations.some((name) => (data[name] ?? null) !== null);
      if (change && !isRelated) change.inserted = data;
    }
  }

  protected async publishSome(watched: WatchedSource, changes: Changes<TrackedChange>, tx: Tx) {
    const rows = new Map<string, Entry>();
    const unread: string[] = [];
    for (const [id, { row, inserted }] of changes) {
      const known = row ?? (inserted && insertedRow(this.app.strapi, watched, inserted));
      if (known) rows.set(id, known);
      else unread.push(id);
    }
    if (unread.length > 0) {
      const reading = { keys: null, tags: changes.some(([, { tags }]) => tags) };
      const where = { documentId: { $in: unread } };
      for (const row of await readRows(this.app, watched, where, reading)) {
        rows.set(String(row.documentId), row);
      }
    }
    const tracked = watched.draftAndPublish
      ? await withoutUnpublished(this.app, watched, changes, rows)
      : changes;
    if (watched.form) return this.submitEntries(watched, tracked, rows);
    const found = this.subscriptions(watched.events);
    const subscriptions = found instanceof Promise ? await found : found;
    const events = tracked
      .flatMap(([id, change]) => this.eventsOf(watched, id, change, rows.get(id)))
      .filter(({ event }) => subscriptions.isSubscribed(event));
    const about = events.map((event) => ({ ...event, subject: subjectOf(event) }));
    await getPublisher(this.app).publish(about, { subscriptions, tx });
  }

  private eventsOf(
    watched: WatchedSource,
    id: string,
    { before, tags, unknown }: TrackedChange,
    row: Entry | undefined
  ): CrmEvent[] {
    if (unknown) return [];
    const { source, bookkeeping } = watched;
    try {
      const after = row && {
        payload: serialize(source, row),
        tags: tags ? tagsOf(watched, row) : null,
      };
      const origin = () => currentOrigin(this.app);
      const change = { before, after: after ?? null, origin, bookkeeping };
      return KIND_RULES[source.kind]?.derive(change) ?? [];
    } catch (error) {
      // A computed field that fails costs its event; it never costs the site its write.
      logSkipped(this.app, watched, id, error);
      return [];
    }
  }

  private async submitEntries(
    watched: WatchedSource,
    changes: Changes<TrackedChange>,
    rows: ReadonlyMap<string, Entry>
  ): Promise<void> {
    for (const [id, { before, unknown }] of changes) {
      const row = rows.get(id);
      if (before || unknown || !row || !watched.form) continue;
      let entry;
      try {
        entry = serialize(watched.source, row);
      } catch (error) {
        logSkipped(this.app, watched, id, error);
        continue;
      }
      await submitForm(this.app, watched.form, entry);
    }
  }

  /** Tracks new documents, or a further row (a published one, another language) of one that is there. */
  private async trackGiven(watched: WatchedSource, documentIds: readonly string[]): Promise<void> {
    const changes = this.changesOf(watched);
    const tags = watched.source.tags !== null;
    const unknown = documentIds.filter((id) => !changes.has(id));
    const existing = new Set(await existingOf(this.app.strapi, watched.uid, unknown));
    for (const id of unknown) if (!existing.has(id)) changes.set(id, { ...NEW, tags });
    const impact = { ...impactOf(watched, 'update', null), tags };
    await this.trackDocuments(watched, documentIds, impact);
  }

  /** Tracks records by the ids of their rows, or of rows that are linked to them by an attribute. */
  private async trackIds(
    watched: WatchedSource,
    ids: readonly RowId[],
    impact: WriteImpact,
    attribute?: string
  ): Promise<void> {
    for (const some of inChunks(ids)) {
      const where = { id: { $in: some } };
      await this.trackWhere(watched, attribute ? { [attribute]: where } : where, impact);
    }
  }

  private async trackWhere(watched: WatchedSource, where: Where, impact: WriteImpact) {
    for await (const ids of documentIdsOf(this.app.strapi, watched.uid, { where })) {
      await this.trackDocuments(watched, ids, impact);
    }
  }

  private remember(watched: WatchedSource, row: Entry, reading: Reading): void {
    const changes = this.changesOf(watched);
    const id = String(row.documentId);
    const change = changes.get(id);
    const found = existingRecord(this.app, watched, row, reading);
    if (!change) return void changes.set(id, found);
    change.row = change.inserted = null;
    if (!change.before || !found.before) return;
    change.before = mergeBefore(change.before, found.before);
    change.tags ||= found.tags;
  }
}

const writes = new UnitsOfWork<CrmWrite>();

/** Makes several statements one unit of work, or a part of the tracked one. @param events it may cause */
export const inUnitOfWork = <T>(
  app: App,
  events: readonly string[],
  work: (write: CrmWrite) => Promise<T>
): Promise<T> => {
  const outer = writes.tracked;
  if (outer) return outer.include(() => work(outer));
  return writes.enter(new CrmWrite(app, true), events, (write) => write.run(() => work(write)));
};

/** Writes to the other end of a relation matter only if they edit it. */
const concerns = (plan: WatchPlan, { method, uid, params }: HostWrite): boolean => {
  if (plan.byUid.has(uid)) return true;
  const relations = plan.relationsByTarget.get(uid);
  if (!relations) return false;
  if (method === 'delete' || method === 'deleteMany') return true;
  const data = params?.data as Data | undefined;
  return relations.some(({ inverse }) => inverse !== null && data?.[inverse] !== undefined);
};

/** True if somebody is sent an event of a write, or it is a new entry of a form; null: that has to be asked. */
const knownHeard = (app: App, sources: readonly WatchedSource[], events: readonly string[]) =>
  sources.some(({ form }) => form !== null) ||
  (subscribersOf(app).known(events)?.isAnySubscribed(events) ?? null);

/** Makes each write to a watched type a unit of work, so that no event is kept while its write fails, or the reverse. */
const wrapWrites = (app: App, plan: WatchPlan): void =>
  aroundWrites(app.strapi, (hostWrite, run) => {
    const { uid } = hostWrite;
    if (silenced.has(app) || !concerns(plan, hostWrite)) return run();
    const outer = writes.tracked;
    if (outer) return outer.include(run);
    const events = plan.eventsByUid.get(uid) ?? [];
    const sources = plan.byUid.get(uid) ?? [];
    // Without subscribers the write is left to the host. Writes to the plugin's own types still update derived columns.
    const isOwn = sources.some(({ source }) => source.own);
    const known = knownHeard(app, sources, events);
    if (known === false && !isOwn) return run();
    const tracked = (write: CrmWrite): Promise<unknown> => write.run(() => run());
    if (known) return writes.enter(new CrmWrite(app, false), events, tracked);
    return inTurn(app.strapi, () =>
      writes.enter(new CrmWrite(app, false), events, async (write) => {
        if (await write.isAnySubscribed(events)) return tracked(write);
        return isOwn ? app.db.transaction(() => run()) : run();
      })
    );
  });

/** Notes the document that a call names, before the call writes any of its rows. */
export const trackNamedDocument = async (
  write: CrmWrite,
  sources: readonly WatchedSource[],
  { action, params: { documentId } }: DocumentCall
): Promise<void> => {
  if (!documentId || action === 'clone') return;
  for (const watched of sources) {
    // Objects that unpublishing hides are remembered, with or without subscribers.
    const isTracked = watched.form !== null || action === 'unpublish';
    if (!isTracked && !(await write.isAnySubscribed(watched.events))) continue;
    await write.trackDocuments(watched, [documentId], impactOf(watched, 'update', null));
  }
};

/**
 * Makes a document service call that writes several rows one unit of work: publish deletes and inserts a row,
 * components precede their owner, clone copies relations last. Other calls are one write, which `wrapWrites` handles;
 * their context begins here, before the host opens its transaction.
 */
const wrapDocuments = (app: App, plan: WatchPlan): void =>
  aroundCalls(app.strapi, (call, run) => {
    const sources = plan.byUid.get(call.uid) ?? [];
    const compound = plan.compound.has(call.uid) || (call.action === 'clone' && sources.length > 0);
    if (silenced.has(app) || !DOCUMENT_WRITES.has(call.action)) return run();
    if (!compound && sources.length === 0) return run();
    const events = plan.eventsByUid.get(call.uid) ?? [];
    const isOwn = sources.some(({ source }) => source.own);
    if (!compound && !isOwn && knownHeard(app, sources, events) === false) return run();
    return inTurn(app.strapi, () => {
      if (!compound) {
        subscribersOf(app).prefetch(events);
        return runningCall(app.strapi, run);
      }
      return inUnitOfWork(app, events, async (write) => {
        await trackNamedDocument(write, sources, call);
        return run();
      });
    });
  });

/** Tracks what every write to a watched type is about to change, single and bulk, of any origin. */
const watchWrites = (app: App, plan: WatchPlan): void => {
  const tracking =
    (track: (write: CrmWrite, event: WriteEvent) => Promise<void>) =>
    (event: WriteEvent): Promise<void> | void => {
      const write = writes.tracked;
      if (write) return track(write, event);
    };
  const beforeCreate = tracking(async (write, event) => {
    const rows = [event.params.data ?? []].flat() as Data[];
    for (const watched of plan.byUid.get(event.model.uid) ?? []) {
      const reading = write.trackCreated(watched, rows);
      if (reading) await reading;
    }
    const { uid } = event.model;
    if (!plan.relationsByTarget.has(uid) && !plan.exclusiveRelations.has(uid)) return;
    for (const row of rows) await write.trackRelated(plan, 'create', event, row);
  });
  const beforeChange = (action: 'update' | 'delete') =>
    tracking(async (write, event) => {
      for (const watched of plan.byUid.get(event.model.uid) ?? []) {
        await write.trackMatching(watched, action, event);
      }
      await write.trackRelated(plan, action, event, (event.params.data ?? {}) as Data);
    });

  listenToWrites(app.strapi, plan.uids, {
    ...ofOneOrMany({
      beforeCreate,
      beforeUpdate: beforeChange('update'),
      beforeDelete: beforeChange('delete'),
    }),
    afterCreate({ model, params, result }: WriteEvent & { result?: unknown }) {
      for (const watched of plan.byUid.get(model.uid) ?? []) {
        writes.tracked?.keepRow(watched, params as { data?: Data }, result);
      }
    },
    afterCreateMany({ model, params }: WriteEvent) {
      for (const watched of plan.byUid.get(model.uid) ?? []) {
        writes.tracked?.keepInserted(watched, params.data as Data[]);
      }
    },
  });
};

export class SourcesService {
  private isListening = false;

  constructor(private readonly app: App) {}

  start(): void {
    silenced.delete(this.app);
    if (this.isListening) return;
    this.isListening = true;
    const plan = getWatchPlan(this.app);
    wrapDocuments(this.app, plan);
    wrapWrites(this.app, plan);
    watchWrites(this.app, plan);
  }

  /** Writes on this node send no events until `start()`: for a migration that should stay silent. */
  stop(): void {
    silenced.add(this.app);
  }
}

export const sourcesOf = (app: App): SourcesService =>
  app.strapi.service('plugin::switchboard.sources') as unknown as SourcesService;
