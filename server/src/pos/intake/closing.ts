import type { ClosingAnswer } from '../../../../shared/contracts/pos';
import type { Accepted } from '../../../../shared/contracts/till-answers';
import { isDuplicate, withTransientRetry } from '../../database/retry';
import { getPublisher } from '../../webhooks/publish';
import {
  closingAnswer,
  closingEvent,
  compareAgain,
  type ComparedClosing,
  compareWithRecords,
} from '../closings';
import { connectionsOf, groupsOf } from '../connections';
import type { ClosingRecord } from '../rules/records';
import {
  type ConnectionRow,
  type PosClosingRow,
  type PosEventRow,
  POS_CLOSINGS_TABLE,
  POS_EVENTS_TABLE,
} from '../tables';
import { answerOfAcceptance } from './answers';
import { rowOf, type Submission } from './accept';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

type ClosingSubmission = Submission<ClosingRecord>;
type Connections = ReadonlyMap<number, ConnectionRow>;

interface Answered {
  status: 200 | 202;
  body: ClosingAnswer | Accepted;
}

const TRIES = 5;

type StoredEvent = Pick<
  PosEventRow,
  'id' | 'kind' | 'state' | 'mode' | 'body_digest' | 'payload_mismatch' | 'stale'
>;

const findStored = async (
  tx: Tx,
  { connection, idDigest }: ClosingSubmission
): Promise<StoredEvent | undefined> =>
  (await tx
    .table(POS_EVENTS_TABLE)
    .select('id', 'kind', 'state', 'mode', 'body_digest', 'payload_mismatch', 'stale')
    .where({ connection_id: connection.id, external_digest: idDigest })
    .first()) as StoredEvent | undefined;

/** An id that was taken: by this closing, by another one, or by a record of another kind. */
const answerAgain = async (
  tx: Tx,
  app: App,
  submission: ClosingSubmission,
  stored: StoredEvent,
  connections: Connections
): Promise<Answered> => {
  const eventId = Number(stored.id);
  const mismatch = stored.body_digest !== submission.bodyDigest;
  if (mismatch && !stored.payload_mismatch) {
    await tx.table(POS_EVENTS_TABLE).where({ id: eventId }).update({ payload_mismatch: true });
  }
  const closing = (await tx.table(POS_CLOSINGS_TABLE).where({ event_id: eventId }).first()) as
    PosClosingRow | undefined;
  const compared = closing && (await compareAgain(tx, app, closing, connections));
  if (!compared) {
    const { state, mode, stale } = stored;
    const told = { state, mode, mismatch, stale: JSON.parse(stale || '[]') };
    return answerOfAcceptance('closing', { outcome: 'duplicate', eventId, ...told });
  }
  const body = closingAnswer(eventId, compared, true);
  return { status: 200, body: { ...body, ...(mismatch && { payload_mismatch: true as const }) } };
};

/** Closings are judged where they are accepted, so they are never due. */
const insertEvent = async (
  tx: Tx,
  submission: ClosingSubmission,
  { state }: ComparedClosing
): Promise<number> => {
  const row = {
    ...rowOf(submission),
    state,
    processed_at: submission.receivedAtMs,
  };
  await tx.table(POS_EVENTS_TABLE).insert(row);
  const stored = await findStored(tx, submission);
  if (!stored) throw new Error('An accepted closing is not in its transaction.');
  return Number(stored.id);
};

const accept = async (
  tx: Tx,
  app: App,
  submission: ClosingSubmission,
  connections: Connections
): Promise<Answered> => {
  const { connection, record } = submission;
  const place = { connection: Number(connection.id), mode: connection.mode };
  const compared = await compareWithRecords(tx, record, place, connections);
  const eventId = await insertEvent(tx, submission, compared);
  await tx.table(POS_CLOSINGS_TABLE).insert({
    event_id: eventId,
    connection_id: place.connection,
    mode: place.mode,
    from_at: record.fromMs,
    to_at: record.toMs,
    result: JSON.stringify(compared.comparison),
  });
  if (place.mode === 'live') {
    await getPublisher(app).publish([closingEvent(eventId, compared, connection)]);
  }
  return { status: 202, body: closingAnswer(eventId, compared, false) };
};

const acceptOrAnswer = async (app: App, submission: ClosingSubmission): Promise<Answered> => {
  const ids = [Number(submission.connection.id)];
  const groups = await groupsOf(await app.db.current(), ids);
  return app.db.transaction(async (tx) => {
    // First of all: MySQL goes on reading what was there when the transaction first read.
    const connections = await connectionsOf(tx, ids, groups, { lock: true });
    const stored = await findStored(tx, submission);
    return stored
      ? answerAgain(tx, app, submission, stored, connections)
      : accept(tx, app, submission, connections);
  });
};

/** Accepts a closing, or answers what it comes to now (docs/tills.md#closing-a-shift). */
export const answerClosing = async (app: App, submission: ClosingSubmission): Promise<Answered> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await withTransientRetry(() => acceptOrAnswer(app, submission));
    } catch (error) {
      // A record took the id a moment ago: asked again, it is a duplicate.
      if (attempt >= TRIES || !isDuplicate(error)) throw error;
    }
  }
};
