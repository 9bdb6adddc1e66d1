import type { Core } from '@strapi/strapi';
import type { Form } from '../forms/resolve-form';
import { submitForm } from '../forms/submit';
import { getPublisher } from '../../webhooks/publisher';
import { type After, type CrmEvent, KIND_RULES } from '../rules';
import type { Entry } from './mapping';
import { CHUNK, readRows } from './rows';
import type { Scope, Touch } from './scope';
import { type Payload, serialize, tagsOf } from './serialize';
import { logSkipped } from './touch';
import { unpublishedOf } from './unpublished';
import type { WatchedSource } from './watched';

type Chunk = readonly (readonly [id: string, touch: Touch])[];

const rowsAfter = async (
  strapi: Core.Strapi,
  watched: WatchedSource,
  touches: Chunk
): Promise<Map<string, Entry>> => {
  const rows = new Map<string, Entry>();
  const unread: string[] = [];
  for (const [id, touch] of touches) {
    if (touch.row) rows.set(id, touch.row);
    else unread.push(id);
  }
  if (unread.length > 0) {
    const reading = { keys: null, tags: touches.some(([, { tags }]) => tags) };
    const read = await readRows(strapi, watched, { documentId: { $in: unread } }, reading);
    for (const row of read) rows.set(String(row.documentId), row);
  }
  return rows;
};

/**
 * What unpublishing hides, kept apart: a record that is gone from among the published ones but still
 * there says nothing, and one that comes back is compared with what it was.
 * @returns the touches that can still say something.
 */
const withoutUnpublished = async (
  strapi: Core.Strapi,
  watched: WatchedSource,
  touches: Chunk,
  rows: ReadonlyMap<string, Entry>
): Promise<Chunk> => {
  const memory = await unpublishedOf(strapi, watched);
  const unsettled = touches.filter(([id, { before }]) => !before || !rows.has(id));
  if (unsettled.length === 0) return touches;
  const ids = unsettled.map(([id]) => id);
  const [remembered, existing] = [await memory.load(ids), await memory.existing(ids)];
  const silent = new Set<string>();
  for (const [id, touch] of unsettled) {
    const isThere = existing.has(id);
    if (!rows.has(id) && isThere) {
      silent.add(id);
      if (touch.before) await memory.save(id, touch.before);
      continue;
    }
    const last = remembered.get(id);
    if (!last) continue;
    touch.before ??= last;
    await memory.forget([id]);
  }
  return touches.filter(([id]) => !silent.has(id));
};

const afterOf = (watched: WatchedSource, row: Entry | undefined, touch: Touch): After | null => {
  if (!row) return null;
  const tags = touch.tags ? tagsOf(watched.source, watched.tagSource, row) : null;
  return { payload: serialize(watched.source, row), tags };
};

const eventsOf = (
  strapi: Core.Strapi,
  scope: Scope,
  watched: WatchedSource,
  id: string,
  touch: Touch,
  row: Entry | undefined
): CrmEvent[] => {
  if (touch.unknown) return [];
  try {
    const after = afterOf(watched, row, touch);
    const { bookkeeping } = watched;
    const change = { before: touch.before, after, origin: scope.origin, bookkeeping };
    return KIND_RULES[watched.source.kind]?.derive(change) ?? [];
  } catch (error) {
    // A computed field that fails costs its event; it never costs the site its write.
    logSkipped(strapi, watched, { documentId: id }, error);
    return [];
  }
};

const submitEntries = async (
  strapi: Core.Strapi,
  watched: WatchedSource,
  form: Form,
  touches: Chunk,
  rows: ReadonlyMap<string, Entry>
): Promise<void> => {
  for (const [id, { before, unknown }] of touches) {
    const row = rows.get(id);
    if (before || unknown || !row) continue;
    let entry: Payload;
    try {
      entry = serialize(watched.source, row);
    } catch (error) {
      logSkipped(strapi, watched, row, error);
      continue;
    }
    await submitForm(strapi, form, entry);
  }
};

/**
 * Compares every record that a scope touched with what it is now and publishes what happened, in
 * the scope's transaction, in chunks.
 */
export const publishScope = async (strapi: Core.Strapi, scope: Scope): Promise<void> => {
  if (scope.touched.size === 0) return;
  for (const [watched, all] of scope.touched) {
    const touches = [...all];
    for (let start = 0; start < touches.length; start += CHUNK) {
      const chunk = touches.slice(start, start + CHUNK);
      const rows = await rowsAfter(strapi, watched, chunk);
      const speaking = watched.draftAndPublish
        ? await withoutUnpublished(strapi, watched, chunk, rows)
        : chunk;
      if (watched.form) {
        await submitEntries(strapi, watched, watched.form, speaking, rows);
        continue;
      }
      const events = speaking.flatMap(([id, touch]) =>
        eventsOf(strapi, scope, watched, id, touch, rows.get(id))
      );
      const wanted = await scope.wanted();
      await getPublisher(strapi).publish(events.filter(({ event }) => wanted.has(event)));
    }
  }
};
