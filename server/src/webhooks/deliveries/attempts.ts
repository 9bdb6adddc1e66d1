import type { Attempt } from '../../../../shared/contracts/webhooks';
import { isoTime } from '../../runtime/text';
import { ATTEMPTS_TABLE, type AttemptRow } from '../tables';
import type { Db } from '../../database/db';

/**
 * The number of sends by hand is unlimited, and so is that of answers that ask for a pause; the log keeps
 * the first attempts of the schedule and the last.
 */
const FIRST_KEPT = 7;
const LATEST_KEPT = 13;
const ATTEMPTS_KEPT = FIRST_KEPT + LATEST_KEPT;
const REMOVED_AT_ONCE = 500;

/** One attempt to be appended. */
export interface NewAttempt {
  /** The id of the delivery's row. */
  delivery: number;
  webhook: number;
  attempt: Attempt;
  /** The delivery's `tries` after it, and by how much its receiver has put it off, in milliseconds. */
  tries: number;
  pausedMs: number;
}

type Columns = Omit<AttemptRow, 'id'>;

const columnsOf = ({ delivery, webhook, attempt }: NewAttempt): Columns => ({
  delivery_id: delivery,
  webhook_id: webhook,
  at: Date.parse(attempt.at),
  manual: attempt.manual,
  error: attempt.error,
  duration_ms: attempt.duration_ms,
  url: attempt.request.url,
  request_headers: JSON.stringify(attempt.request.headers),
  status: attempt.answer?.status ?? null,
  answer_headers: attempt.answer && JSON.stringify(attempt.answer.headers),
  answer_body: attempt.answer?.body ?? null,
  truncated: attempt.answer?.truncated ?? null,
});

const toAttempt = (row: AttemptRow): Attempt => ({
  at: isoTime(Number(row.at)),
  request: {
    url: row.url,
    headers: JSON.parse(row.request_headers) as Record<string, string>,
  },
  answer:
    row.status === null
      ? null
      : {
          status: Number(row.status),
          headers: JSON.parse(row.answer_headers ?? '{}') as Record<string, string>,
          body: row.answer_body ?? '',
          truncated: Boolean(row.truncated),
        },
  error: row.error,
  duration_ms: Number(row.duration_ms),
  manual: Boolean(row.manual),
});

/** Each header's quotes, colon and comma in JSON. */
const AROUND_HEADER = 6;

const bytesOfHeaders = (headers: Readonly<Record<string, string>>): number => {
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value) + AROUND_HEADER;
  }
  return bytes;
};

/** Rough bytes that an attempt adds to a statement; every attempt is measured, so nothing is serialised. */
export const bytesOfAttempt = ({ request, answer }: Attempt): number =>
  Buffer.byteLength(request.url) +
  bytesOfHeaders(request.headers) +
  (answer ? Buffer.byteLength(answer.body) + bytesOfHeaders(answer.headers) : 0);

const rows = (db: Db) => db.table(ATTEMPTS_TABLE);

/** Removes the attempts in the middle of deliveries that have had many. */
const removeMiddle = async (db: Db, deliveries: readonly number[]): Promise<void> => {
  const found = (await rows(db)
    .select('id', 'delivery_id')
    .whereIn('delivery_id', [...deliveries])
    .orderBy('id')) as Pick<AttemptRow, 'id' | 'delivery_id'>[];
  const byDelivery = new Map<number, number[]>();
  for (const { id, delivery_id: delivery } of found) {
    const ids = byDelivery.get(Number(delivery));
    if (ids) ids.push(Number(id));
    else byDelivery.set(Number(delivery), [Number(id)]);
  }
  const gone = [...byDelivery.values()].flatMap((ids) => ids.slice(FIRST_KEPT, -LATEST_KEPT));
  for (let at = 0; at < gone.length; at += REMOVED_AT_ONCE) {
    await rows(db)
      .whereIn('id', gone.slice(at, at + REMOVED_AT_ONCE))
      .delete();
  }
};

/** Appends attempts, in the transaction that settles their deliveries. */
export const appendAttempts = async (db: Db, attempts: readonly NewAttempt[]): Promise<void> => {
  if (attempts.length === 0) return;
  await db.insert(ATTEMPTS_TABLE, attempts.map(columnsOf));
  // Pauses of its receiver and sends by hand do not count as `tries`.
  const many = attempts.filter(
    ({ attempt, pausedMs, tries }) => attempt.manual || pausedMs > 0 || tries > ATTEMPTS_KEPT
  );
  if (many.length > 0)
    await removeMiddle(
      db,
      many.map(({ delivery }) => delivery)
    );
};

/** The attempts of some deliveries that the log keeps, oldest first, by the ids of the deliveries' rows. */
export const readAttempts = async (
  db: Db,
  deliveries: readonly number[]
): Promise<Map<number, Attempt[]>> => {
  const found = new Map<number, Attempt[]>(deliveries.map((id) => [id, []]));
  if (deliveries.length === 0) return found;
  const kept = (await rows(db)
    .whereIn('delivery_id', [...deliveries])
    .orderBy('id')) as AttemptRow[];
  for (const row of kept) found.get(Number(row.delivery_id))?.push(toAttempt(row));
  // Another writer left more: `appendAttempts` leaves no more of them.
  for (const own of found.values()) {
    if (own.length > ATTEMPTS_KEPT) own.splice(FIRST_KEPT, own.length - ATTEMPTS_KEPT);
  }
  return found;
};

export const removeAttempts = async (db: Db, deliveries: readonly number[]): Promise<void> => {
  await rows(db)
    .whereIn('delivery_id', [...deliveries])
    .delete();
};
