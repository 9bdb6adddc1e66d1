import type { Core } from '@strapi/strapi';
import type { Detached } from '../../database/connection';
import { isDuplicate } from '../../database/errors/duplicate';
import { isInfrastructureFault } from '../../database/errors/faults';
import { withTransientRetry } from '../../database/retry';
import { measures } from '../../observability/measures';
import { inSpan } from '../../observability/spans';
import { debugEach } from '../../runtime/debug-log';
import { nextTurn } from '../../runtime/event-loop';
import { type Acceptance, acceptBatch } from './accept';
import { acceptedLine } from '../debug-lines';
import { createBatcher, type Settled } from './batcher';
import type { Submission } from './submission';

/** Records that share one commit at most. */
const BATCH = 100;

const TRIES = 5;

const accept = async (
  strapi: Core.Strapi,
  submissions: readonly Submission[]
): Promise<Acceptance[]> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const acceptances = await withTransientRetry(() => acceptBatch(strapi, submissions));
      debugEach(strapi, submissions.entries(), ([index, one]) =>
        acceptedLine(one, acceptances[index] as Acceptance)
      );
      return acceptances;
    } catch (error) {
      // Another process accepted one of the ids a moment ago: asked again, it is a duplicate.
      if (attempt >= TRIES || !isDuplicate(error)) throw error;
    }
  }
};

/** Accepts a record; resolves after its commit. */
export type Ingestion = (submission: Submission) => Promise<Acceptance>;

/**
 * Records that wait at the same moment share one transaction (a commit is the wall). One that cannot
 * be stored never fails its neighbours: then each is tried by itself.
 */
export const createIngestion = (strapi: Core.Strapi, detached: Detached): Ingestion => {
  const ingest = createBatcher<Submission, Acceptance>(detached, BATCH, async (submissions) => {
    try {
      const values = await accept(strapi, submissions);
      return values.map((value) => ({ ok: true, value }));
    } catch (error) {
      if (submissions.length === 1 || isInfrastructureFault(error)) {
        return submissions.map(() => ({ ok: false, error }));
      }
    }
    const results: Settled<Acceptance>[] = [];
    for (const one of submissions) {
      await nextTurn();
      try {
        const [value] = await accept(strapi, [one]);
        results.push({ ok: true, value: value as Acceptance });
      } catch (error) {
        results.push({ ok: false, error });
      }
    }
    return results;
  });
  return (submission) => {
    const { connection, record } = submission;
    const attributes = {
      'switchboard.connection_id': Number(connection.id),
      'switchboard.kind': record.kind,
    };
    return inSpan('switchboard.intake', attributes, async () => {
      const acceptance = await ingest(submission);
      measures().accepted.add(1, { kind: record.kind });
      return acceptance;
    });
  };
};
