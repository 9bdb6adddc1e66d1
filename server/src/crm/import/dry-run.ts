import type { Core } from '@strapi/strapi';
import { inRolledBack } from '../../database/rolled-back';
import { withTransientRetry } from '../../database/retry';
import { requireRowFault, throughFaults } from '../../imports/faults';
import { emailKey } from '../contact-integrity/email-key';
import type { ImportRow } from './columns';
import { importBatch } from './import-batch';
import { type BatchResult, reasonOf } from './import-each';
import { createImportTags } from './tags';

const tryRows = (strapi: Core.Strapi, rows: readonly ImportRow[]): Promise<BatchResult> =>
  withTransientRetry(() =>
    // Tags that a try makes are gone with it: each has a memory of its own.
    inRolledBack(strapi, () => importBatch(strapi, createImportTags(strapi), rows))
  );

const tryRow = async (strapi: Core.Strapi, row: ImportRow): Promise<BatchResult> => {
  try {
    return await throughFaults(strapi, () => tryRows(strapi, [row]));
  } catch (error) {
    requireRowFault(error);
    const failures = [{ row, message: reasonOf(error) }];
    return { created: 0, updated: 0, unchanged: 0, failures };
  }
};

const add = (sum: BatchResult, one: BatchResult): BatchResult => ({
  created: sum.created + one.created,
  updated: sum.updated + one.updated,
  unchanged: sum.unchanged + one.unchanged,
  failures: [...sum.failures, ...one.failures],
});

/**
 * What would become of some rows: they are imported in a transaction that is rolled back. One bad row
 * may end the transaction of all, so then each row is tried by itself.
 * @param made  addresses that rows before these would have made; those of these are added
 */
export const tryBatch = async (
  strapi: Core.Strapi,
  rows: readonly ImportRow[],
  made: Set<string>
): Promise<BatchResult> => {
  const keyOf = ({ email }: ImportRow): string => emailKey(email) ?? email;
  const again = rows.filter((row) => made.has(keyOf(row)));
  const first = rows.filter((row) => !made.has(keyOf(row)));
  const nothing: BatchResult = { created: 0, updated: again.length, unchanged: 0, failures: [] };
  if (first.length === 0) return nothing;
  let result: BatchResult | null = null;
  try {
    result = await tryRows(strapi, first);
  } catch {
    result = null;
  }
  if (result === null || result.failures.length > 0) {
    result = { created: 0, updated: 0, unchanged: 0, failures: [] };
    for (const row of first) {
      const one = await tryRow(strapi, row);
      if (one.created > 0) made.add(keyOf(row));
      result = add(result, one);
    }
  } else if (result.created > 0) {
    for (const row of first) made.add(keyOf(row));
  }
  return add(nothing, result);
};
