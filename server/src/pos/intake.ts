import type { Core } from '@strapi/strapi';
import type { Detached } from '../database/connection';
import { isTransient, withTransientRetry } from '../database/retry';
import { type Acceptance, acceptBatch, type Submission } from './accept';
import { createGatherer, type Settled } from './gathered';

/** Records that share one commit at most. */
const BATCH = 100;

const UNIQUE_CODES = new Set([
  '23505',
  'ER_DUP_ENTRY',
  'SQLITE_CONSTRAINT_UNIQUE',
  'SQLITE_CONSTRAINT',
]);

/** Another process accepted one of the ids a moment ago: asked again, it is a duplicate. */
const isTaken = (error: unknown): boolean =>
  UNIQUE_CODES.has(String((error as { code?: unknown } | null)?.code ?? ''));

const TRIES = 5;

const accept = async (
  strapi: Core.Strapi,
  submissions: readonly Submission[]
): Promise<Acceptance[]> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await withTransientRetry(() => acceptBatch(strapi, submissions));
    } catch (error) {
      if (attempt >= TRIES || !isTaken(error)) throw error;
    }
  }
};

/** Accepts a record; resolves after its commit. */
export type Intake = (submission: Submission) => Promise<Acceptance>;

/**
 * Records that wait at the same moment share one transaction (a commit is the wall). One that cannot
 * be stored never fails its neighbours: then each is tried by itself.
 */
export const createIntake = (strapi: Core.Strapi, detached: Detached): Intake =>
  createGatherer<Submission, Acceptance>(detached, BATCH, async (submissions) => {
    try {
      const values = await accept(strapi, submissions);
      return values.map((value) => ({ ok: true, value }));
    } catch (error) {
      if (submissions.length === 1 || isTransient(error)) {
        return submissions.map(() => ({ ok: false, error }));
      }
    }
    const results: Settled<Acceptance>[] = [];
    for (const one of submissions) {
      try {
        const [value] = await accept(strapi, [one]);
        results.push({ ok: true, value: value as Acceptance });
      } catch (error) {
        results.push({ ok: false, error });
      }
    }
    return results;
  });
