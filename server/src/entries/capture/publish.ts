import { inChunks } from '../../database/matching-documents';
import { getPublisher } from '../../webhooks/publish';
import { derive } from '../rules/derive';
import { type EventAboutEntry, eventOf } from '../rules';
import type { Version } from '../rules/shape';
import type { EntryType } from '../types';
import { readDraftLocales, readVersions, type Versions } from './versions';
import type { EntryWrite, TrackedDocument } from '../write';

type Chunk = readonly (readonly [id: string, tracked: TrackedDocument])[];

const isGone = (before: readonly Version[], after: readonly Version[]): boolean =>
  before.some(({ locale, status }) => {
    const isSame = (one: Version): boolean => one.locale === locale && one.status === 'published';
    return status === 'published' && !after.some(isSame);
  });

/** What is not published any more is unpublished where a draft of it is left, and else deleted. */
const draftsLeft = async (
  { strapi }: EntryWrite,
  type: EntryType,
  chunk: Chunk,
  after: Versions
): Promise<Map<string, ReadonlySet<string | null>>> => {
  if (!type.draftAndPublish) return new Map();
  const gone = chunk.filter(([id, { before }]) => isGone(before, after.get(id) ?? []));
  if (gone.length === 0) return new Map();
  return readDraftLocales(
    strapi,
    type,
    gone.map(([id]) => id)
  );
};

const publishChunk = async (write: EntryWrite, type: EntryType, chunk: Chunk): Promise<void> => {
  const { strapi } = write;
  const ids = chunk.map(([id]) => id);
  const after = await readVersions(strapi, type, ids);
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
  if (subscribed.length > 0) await getPublisher(strapi).publish(subscribed, subscriptions);
};

/** Compares every document that a write may have changed, and publishes what happened to it, in its transaction. */
export const publishChanges = async (write: EntryWrite): Promise<void> => {
  for (const [type, documents] of write.documents) {
    for (const chunk of inChunks([...documents])) await publishChunk(write, type, chunk);
  }
};
