import { getPublisher } from '../../webhooks/publish';
import type { Form } from '../mapping/forms';
import { submitForm } from '../forms/submit';
import { type After, type CrmEvent, KIND_RULES } from '../rules';
import { withSubject } from '../rules/subject';
import type { Payload } from '../rules/types';
import type { Entry } from '../mapping/mapping';
import { inChunks } from '../../database/written-rows';
import { readRows, serialize, tagsOf } from '../mapping/records';
import type { WatchedSource } from '../mapping/watched-types';
import { logSkipped } from './tracked-changes';
import { unpublishedOf } from './unpublished';
import type { TrackedChange, WriteContext } from '../write-context';
import type { App } from '../../app';

type Chunk = readonly (readonly [id: string, change: TrackedChange])[];

const rowsAfter = async (
  app: App,
  watched: WatchedSource,
  tracked: Chunk
): Promise<Map<string, Entry>> => {
  const rows = new Map<string, Entry>();
  const unread: string[] = [];
  for (const [id, change] of tracked) {
    if (change.row) rows.set(id, change.row);
    else unread.push(id);
  }
  if (unread.length > 0) {
    const reading = { keys: null, tags: tracked.some(([, { tags }]) => tags) };
    const read = await readRows(app, watched, { documentId: { $in: unread } }, reading);
    for (const row of read) rows.set(String(row.documentId), row);
  }
  return rows;
};

/**
 * What unpublishing hides, kept apart: a record that is gone from among the published ones but still
 * there has no event, and one that comes back is compared with what it was.
 * @returns the changes that can still have an event.
 */
const withoutUnpublished = async (
  app: App,
  watched: WatchedSource,
  tracked: Chunk,
  rows: ReadonlyMap<string, Entry>
): Promise<Chunk> => {
  const memory = await unpublishedOf(app, watched);
  const unsettled = tracked.filter(([id, { before }]) => !before || !rows.has(id));
  if (unsettled.length === 0) return tracked;
  const ids = unsettled.map(([id]) => id);
  const remembered = await memory.load(ids);
  const existing = await memory.existing(ids.filter((id) => !rows.has(id)));
  const silent = new Set<string>();
  for (const [id, change] of unsettled) {
    if (existing.has(id)) {
      silent.add(id);
      if (change.before) await memory.save(id, change.before);
      continue;
    }
    const last = remembered.get(id);
    if (!last) continue;
    change.before ??= last;
    await memory.forget([id]);
  }
  return tracked.filter(([id]) => !silent.has(id));
};

const afterOf = (
  watched: WatchedSource,
  row: Entry | undefined,
  change: TrackedChange
): After | null => {
  if (!row) return null;
  const tags = change.tags ? tagsOf(watched.source, watched.tagSource, row) : null;
  return { payload: serialize(watched.source, row), tags };
};

const eventsOf = (
  { app, origin }: WriteContext,
  watched: WatchedSource,
  id: string,
  tracked: TrackedChange,
  row: Entry | undefined
): CrmEvent[] => {
  if (tracked.unknown) return [];
  try {
    const after = afterOf(watched, row, tracked);
    const { bookkeeping } = watched;
    const change = { before: tracked.before, after, origin, bookkeeping };
    return KIND_RULES[watched.source.kind]?.derive(change) ?? [];
  } catch (error) {
    // A computed field that fails costs its event; it never costs the site its write.
    logSkipped(app, watched, { documentId: id }, error);
    return [];
  }
};

const submitEntries = async (
  app: App,
  watched: WatchedSource,
  form: Form,
  tracked: Chunk,
  rows: ReadonlyMap<string, Entry>
): Promise<void> => {
  for (const [id, { before, unknown }] of tracked) {
    const row = rows.get(id);
    if (before || unknown || !row) continue;
    let entry: Payload;
    try {
      entry = serialize(watched.source, row);
    } catch (error) {
      logSkipped(app, watched, row, error);
      continue;
    }
    await submitForm(app, form, entry);
  }
};

/** Compares some of the records with what they are now and hands their events over to be queued. */
const publishChunk = async (
  context: WriteContext,
  watched: WatchedSource,
  chunk: Chunk
): Promise<void> => {
  const { app } = context;
  const rows = await rowsAfter(app, watched, chunk);
  const tracked = watched.draftAndPublish
    ? await withoutUnpublished(app, watched, chunk, rows)
    : chunk;
  if (watched.form) {
    await submitEntries(app, watched, watched.form, tracked, rows);
    return;
  }
  const events = tracked.flatMap(([id, change]) =>
    eventsOf(context, watched, id, change, rows.get(id))
  );
  const subscriptions = await context.subscriptions(watched.events);
  const subscribed = events.filter(({ event }) => subscriptions.isSubscribed(event));
  await getPublisher(app).publish(subscribed.map(withSubject), subscriptions);
};

/** Publishes what happened to every record that a write changed, in the write's transaction. */
export const publishChanges = async (context: WriteContext): Promise<void> => {
  for (const [watched, changes] of context.changes) {
    for (const chunk of inChunks([...changes])) await publishChunk(context, watched, chunk);
  }
};
