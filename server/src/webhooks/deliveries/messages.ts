import { uuidV7 } from '../../runtime/uuid-v7';
import { type DeliveryRow, type MessageRow, MESSAGES_TABLE } from '../tables';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/**
 * What is frozen of an event: everything that is sent but the delivery's id
 * (docs/contract-webhooks.md#envelope). Both are JSON as it is sent.
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

/** What is read again and again while the deliveries of one event are sent, in characters. */
const CACHED_CHARACTERS = 4_000_000;

interface Cache {
  pieces: Map<number, Pieces>;
  characters: number;
  /** What is being read, by message: claims that end together mostly want the same ones. */
  reading: Map<number, Promise<ReadonlyMap<number, Pieces>>>;
}

const createCache = (): Cache => ({ pieces: new Map(), characters: 0, reading: new Map() });

const sizeOf = ({ frame, data }: Pieces): number => frame.length + data.length;

/** Messages never change, so what was read once holds. */
const remember = (cache: Cache, id: number, pieces: Pieces): void => {
  cache.pieces.set(id, pieces);
  cache.characters += sizeOf(pieces);
  for (const [oldest, old] of cache.pieces) {
    if (cache.characters <= CACHED_CHARACTERS || oldest === id) return;
    cache.pieces.delete(oldest);
    cache.characters -= sizeOf(old);
  }
};

const readNow = async (db: Db, ids: readonly number[]): Promise<ReadonlyMap<number, Pieces>> => {
  const read = (await rows(db)
    .select('id', 'frame', 'data')
    .whereIn('id', [...ids])) as Pick<MessageRow, 'id' | 'frame' | 'data'>[];
  return new Map(read.map(({ id, frame, data }) => [Number(id), { frame, data }]));
};

/** Reads those that nobody is reading, and waits for all of them. */
const readTogether = async (
  db: Db,
  app: App,
  { reading }: Cache,
  ids: readonly number[]
): Promise<ReadonlyMap<number, Pieces>> => {
  // A transaction may see messages that others do not.
  if (app.db.inTransaction()) return readNow(db, ids);
  const unasked = ids.filter((id) => !reading.has(id));
  if (unasked.length > 0) {
    const asked = readNow(db, unasked).finally(() => {
      for (const id of unasked) reading.delete(id);
    });
    for (const id of unasked) reading.set(id, asked);
  }
  const found = new Map<number, Pieces>();
  for (const answer of new Set(ids.map((id) => reading.get(id)))) {
    for (const [id, pieces] of (await answer) ?? []) found.set(id, pieces);
  }
  return found;
};

const readMessages = async (
  db: Db,
  app: App,
  ids: readonly number[]
): Promise<Map<number, Pieces>> => {
  const cache = app.part(createCache);
  const known = new Map<number, Pieces>();
  const unread: number[] = [];
  for (const id of ids) {
    const pieces = cache.pieces.get(id);
    if (pieces) known.set(id, pieces);
    else unread.push(id);
  }
  if (unread.length === 0) return known;
  const read = await readTogether(db, app, cache, unread);
  for (const id of unread) {
    const pieces = read.get(id);
    if (!pieces) continue;
    known.set(id, pieces);
    if (!cache.pieces.has(id)) remember(cache, id, pieces);
  }
  return known;
};

type WithBody = Pick<DeliveryRow, 'document_id' | 'body' | 'message_id'>;

/** The bodies of deliveries, in their order; null where a message is gone, which somebody has deleted. */
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
