import {
  documentIdsOf,
  existingOf,
  inChunks,
  lockVersions,
  lockWritten,
  type Where,
  type WriteEvent,
  writtenRows,
} from '../../database/written-rows';
import { errorText, isRecord } from '../../runtime/text';
import type { Entry } from '../mapping/mapping';
import { type Reading, readRows, serialize, tagsOf } from '../mapping/records';
import type { WatchedRelation, WatchedSource, WatchPlan } from '../mapping/watched-types';
import { type Before, KIND_RULES, type WriteImpact } from '../rules';
import type { TrackedChange, WriteContext } from '../write-context';
import type { App } from '../../app';

/** What a write with such data may change; null data: anything. */
export const impactOf = (
  watched: WatchedSource,
  action: WriteImpact['action'],
  data: Record<string, unknown> | null
): WriteImpact => {
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

/** Whether somebody subscribed to an event that this write may cause. */
export const isSubscribed = async (
  context: WriteContext,
  watched: WatchedSource,
  impact: WriteImpact
): Promise<boolean> => {
  const rules = KIND_RULES[watched.source.kind];
  if (!rules) return false;
  if (watched.form) return impact.action === 'create';
  const events = rules.possible(impact);
  // A later write of the same unit of work must find out that this record is new in it.
  if (impact.action === 'create') events.push(...rules.possible({ ...impact, action: 'update' }));
  if (events.length === 0) return false;
  const subscriptions = await context.subscriptions(watched.events);
  return events.some((event) => subscriptions.isSubscribed(event));
};

/** What an event of a deletion says, by kind; the others say no more than which record it was. */
const KEYS_OF_DELETED: Readonly<Record<string, readonly string[]>> = {
  contact: ['id', 'email'],
  deal: ['id', 'title'],
};

/** What has to be known of a record before such a write. */
const readingBefore = (watched: WatchedSource, impact: WriteImpact): Reading => {
  if (impact.action !== 'delete') return { keys: impact.keys, tags: impact.tags };
  const keys = KEYS_OF_DELETED[watched.source.kind];
  return { keys: keys ? new Set(keys) : null, tags: false };
};

export const logSkipped = (app: App, watched: WatchedSource, row: Entry, error: unknown): void => {
  app.log.error(
    `switchboard: no event for ${watched.source.kind} ${String(row.documentId)}: ${errorText(error)}`
  );
};

/** A record that does not exist yet. */
export const newRecord = (tags: boolean): TrackedChange => ({
  before: null,
  tags,
  row: null,
  unknown: false,
});

/** A record as it is now, which is before the write. */
const existingRecord = (
  app: App,
  watched: WatchedSource,
  row: Entry,
  reading: Reading
): TrackedChange => {
  try {
    const whole = serialize(watched.source, row);
    const keys = watched.allKeys.filter((key) => !reading.keys || reading.keys.has(key));
    const payload = Object.fromEntries(keys.map((key) => [key, whole[key]]));
    const tags = reading.tags ? tagsOf(watched.source, watched.tagSource, row) : null;
    return { before: { payload, keys, tags }, tags: reading.tags, row: null, unknown: false };
  } catch (error) {
    logSkipped(app, watched, row, error);
    return { before: null, tags: false, row: null, unknown: true };
  }
};

/** What the first write found stays; a later one may add keys that the first one left alone. */
const mergeBefore = (first: Before, later: Before): Before => {
  const known = new Set(first.keys);
  return {
    payload: { ...later.payload, ...first.payload },
    keys: [...first.keys, ...later.keys.filter((key) => !known.has(key))],
    tags: first.tags ?? later.tags,
  };
};

const remember = (
  context: WriteContext,
  watched: WatchedSource,
  row: Entry,
  reading: Reading
): void => {
  const changes = context.changesOf(watched);
  const id = String(row.documentId);
  const change = changes.get(id);
  const found = existingRecord(context.app, watched, row, reading);
  if (!change) {
    changes.set(id, found);
    return;
  }
  change.row = null;
  if (!change.before || !found.before) return;
  change.before = mergeBefore(change.before, found.before);
  change.tags ||= found.tags;
};

/** Whether nothing of a record has to be read that is not known already. */
const isKnown = (change: TrackedChange, watched: WatchedSource, reading: Reading): boolean => {
  // New in this unit of work, or never to have an event.
  if (!change.before || change.unknown) return true;
  const known = new Set(change.before.keys);
  const needed = [...(reading.keys ?? watched.allKeys)];
  return needed.every((key) => known.has(key)) && (!reading.tags || change.before.tags !== null);
};

/**
 * Notes that records which are tracked already change again.
 * @returns the ids of those of which something has to be read first
 */
const trackAgain = (
  changes: ReadonlyMap<string, TrackedChange>,
  watched: WatchedSource,
  documentIds: readonly string[],
  reading: Reading
): string[] =>
  [...new Set(documentIds)].filter((id) => {
    const change = changes.get(id);
    if (!change) return true;
    change.row = null;
    change.tags ||= reading.tags;
    return !isKnown(change, watched, reading);
  });

/**
 * Tracks documents that are about to change, reading of each what is not known yet. Each is locked
 * before it is read: of two writers that overlap, the second one compares with what the first one left.
 */
export const trackDocuments = async (
  context: WriteContext,
  watched: WatchedSource,
  documentIds: readonly string[],
  impact: WriteImpact
): Promise<void> => {
  const reading = readingBefore(watched, impact);
  const changes = context.changesOf(watched);
  const unread = trackAgain(changes, watched, documentIds, reading);
  for (const ids of inChunks(unread)) {
    const where = { documentId: { $in: ids } };
    if (watched.draftAndPublish || watched.localized) {
      await lockVersions(context.app.strapi, watched.uid, ids);
    }
    const rows = await readRows(context.app, watched, where, reading, {
      lock: true,
      orderBy: { id: 'asc' },
    });
    const byId = new Map(rows.map((row) => [String(row.documentId), row]));
    // In the order of the write, not in the order in which the database answers.
    for (const id of ids) {
      const row = byId.get(id);
      if (row) remember(context, watched, row, reading);
      else if (!changes.has(id)) changes.set(id, newRecord(reading.tags));
    }
  }
};

/**
 * Tracks documents of which rows are about to be created: new ones, or a further row (a published one,
 * another language) of one that is there.
 */
export const trackGiven = async (
  context: WriteContext,
  watched: WatchedSource,
  documentIds: readonly string[],
  impact: WriteImpact
): Promise<void> => {
  if (documentIds.length === 0) return;
  const changes = context.changesOf(watched);
  const unknown = documentIds.filter((id) => !changes.has(id));
  const existing = new Set(await existingOf(context.app.strapi, watched.uid, unknown));
  const { tags } = readingBefore(watched, impact);
  for (const id of unknown) if (!existing.has(id)) changes.set(id, newRecord(tags));
  await trackDocuments(context, watched, documentIds, impact);
};

/** Tracks the documents that a write changes, by its own condition. */
export const trackMatching = async (
  context: WriteContext,
  watched: WatchedSource,
  event: WriteEvent,
  impact: WriteImpact
): Promise<void> => {
  const { app } = context;
  const locked = await lockWritten(app.strapi, event);
  if (locked) {
    const ids = [...new Set(locked.map(({ documentId }) => documentId))];
    await trackDocuments(context, watched, ids, impact);
    return;
  }
  // One row, by its id: it is locked as it is read.
  const where = event.params.where as Where;
  const isWhole = !watched.draftAndPublish && !watched.localized;
  if (isWhole && context.changesOf(watched).size === 0) {
    const reading = readingBefore(watched, impact);
    const rows = await readRows(app, watched, where, reading, { lock: true });
    for (const row of rows) remember(context, watched, row, reading);
    return;
  }
  for await (const ids of documentIdsOf(app.strapi, watched.uid, { where })) {
    await trackDocuments(context, watched, ids, impact);
  }
};

type RowId = number | string;

/** What a write says about a relation, in any of the forms that the host's entity manager takes. */
interface RelationInput {
  /** The links that are not named go. */
  replaces: boolean;
  /** Row ids that come, go or stay. */
  ids: RowId[];
}

const idsOf = (value: unknown): RowId[] => {
  const list = Array.isArray(value) ? value : [value];
  return list.flatMap((one: unknown) => {
    const id = isRecord(one) ? one.id : one;
    return typeof id === 'number' || typeof id === 'string' ? [id] : [];
  });
};

/** Row ids that are linked once the write is done. */
const connectedIds = (value: unknown): RowId[] =>
  !isRecord(value) || 'id' in value ? idsOf(value) : [...idsOf(value.set), ...idsOf(value.connect)];

export const relationInput = (value: unknown): RelationInput => {
  const ids = connectedIds(value);
  if (!isRecord(value) || 'id' in value) return { replaces: true, ids };
  return { replaces: value.set !== undefined, ids: [...ids, ...idsOf(value.disconnect)] };
};

type Data = Record<string, unknown>;
type Action = 'create' | 'update' | 'delete';

const withIds = (ids: readonly RowId[]): Where[] =>
  inChunks(ids).map((chunk) => ({ id: { $in: chunk } }));

/** What a write edits of a relation's other end; null: nothing. */
interface EditedEnd {
  /** Records that are linked to a written one may lose it. */
  unlinks: boolean;
  /** Records that are named. */
  ids: readonly RowId[];
}

const editedEnd = (relation: WatchedRelation, action: Action, data: Data): EditedEnd | null => {
  if (action === 'delete') return { unlinks: true, ids: [] };
  const value = relation.inverse ? data[relation.inverse] : undefined;
  if (value === undefined) return null;
  const { replaces, ids } = relationInput(value);
  // An end that has room for one link gives up the one it had, even where one is only "connected".
  const unlinks = replaces || (relation.exclusive && connectedIds(value).length > 0);
  return { unlinks: unlinks && action === 'update', ids };
};

const linked = ({ attribute }: WatchedRelation, wheres: readonly Where[]): Where[] =>
  wheres.map((where) => ({ [attribute]: where }));

const isHeard = ({ watched, attribute }: WatchedRelation, context: WriteContext) =>
  isSubscribed(context, watched, impactOf(watched, 'update', { [attribute]: [] }));

/** Tracks the watched records that match any of the conditions: their relation may change. */
const trackWhere = async (
  context: WriteContext,
  { watched, attribute }: WatchedRelation,
  conditions: readonly Where[]
): Promise<void> => {
  const impact = impactOf(watched, 'update', { [attribute]: [] });
  for (const where of conditions) {
    for await (const ids of documentIdsOf(context.app.strapi, watched.uid, { where })) {
      await trackDocuments(context, watched, ids, impact);
    }
  }
};

/**
 * Tracks the records that a write changes without naming them. They are at the other end of a
 * relation that it edits: a tag that takes contacts on, a company that is deleted. Or they are at the
 * same end, where a record has one holder at most: the host takes it from the previous holder without
 * a lifecycle. The written rows are locked first: whoever links a record to one that is being deleted
 * waits, or has done so before the records are looked for.
 */
export const trackRelated = async (
  context: WriteContext,
  plan: WatchPlan,
  action: Action,
  event: WriteEvent,
  data: Data
): Promise<void> => {
  const { uid } = event.model;
  for (const relation of plan.relationsByTarget.get(uid) ?? []) {
    const edited = editedEnd(relation, action, data);
    if (!edited || !(await isHeard(relation, context))) continue;
    const written = edited.unlinks ? await writtenRows(context.app.strapi, event) : [];
    const unlinked = linked(relation, withIds(written.map(({ id }) => id)));
    const conditions = [...unlinked, ...withIds(edited.ids)];
    await trackWhere(context, relation, conditions);
  }
  if (action === 'delete') return;
  for (const relation of plan.exclusiveRelations.get(uid) ?? []) {
    const value = data[relation.attribute];
    const ids = value === undefined ? [] : connectedIds(value);
    // Records that lose a link because the write gives it to another record of their own type.
    if (ids.length === 0 || !(await isHeard(relation, context))) continue;
    await trackWhere(context, relation, linked(relation, withIds(ids)));
  }
};
