import { inChunks } from '../../database/written-rows';
import { ATTEMPTS_TABLE, type AttemptRow } from '../tables';
import type { DeliveryOutcome } from './store';
import type { Db } from '../../database/db';

/** Manual sends and answers that ask for a pause are unlimited: the log keeps the first attempts and the last ones. */
export const FIRST_KEPT = 7;
const LATEST_KEPT = 13;
export const ATTEMPTS_KEPT = FIRST_KEPT + LATEST_KEPT;

/** An attempt as its row of the log has it. Only text and numbers: so it crosses from thread to thread at little cost. */
export type LoggedAttempt = Omit<AttemptRow, 'id' | 'delivery_id' | 'webhook_id'>;

const columnsOf = ({ attempt, lease }: DeliveryOutcome): Omit<AttemptRow, 'id'> => ({
  delivery_id: lease.id,
  webhook_id: lease.delivery.webhook,
  ...attempt,
});

/** Rough bytes that an attempt adds to a statement. */
export const bytesOfAttempt = (attempt: LoggedAttempt): number =>
  Buffer.byteLength(attempt.url) +
  Buffer.byteLength(attempt.request_headers) +
  Buffer.byteLength(attempt.answer_headers ?? '') +
  Buffer.byteLength(attempt.answer_body ?? '');

const rows = (db: Db) => db.table(ATTEMPTS_TABLE);

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
export const appendAttempts = async (db: Db, outcomes: readonly DeliveryOutcome[]) => {
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
