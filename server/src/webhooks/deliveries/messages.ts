import { uuidV7 } from '../../runtime/ids';
import { type DeliveryRow, type MessageRow, MESSAGES_TABLE } from '../tables';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** An event without delivery id (docs/contract-webhooks.md#envelope); both parts are JSON as sent. */
export interface FrozenMessage {
  event: string;
  /** When it happened, epoch milliseconds. */
  at: number;
  /** `"event":…,"created_at":…,"site":…` */
  frame: string;
  data: string;
}

type Pieces = Pick<FrozenMessage, 'frame' | 'data'>;

/** The bytes that every attempt of a delivery sends. */
export const bodyOf = (deliveryId: string, { frame, data }: Pieces): string =>
  `{"id":"${deliveryId}",${frame},"data":${data}}`;

/** A message of several deliveries that are about to be queued. */
export interface SharedMessage extends FrozenMessage {
  deliveries: number;
  /** Its row, once it is stored with the first of them. */
  id: number | null;
}

/** Stores messages that are not stored yet in `tx`'s transaction, and gives them their ids. */
export const insertMessages = async (db: Db, messages: readonly SharedMessage[]): Promise<void> => {
  const unstored = new Set(messages.filter(({ id }) => id === null));
  if (unstored.size === 0) return;
  const byKey = new Map([...unstored].map((message) => [uuidV7(message.at), message]));
  const ids = await db.insertForIds(
    MESSAGES_TABLE,
    [...byKey].map(([key, { event, at, frame, data, deliveries }]) => ({
      document_id: key,
      site_instance: db.site.instance,
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

/** The messages that were read last, the oldest first; they never change. */
const createCache = () => {
  const messages = new Map<number, Pieces>();
  let characters = 0;
  const keep = (id: number, pieces: Pieces): void => {
    if (messages.has(id)) return;
    messages.set(id, pieces);
    characters += pieces.frame.length + pieces.data.length;
    for (const [oldest, others] of messages) {
      if (characters <= CACHED_CHARACTERS || oldest === id) return;
      messages.delete(oldest);
      characters -= others.frame.length + others.data.length;
    }
  };
  return { messages, keep };
};

const readMessages = async (db: Db, app: App, ids: readonly number[]) => {
  // A transaction may see messages that others do not.
  const cache = app.db.inTransaction() ? null : app.part(createCache);
  const found = new Map<number, Pieces>();
  for (const id of ids) {
    const known = cache?.messages.get(id);
    if (known) found.set(id, known);
  }
  const unread = ids.filter((id) => !found.has(id));
  if (unread.length === 0) return found;
  const read = (await db
    .table(MESSAGES_TABLE)
    .select('id', 'frame', 'data')
    .whereIn('id', unread)) as Pick<MessageRow, 'id' | 'frame' | 'data'>[];
  for (const { id, frame, data } of read) {
    found.set(Number(id), { frame, data });
    cache?.keep(Number(id), { frame, data });
  }
  return found;
};

/** The bodies of deliveries, in their order; null if a message was deleted. */
export const readBodies = async (
  db: Db,
  app: App,
  deliveries: readonly Pick<DeliveryRow, 'document_id' | 'body' | 'message_id'>[]
): Promise<(string | null)[]> => {
  const ids = new Set(
    deliveries.flatMap(({ body, message_id: id }) =>
      body === null && id !== null ? Number(id) : []
    )
  );
  const messages = ids.size > 0 ? await readMessages(db, app, [...ids]) : null;
  return deliveries.map(({ document_id: deliveryId, body, message_id: id }) => {
    if (body !== null) return body;
    const pieces = messages?.get(Number(id));
    return pieces ? bodyOf(deliveryId, pieces) : null;
  });
};
