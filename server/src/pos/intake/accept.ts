import type { Core } from '@strapi/strapi';
import { type Executor, inTransaction, table } from '../../database/connection';
import { defaultLocation } from '../../stock/locations';
import { getRecordStore } from '../processing/record-store';
import type { ConnectionMode, EventState } from '../rules/states';
import type { BodyIssue } from '../rules/strict-json';
import { checkLocationRef } from '../rules/validate';
import { type PosEventRow, POS_EVENTS_TABLE } from '../tables';
import {
  type CountJudge,
  isCount,
  openCountJudge,
  type StaleLine,
  type Stocktake,
} from './stale-counts';
import { type Candidate, locate, newRow, type Passed, type Submission } from './submission';

export type Acceptance =
  | { outcome: 'accepted'; eventId: number; stale: StaleLine[] }
  | {
      outcome: 'duplicate';
      eventId: number;
      state: EventState;
      mismatch: boolean;
      mode: ConnectionMode;
      stale: StaleLine[];
    }
  | { outcome: 'invalid'; issue: BodyIssue }
  | { outcome: 'stale'; stale: StaleLine[] };

/** An id is taken within its connection. */
const takenKey = (connection: number, idDigest: string): string => `${connection}/${idDigest}`;

const keyOf = ({ connection, idDigest }: Submission): string => takenKey(connection.id, idDigest);

const ANSWERED = [
  'id',
  'connection_id',
  'external_digest',
  'state',
  'mode',
  'body_digest',
  'payload_mismatch',
  'stale',
] as const satisfies readonly (keyof PosEventRow)[];

type StoredEvent = Pick<PosEventRow, (typeof ANSWERED)[number]>;

/** The events that have the ids of these submissions, by `keyOf`. */
const findStored = async (
  strapi: Core.Strapi,
  trx: Executor,
  submissions: readonly Submission[]
): Promise<Map<string, StoredEvent>> => {
  const rows = (await table(strapi, trx, POS_EVENTS_TABLE)
    .select(...ANSWERED)
    .whereIn('connection_id', [...new Set(submissions.map(({ connection }) => connection.id))])
    .whereIn(
      'external_digest',
      submissions.map(({ idDigest }) => idDigest)
    )) as StoredEvent[];
  return new Map(
    rows.map((row) => [takenKey(Number(row.connection_id), row.external_digest), row])
  );
};

const locateAll = async (
  strapi: Core.Strapi,
  trx: Executor,
  fresh: readonly Submission[]
): Promise<Candidate[]> => {
  if (fresh.length === 0) return [];
  const { id } = await defaultLocation(strapi, trx);
  return fresh.map((submission) => locate(submission, Number(id)));
};

const stocktakeOf = ({ submission, locationId }: Candidate): Stocktake | null => {
  const { record, connection } = submission;
  if (!isCount(record)) return null;
  return { record, connection: Number(connection.id), locationId, mode: connection.mode };
};

const judgeOne = (candidate: Candidate, judge: CountJudge): Passed | Acceptance => {
  const { submission, mapped } = candidate;
  const issue = checkLocationRef(submission.record, mapped.length);
  if (issue) return { outcome: 'invalid', issue };
  const stocktake = stocktakeOf(candidate);
  if (!stocktake) return { candidate, stale: [] };
  const { accepted, stale, places } = judge.judge(stocktake);
  return accepted ? { candidate, stale, places } : { outcome: 'stale', stale };
};

interface Judged {
  /** By `keyOf`. */
  passed: Map<string, Passed>;
  refused: Map<Submission, Acceptance>;
}

/** In the order of arrival: a count may make the next one stale. */
const judgeAll = (candidates: readonly Candidate[], judge: CountJudge): Judged => {
  const judged: Judged = { passed: new Map(), refused: new Map() };
  for (const candidate of candidates) {
    const { submission } = candidate;
    const key = keyOf(submission);
    // The first of two equal ids in a batch is the record, the second its duplicate; but an id that
    // was refused is not taken.
    if (judged.passed.has(key)) continue;
    const verdict = judgeOne(candidate, judge);
    if ('outcome' in verdict) judged.refused.set(submission, verdict);
    else judged.passed.set(key, verdict);
  }
  return judged;
};

const answerOf = (
  submission: Submission,
  { passed, refused }: Judged,
  stored: ReadonlyMap<string, StoredEvent>
): Acceptance => {
  const refusal = refused.get(submission);
  if (refusal) return refusal;
  const key = keyOf(submission);
  const row = stored.get(key);
  if (!row) throw new Error('An accepted record is not in its transaction.');
  const eventId = Number(row.id);
  const mine = passed.get(key);
  if (mine?.candidate.submission === submission) {
    return { outcome: 'accepted', eventId, stale: mine.stale };
  }
  return {
    outcome: 'duplicate',
    eventId,
    state: row.state,
    mismatch: row.body_digest !== submission.bodyDigest,
    mode: row.mode,
    stale: JSON.parse(row.stale || '[]') as StaleLine[],
  };
};

/**
 * What would come of one record if it were sent now; locks nothing and writes nothing.
 * @returns what is to be stored, or the answer where it would not be
 */
export const judgeAlone = async (
  strapi: Core.Strapi,
  trx: Executor,
  submission: Submission
): Promise<Passed | Acceptance> => {
  const known = await findStored(strapi, trx, [submission]);
  if (known.size > 0) return answerOf(submission, { passed: new Map(), refused: new Map() }, known);
  const [candidate] = await locateAll(strapi, trx, [submission]);
  if (!candidate) throw new Error('A record was not located.');
  const stocktakes = [stocktakeOf(candidate)].filter((one) => one !== null);
  const judge = await openCountJudge(strapi, trx, stocktakes, { lock: false });
  return judgeOne(candidate, judge);
};

/** Has the log show events whose id came again with another body; those that bear it already stay. */
const flagMismatches = async (
  strapi: Core.Strapi,
  trx: Executor,
  acceptances: readonly Acceptance[],
  stored: ReadonlyMap<string, StoredEvent>
): Promise<void> => {
  const flagged = new Set(
    [...stored.values()].flatMap(({ id, payload_mismatch: is }) => (is ? [Number(id)] : []))
  );
  const ids = acceptances.flatMap((one) =>
    one.outcome === 'duplicate' && one.mismatch && !flagged.has(one.eventId) ? [one.eventId] : []
  );
  if (ids.length === 0) return;
  await table(strapi, trx, POS_EVENTS_TABLE).whereIn('id', ids).update({ payload_mismatch: true });
};

/**
 * Accepts records, all in one transaction, each with an answer of its own (docs/tills.md#answers).
 * @throws the database's error; then nothing of the batch is accepted, and it may be tried again
 */
export const acceptBatch = (
  strapi: Core.Strapi,
  submissions: readonly Submission[]
): Promise<Acceptance[]> =>
  inTransaction(strapi, async ({ trx, onCommit }) => {
    const known = await findStored(strapi, trx, submissions);
    const fresh = submissions.filter((one) => !known.has(keyOf(one)));
    const candidates = await locateAll(strapi, trx, fresh);

    const stocktakes = candidates.flatMap((candidate) => stocktakeOf(candidate) ?? []);
    const judge = await openCountJudge(strapi, trx, stocktakes);
    const judged = judgeAll(candidates, judge);
    await judge.save();

    const accepted = [...judged.passed.values()];
    let stored = known;
    if (accepted.length > 0) {
      const store = getRecordStore(strapi);
      const dueAt = store.now();
      await store.insert(
        trx,
        accepted.map((one) => newRow(one, dueAt))
      );
      onCommit(store.announce);
      // Read again for their ids, which not every database gives for many rows at once.
      stored = await findStored(strapi, trx, submissions);
    }

    const acceptances = submissions.map((one) => answerOf(one, judged, stored));
    await flagMismatches(strapi, trx, acceptances, stored);
    return acceptances;
  });
