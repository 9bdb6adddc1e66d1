import { uuidV7 } from '../../runtime/uuid-v7';
import { type DeliveryRow, type MessageRow, MESSAGES_TABLE } from '../tables';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/**
 * The frozen part of an event: the body without the delivery's id (docs/contract-webhooks.md#envelope).
 * Both are JSON as it is sent.
 */
export interface FrozenMessage {
  event: string;
  /** When it happened, epoch milliseconds. */
  at: number;
  /** `"event":…,"created_at":…,"site":…` */
  frame: string;
  /** The envelope's `data`. */
  data: string;
}

type Pieces = Pick<FrozenMessage, 'frame' | 'data'>;

/** The bytes that every attempt of a delivery sends. */
export const bodyOf = (deliveryId: string, { frame, data }: Pieces): string =>
  `{"id":"${deliveryId}",${frame},"data":${data}}`;

const rows = (db: Db) => db.table(MESSAGES_TABLE);

/** A message of several deliveries that are about to be queued. */
export interface SharedMessage extends FrozenMessage {
  /** How many deliveries there will be. */
  deliveries: number;
  /** Its row, once it is stored with the first of them. */
  id: number | null;
}

/** Stores messages in `tx`'s transaction, and gives them their ids. */
export const insertMessages = async (db: Db, messages: readonly SharedMessage[]): Promise<void> => {
  if (messages.length === 0) return;
  const site = db.site.instance;
  const byKey = new Map(messages.map((message) => [uuidV7(message.at), message]));
  const ids = await db.insertForIds(
    MESSAGES_TABLE,
    [...byKey].map(([key, { event, at, frame, data, deliveries }]) => ({
      document_id: key,
      site_instance: site,
      event,
      deliveries,
      frame,
      data,
      created_at: at,
    }))
  );
  for (const [key, message] of byKey) message.id = ids.get(key) ?? null;
};

/** Characters of messages in memory, which all deliveries of one event read. */
const CACHED_CHARACTERS = 4_000_000;

interface Cached {
  /** Its reading, which may be under way: claims that end together mostly need the same messages. */
  pieces: Promise<Pieces | undefined>;
  characters: number;
}

interface Cache {
  /** The oldest first. */
  messages: Map<number, Cached>;
  characters: number;
}

const createCache = (): Cache => ({ messages: new Map(), characters: 0 });

/** Messages never change, so what was read once holds. */
const remember = (
  cache: Cache,
  id: number,
  reading: Promise<ReadonlyMap<number, Pieces>>
): void => {
  const cached: Cached = { pieces: reading.then((found) => found.get(id)), characters: 0 };
  cache.messages.set(id, cached);
  const keep = (pieces?: Pieces): void => {
    if (!pieces) {
      cache.messages.delete(id);
      return;
    }
    cached.characters = pieces.frame.length + pieces.data.length;
    cache.characters += cached.characters;
    for (const [oldest, { characters }] of cache.messages) {
      if (cache.characters <= CACHED_CHARACTERS || oldest === id) return;
      if (characters === 0) continue;
      cache.messages.delete(oldest);
      cache.characters -= characters;
    }
  };
  cached.pieces.then(keep, () => keep());
};

const readNow = async (db: Db, ids: readonly number[]): Promise<ReadonlyMap<number, Pieces>> => {
  const read = (await rows(db)
    .select('id', 'frame', 'data')
    .whereIn('id', [...ids])) as Pick<MessageRow, 'id' | 'frame' | 'data'>[];
  return new Map(read.map(({ id, frame, data }) => [Number(id), { frame, data }]));
};

const readMessages = async (
  db: Db,
  app: App,
  ids: readonly number[]
): Promise<ReadonlyMap<number, Pieces>> => {
  // A transaction may see messages that others do not.
  if (app.db.inTransaction()) return readNow(db, ids);
  const cache = app.part(createCache);
  const unread = ids.filter((id) => !cache.messages.has(id));
  if (unread.length > 0) {
    const reading = readNow(db, unread);
    for (const id of unread) remember(cache, id, reading);
  }
  const answers = ids.map(async (id) => [id, await cache.messages.get(id)?.pieces] as const);
  const found = await Promise.all(answers);
  return new Map(found.flatMap(([id, pieces]) => (pieces ? [[id, pieces] as const] : [])));
};

type WithBody = Pick<DeliveryRow, 'document_id' | 'body' | 'message_id'>;

/** The bodies of deliveries, in their order; null if a message is gone, which somebody has deleted. */
export const readBodies = async (
  db: Db,
  app: App,
  deliveries: readonly WithBody[]
): Promise<(string | null)[]> => {
  const ids = deliveries.flatMap(({ body, message_id: id }) =>
    body === null && id !== null ? [Number(id)] : []
  );
  const messages = ids.length > 0 ? await readMessages(db, app, [...new Set(ids)]) : null;
  return deliveries.map(({ document_id: deliveryId, body, message_id: id }) => {
    if (body !== null) return body;
    const pieces = messages?.get(Number(id));
    return pieces ? bodyOf(deliveryId, pieces) : null;
  });
};

/**
 * Lets go of messages whose deliveries were removed in `tx`'s transaction, and removes those
 * that no delivery needs any more.
 * @param ids a message's id as often as deliveries of it were removed
 */
export const releaseMessages = async (db: Db, ids: readonly number[]): Promise<void> => {
  const counts = new Map<number, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  const byCount = new Map<number, number[]>();
  for (const [id, count] of counts) byCount.set(count, [...(byCount.get(count) ?? []), id]);
  // In the order of their ids, as another node may be removing others of theirs.
  await rows(db)
    .select('id')
    .whereIn('id', [...counts.keys()])
    .orderBy('id')
    .forUpdate();
  for (const [count, some] of byCount) {
    await rows(db).whereIn('id', some).decrement('deliveries', count);
  }
  await rows(db)
    .whereIn('id', [...counts.keys()])
    .where('deliveries', '<=', 0)
    .delete();
};
