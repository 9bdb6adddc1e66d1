import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Validated } from '../../../../shared/contracts/till-answers';
import { inRolledBack } from '../../database/rolled-back';
import { withTransientRetry } from '../../database/retry';
import { type ProcessingContext, unknownNames } from '../processing/processing-context';
import { PREVIEW_ID, previewRecord } from '../processing/preview';
import { getRecordStore } from '../processing/record-store';
import { type EventFlag, stateAfter } from '../rules/states';
import { mappedLocations, type PosEventRow } from '../tables';
import { type Acceptance, judgeAlone } from './accept';
import { answerOfAcceptance } from './answers';
import { hasScope } from './record-checks';
import { newRow, type Passed, type Submission } from './submission';
import { toldMovements } from './told-movements';

/** The row that the record would be, though it is never inserted. */
const rowOf = (strapi: Core.Strapi, passed: Passed): PosEventRow => {
  const dueAt = getRecordStore(strapi).now();
  const { group, columns } = newRow(passed, dueAt);
  const queued = { id: PREVIEW_ID, connection_id: group, due_at: dueAt, owner: null };
  // A new row's columns are typed as what a database takes; these are all of an event's others.
  return {
    took: null,
    refunded: null,
    ignored: null,
    accepted_at: null,
    by_hand: null,
    ...columns,
    ...queued,
  } as unknown as PosEventRow;
};

type Unknown = Validated['unknown'][number];

const unknownOf = (work: ProcessingContext): Unknown[] => {
  const { record, locationId } = work;
  const lines = unknownNames(work).map(({ sku, gtin }): Unknown =>
    sku === null ? { gtin: gtin ?? '' } : { sku }
  );
  const { locationRef } = record;
  const all = [
    ...lines,
    ...(locationId === null && locationRef !== null ? [{ location_ref: locationRef }] : []),
  ];
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
};

const previewOfNew = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  { connection }: Submission,
  passed: Passed
): Promise<Validated> => {
  const row = rowOf(strapi, passed);
  const work = await previewRecord(strapi, trx, row);
  const movements = await toldMovements(strapi, trx, work.moved, {
    mapped: mappedLocations(connection),
    withQuantity: hasScope(connection, 'stock:read'),
  });
  return {
    ok: true,
    state: stateAfter('pending', work.state),
    duplicate: false,
    stale: passed.stale,
    flags: [...(JSON.parse(row.flags) as EventFlag[]), ...work.flags],
    movements,
    unknown: unknownOf(work),
  };
};

const isPassed = (verdict: Passed | Acceptance): verdict is Passed => 'candidate' in verdict;

/** A record whose id is taken changes nothing any more. */
const previewOfKnown = (submission: Submission, acceptance: Acceptance): Validated => {
  const { body } = answerOfAcceptance(submission.record.kind, acceptance);
  return {
    ok: true,
    state: body.state,
    duplicate: true,
    stale: body.stale ?? [],
    flags: body.payload_mismatch ? ['payload_mismatch'] : [],
    movements: [],
    unknown: [],
  };
};

/**
 * What would become of a record (docs/tills.md#trying-a-record): worked out by what processes
 * records, in a transaction that locks no level and is rolled back. Nothing is stored.
 * @throws Refusal where the record would not be accepted
 */
export const previewOf = (strapi: Core.Strapi, submission: Submission): Promise<Validated> =>
  withTransientRetry(() =>
    inRolledBack(strapi, async (trx) => {
      const verdict = await judgeAlone(strapi, trx, submission);
      return isPassed(verdict)
        ? previewOfNew(strapi, trx, submission, verdict)
        : previewOfKnown(submission, verdict);
    })
  );
