import type { Core } from '@strapi/strapi';
import type { BatchResult } from '../../../../shared/contracts/till-answers';
import { isInfrastructureFault } from '../../database/errors/faults';
import { errorText } from '../../runtime/text';
import { createTimeSlice } from '../../runtime/event-loop';
import type { Enclosed } from '../rules/envelopes';
import { ERROR_STATUS, LIMITS, type RecordKind } from '../rules/states';
import type { BodyIssue } from '../rules/strict-json';
import type { ConnectionRow } from '../tables';
import {
  answerOfAcceptance,
  bodyOfRefusal,
  hostFailure,
  isMissingTable,
  Refusal,
  schemaInvalid,
} from './answers';
import type { Ingestion } from './ingestion';
import { requireRecord, requireScope, requireSize } from './record-checks';
import type { SignedBody } from './refusals';
import { type Submission, submissionOf } from './submission';

/** An entry of a batch as it was read: a record to be judged, or what is wrong with the entry. */
export type BatchEntry = { ok: true; value: Enclosed } | { ok: false; issue: BodyIssue };

/** What a batch counts for in the rate limit, as does a status request (docs/tills.md#batches). */
export const costOf = (records: number): number =>
  Math.max(1, Math.ceil(records / LIMITS.recordsACharge));

interface Signed {
  connection: ConnectionRow;
  receivedAtMs: number;
}

/** Keeps what one entry was refused for its owner to see. */
type Keep = (
  kind: RecordKind | 'batch',
  refusal: Refusal,
  signed: SignedBody | null
) => Promise<unknown>;

type Judged = { kind: RecordKind; submission: Submission } | { refusal: Refusal };

interface Parts {
  ingest: Ingestion;
  /** The largest body of a record, in bytes. */
  maxBodyBytes: number;
}

const resultOfRefusal = (refusal: Refusal): BatchResult => ({
  status: ERROR_STATUS[refusal.code],
  ...bodyOfRefusal(refusal),
});

/**
 * Answers the records of a batch, each with what its own route would have answered, in the order
 * sent (docs/tills.md#batches). They are handed to the ingestion in that order and in one go, so they
 * take effect in it and share their commits.
 */
export const createBatchAnswers = (strapi: Core.Strapi, { ingest, maxBodyBytes }: Parts) => {
  const judge = async (
    entry: BatchEntry,
    { connection, receivedAtMs }: Signed,
    keep: Keep
  ): Promise<Judged> => {
    if (!entry.ok) {
      const refusal = schemaInvalid('batch', entry.issue);
      await keep('batch', refusal, null);
      return { refusal };
    }
    const { kind, body } = entry.value;
    try {
      requireSize(body, maxBodyBytes); // 413 payload_too_large
      requireScope(connection, kind); // 403 insufficient_scope
      const record = await requireRecord(kind, body, receivedAtMs); // 400 schema_invalid
      return { kind, submission: submissionOf(connection, record, body, receivedAtMs) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      await keep(kind, error, { body, record: null });
      return { refusal: error };
    }
  };

  /** 200 duplicate, 409 stale_count, 202; a record that cannot be stored fails alone. */
  const accept = async (judged: Judged, keep: Keep): Promise<BatchResult> => {
    if ('refusal' in judged) return resultOfRefusal(judged.refusal);
    const { kind, submission } = judged;
    try {
      const { status, body } = answerOfAcceptance(kind, await ingest(submission));
      return { status, ...body };
    } catch (error) {
      if (error instanceof Refusal) {
        const { record, body } = submission;
        await keep(kind, error, { body: Buffer.from(body, 'utf8'), record });
        return resultOfRefusal(error);
      }
      // The database is away for all of them: the whole is answered 503 and may be sent again.
      if (isMissingTable(error) || isInfrastructureFault(error)) throw error;
      strapi.log.error(`switchboard: a record of a batch was not accepted: ${errorText(error)}`);
      return { status: 500, ...hostFailure(500) };
    }
  };

  /** @throws the database's error where it could not be asked; what was accepted stays accepted */
  return async (
    entries: readonly BatchEntry[],
    signed: Signed,
    keep: Keep
  ): Promise<BatchResult[]> => {
    const slice = createTimeSlice();
    const judged: Judged[] = [];
    for (const entry of entries) {
      if (slice.isOver()) await slice.next();
      judged.push(await judge(entry, signed, keep));
    }
    const results = await Promise.allSettled(judged.map((one) => accept(one, keep)));
    return results.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
  };
};
