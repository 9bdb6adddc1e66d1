import type { Attempt } from '../../../../shared/contracts/webhooks';
import { inChunks } from '../../database/written-rows';
import { ATTEMPTS_TABLE, type AttemptRow } from '../tables';
import type { DeliveryOutcome } from './store';
import type { Db } from '../../database/db';

/**
 * The number of sends by hand is unlimited, and so is that of answers that ask for a pause; the log keeps
 * the first attempts of the schedule and the last.
 */
export const FIRST_KEPT = 7;
const LATEST_KEPT = 13;
export const ATTEMPTS_KEPT = FIRST_KEPT + LATEST_KEPT;

const columnsOf = ({ attempt, lease }: DeliveryOutcome): Omit<AttemptRow, 'id'> => ({
  delivery_id: lease.id,
  webhook_id: lease.delivery.webhook,
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

/** Each header's quotes, colon and comma in JSON. */
const AROUND_HEADER = 6;

const bytesOfHeaders = (headers: Readonly<Record<string, string>>): number =>
  Object.entries(headers).reduce(
    (bytes, [name, value]) =>
      bytes + Buffer.byteLength(name) + Buffer.byteLength(value) + AROUND_HEADER,
    0
  );

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
  const byDelivery = new Map<number, number[]>(deliveries.map((id) => [id, []]));
  for (const { id, delivery_id: of } of found) byDelivery.get(Number(of))?.push(Number(id));
  const gone = [...byDelivery.values()].flatMap((ids) => ids.slice(FIRST_KEPT, -LATEST_KEPT));
  for (const some of inChunks(gone)) await rows(db).whereIn('id', some).delete();
};

/** Appends the attempts of outcomes, in the transaction that settles their deliveries. */
export const appendAttempts = async (
  db: Db,
  outcomes: readonly DeliveryOutcome[]
): Promise<void> => {
  if (outcomes.length === 0) return;
  await db.insert(ATTEMPTS_TABLE, outcomes.map(columnsOf));
  // Pauses of its receiver and sends by hand do not count as `tries`.
  const many = outcomes.filter(
    ({ attempt, lease: { delivery }, next }) =>
      attempt.manual ||
      delivery.pausedMs > 0 ||
      Number(next.pausedMs) > 0 ||
      next.tries > ATTEMPTS_KEPT
  );
  const ids = many.map(({ lease }) => lease.id);
  if (ids.length > 0) await removeMiddle(db, ids);
};
