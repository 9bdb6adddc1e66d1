import type { Core } from '@strapi/strapi';
import { errorText } from '../../error-text';
import { type Before, KIND_RULES, type Touching } from '../rules';
import type { Entry } from './mapping';
import { CHUNK, documentIdsOf, type Reading, readRows, type Where } from './rows';
import type { Scope, Touch } from './scope';
import { serialize, tagsOf } from './serialize';
import type { WatchedSource } from './watched';

/** What a write with such data may change; null data: anything. */
export const touchingOf = (
  watched: WatchedSource,
  action: Touching['action'],
  data: Record<string, unknown> | null
): Touching => {
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

/** Whether somebody asked for an event that this write may cause. */
export const isWanted = async (
  scope: Scope,
  watched: WatchedSource,
  touching: Touching
): Promise<boolean> => {
  const rules = KIND_RULES[watched.source.kind];
  if (!rules) return false;
  if (watched.form) return touching.action === 'create';
  const events = rules.possible(touching);
  // A record that is new in this scope must be known as new to whatever else writes it in here.
  if (touching.action === 'create')
    events.push(...rules.possible({ ...touching, action: 'update' }));
  if (events.length === 0) return false;
  const wanted = await scope.wanted();
  return events.some((event) => wanted.has(event));
};

const keysToRead = (watched: WatchedSource, touching: Touching): Reading => {
  if (touching.action !== 'delete') return { keys: touching.keys, tags: touching.tags };
  const slim = { contact: ['id', 'email'], deal: ['id', 'title'] }[watched.source.kind as string];
  return { keys: slim ? new Set(slim) : null, tags: false };
};

const stateOf = (
  strapi: Core.Strapi,
  watched: WatchedSource,
  row: Entry,
  reading: Reading
): Touch => {
  try {
    const whole = serialize(watched.source, row);
    const keys = watched.allKeys.filter((key) => !reading.keys || reading.keys.has(key));
    const payload = Object.fromEntries(keys.map((key) => [key, whole[key]]));
    const tags = reading.tags ? tagsOf(watched.source, watched.tagSource, row) : null;
    const before: Before = { payload, keys, tags };
    return { before, tags: reading.tags, row: null, unknown: false };
  } catch (error) {
    logSkipped(strapi, watched, row, error);
    return { before: null, tags: false, row: null, unknown: true };
  }
};

export const logSkipped = (
  strapi: Core.Strapi,
  watched: WatchedSource,
  row: Entry,
  error: unknown
): void => {
  strapi.log.error(
    `switchboard: no event for ${watched.source.kind} ${String(row.documentId)}: ${errorText(error)}`
  );
};

/** A later write of the same scope may touch keys that the first one left alone. */
const merge = (touch: Touch, later: Touch): void => {
  touch.row = null;
  if (!touch.before || !later.before || touch.unknown) return;
  const { before } = touch;
  const known = new Set(before.keys);
  const payload = { ...later.before.payload, ...before.payload };
  const keys = [...before.keys, ...later.before.keys.filter((key) => !known.has(key))];
  touch.before = { payload, keys, tags: before.tags ?? later.before.tags };
  touch.tags ||= later.tags;
};

const covers = (touch: Touch, watched: WatchedSource, reading: Reading): boolean => {
  if (!touch.before || touch.unknown) return true;
  const needed = reading.keys ?? watched.allKeys;
  const known = new Set(touch.before.keys);
  return [...needed].every((key) => known.has(key)) && (!reading.tags || touch.tags);
};

const remember = (
  strapi: Core.Strapi,
  scope: Scope,
  watched: WatchedSource,
  rows: readonly Entry[],
  reading: Reading
): void => {
  const touches = scope.touches(watched);
  for (const row of rows) {
    const id = String(row.documentId);
    const state = stateOf(strapi, watched, row, reading);
    const touch = touches.get(id);
    if (touch) merge(touch, state);
    else touches.set(id, state);
  }
};

/** Notes documents that are about to change, reading what they were where that is not known yet. */
export const touchDocuments = async (
  strapi: Core.Strapi,
  scope: Scope,
  watched: WatchedSource,
  documentIds: readonly string[],
  touching: Touching
): Promise<void> => {
  const reading = keysToRead(watched, touching);
  const touches = scope.touches(watched);
  const unread: string[] = [];
  for (const id of new Set(documentIds)) {
    const touch = touches.get(id);
    if (touch) {
      touch.row = null;
      touch.tags ||= reading.tags;
    }
    if (!touch || !covers(touch, watched, reading)) unread.push(id);
  }
  for (let start = 0; start < unread.length; start += CHUNK) {
    const ids = unread.slice(start, start + CHUNK);
    const rows = await readRows(strapi, watched, { documentId: { $in: ids } }, reading);
    const byId = new Map(rows.map((row) => [String(row.documentId), row]));
    // In the order of the write, not in the order in which the database answers.
    for (const id of ids) {
      const row = byId.get(id);
      if (row) remember(strapi, scope, watched, [row], reading);
      else if (!touches.has(id)) {
        touches.set(id, { before: null, tags: reading.tags, row: null, unknown: false });
      }
    }
  }
};

/** Whether a condition names one row, which is then the row that counts of its document. */
const isOneRow = (watched: WatchedSource, where: Where): boolean =>
  !watched.draftAndPublish &&
  !watched.localized &&
  Object.keys(where).length === 1 &&
  ['number', 'string'].includes(typeof (where.id ?? where.documentId));

/**
 * The same for whatever rows a write's own condition matches. One row is locked as it is read: two
 * that subscribe a contact at the same moment must not both find that it was not subscribed.
 */
export const touchMatching = async (
  strapi: Core.Strapi,
  scope: Scope,
  watched: WatchedSource,
  params: { where?: Where; filters?: unknown; _q?: unknown },
  touching: Touching
): Promise<void> => {
  const { where } = params;
  if (where && !params.filters && !params._q && isOneRow(watched, where)) {
    const reading = keysToRead(watched, touching);
    if (scope.touches(watched).size === 0) {
      const rows = await readRows(strapi, watched, where, reading, { lock: true });
      remember(strapi, scope, watched, rows, reading);
      return;
    }
  }
  for await (const ids of documentIdsOf(strapi, watched.uid, params)) {
    await touchDocuments(strapi, scope, watched, ids, touching);
  }
};
