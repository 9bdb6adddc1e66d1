import type { Core } from '@strapi/strapi';
import { afterCommit, type Executor, inTransaction, table } from '../../database/connection';
import { insertRows } from '../../database/insert-rows';
import type { ProcessingContext } from '../processing/processing-context';
import { getRecordStore } from '../processing/record-store';
import { POS_MAPPED_LINES_TABLE, POS_MAPPINGS_TABLE } from '../tables';

/** Writes down which lines mappings decided now. */
export const storeMappedLines = (
  strapi: Core.Strapi,
  trx: Executor,
  batch: readonly ProcessingContext[]
): Promise<void> =>
  insertRows(
    strapi,
    trx,
    POS_MAPPED_LINES_TABLE,
    batch.flatMap(({ id, mapped }) =>
      mapped.map(({ mapping, line }) => ({ mapping_id: mapping, event_id: id, line }))
    )
  );

const CHUNK = 500;

/** The records that a mapping decided something of. */
export const recordsOfMapping = async (
  strapi: Core.Strapi,
  executor: Executor,
  mapping: number
): Promise<number[]> => {
  const rows = (await table(strapi, executor, POS_MAPPED_LINES_TABLE)
    .distinct('event_id')
    .where({ mapping_id: mapping })
    .orderBy('event_id')) as { event_id: number }[];
  return rows.map(({ event_id: id }) => Number(id));
};

/** Has the records of a mapping that was undone worked on again, after their commit. */
export const wakeMapped = async (
  strapi: Core.Strapi,
  executor: Executor,
  mapping: number
): Promise<number[]> => {
  const store = getRecordStore(strapi);
  const ids = await recordsOfMapping(strapi, executor, mapping);
  await store.bringForward(executor, ids, 'mapping_undone', false);
  afterCommit(strapi, store.announce);
  return ids;
};

/**
 * A mapping that was undone while a record was being applied by it did not know of that record, and
 * the record saw it hold. Whoever commits last sees the other: here, or in the undoing.
 */
export const notifyUndone = async (
  strapi: Core.Strapi,
  batch: readonly ProcessingContext[]
): Promise<void> => {
  const used = [...new Set(batch.flatMap(({ mapped }) => mapped.map(({ mapping }) => mapping)))];
  if (used.length === 0) return;
  await inTransaction(strapi, async ({ trx }) => {
    for (let start = 0; start < used.length; start += CHUNK) {
      const undone = (await table(strapi, trx, POS_MAPPINGS_TABLE)
        .select('id')
        .whereIn('id', used.slice(start, start + CHUNK))
        .whereNotNull('undone_at')) as { id: number }[];
      for (const { id } of undone) await wakeMapped(strapi, trx, Number(id));
    }
  });
};
