import type { Core } from '@strapi/strapi';
import type { Attempt } from '../../../../../shared/contracts/webhooks';
import { type Executor, table } from '../../../database/connection';
import { insertRows } from '../../../database/insert-rows';
import { isoTime } from '../../../runtime/iso-time';
import { ATTEMPTS_TABLE, type AttemptRow } from '../../tables';

/** Sends by hand are without number; the log keeps the first tries of the schedule and the last. */
const ATTEMPTS_KEPT = 20;
const FIRST_KEPT = 7;

/** The attempts of a delivery that the log keeps, oldest first. */
export const keptAttempts = <T>(attempts: readonly T[]): T[] =>
  attempts.length <= ATTEMPTS_KEPT
    ? [...attempts]
    : [...attempts.slice(0, FIRST_KEPT), ...attempts.slice(FIRST_KEPT - ATTEMPTS_KEPT)];

/** One attempt to be appended. */
export interface NewAttempt {
  /** The id of the delivery's row. */
  delivery: number;
  webhook: number;
  attempt: Attempt;
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

const rows = (strapi: Core.Strapi, executor: Executor) => table(strapi, executor, ATTEMPTS_TABLE);

/** Sends by hand may go on for ever: of such a delivery, those in the middle go. */
const removeMiddle = async (
  strapi: Core.Strapi,
  executor: Executor,
  delivery: number
): Promise<void> => {
  const ids = (await rows(strapi, executor)
    .where({ delivery_id: delivery })
    .orderBy('id')
    .pluck('id')) as number[];
  const kept = new Set(keptAttempts(ids));
  const gone = ids.filter((id) => !kept.has(id));
  if (gone.length > 0) await rows(strapi, executor).whereIn('id', gone).delete();
};

/** Appends attempts, in the transaction that settles their deliveries. */
export const appendAttempts = async (
  strapi: Core.Strapi,
  executor: Executor,
  attempts: readonly NewAttempt[]
): Promise<void> => {
  if (attempts.length === 0) return;
  await insertRows(strapi, executor, ATTEMPTS_TABLE, attempts.map(columnsOf));
  for (const { attempt, delivery } of attempts) {
    if (attempt.manual) await removeMiddle(strapi, executor, delivery);
  }
};

/** The attempts of some deliveries, oldest first, by the ids of the deliveries' rows. */
export const readAttempts = async (
  strapi: Core.Strapi,
  executor: Executor,
  deliveries: readonly number[]
): Promise<Map<number, Attempt[]>> => {
  const found = new Map<number, Attempt[]>();
  if (deliveries.length === 0) return found;
  const all = (await rows(strapi, executor)
    .whereIn('delivery_id', [...deliveries])
    .orderBy('id')) as AttemptRow[];
  for (const row of all) {
    const id = Number(row.delivery_id);
    const own = found.get(id);
    if (own) own.push(toAttempt(row));
    else found.set(id, [toAttempt(row)]);
  }
  return found;
};

export const removeAttempts = async (
  strapi: Core.Strapi,
  executor: Executor,
  deliveries: readonly number[]
): Promise<void> => {
  await rows(strapi, executor)
    .whereIn('delivery_id', [...deliveries])
    .delete();
};
