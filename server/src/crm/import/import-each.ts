import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { fieldError } from '../../http/validation';
import { errorText } from '../../runtime/text';
import { tagsOfContact } from '../resources/crm-records';
import { upsertContact } from '../resources/upsert-contact';
import type { ImportRow } from './columns';
import { requireRowFault, throughFaults } from '../../imports/faults';
import { giveWay } from '../../imports/rows';
import type { ImportTags } from './tags';
import { inImportTransaction } from './import-transaction';
import { inputForKnown, isInBin } from './known-contacts';

/** What became of some rows. */
export interface BatchResult {
  created: number;
  updated: number;
  unchanged: number;
  failures: { row: ImportRow; message: string }[];
}

const importOne = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  row: ImportRow
): Promise<'created' | 'updated' | 'unchanged'> => {
  const { contact, created, changed } = await upsertContact(
    strapi,
    { ...row.input, email: row.email },
    {
      onlyNew: { source: 'import' },
      forKnown: (known) => {
        // Whoever imports a list would look for it in vain.
        if (isInBin(known)) throw fieldError('email', 'belongs to a contact that is in the bin');
        return inputForKnown(row, known);
      },
    }
  );
  const ids = await tags.idsOf(row.tags);
  const present = ids.length > 0 ? await tagsOfContact(strapi, contact.id) : [];
  const missing = ids.filter((id) => !present.some((tag) => tag.id === id));
  for (const id of missing) await tags.add(id, [contact.id]);
  if (created) return 'created';
  return changed || missing.length > 0 ? 'updated' : 'unchanged';
};

/** Why a row could not be imported, without what a driver says. */
export const reasonOf = (error: unknown): string =>
  error instanceof errors.ApplicationError ? error.message : errorText(error);

/** Imports rows one by one, each in a transaction of its own. */
export const importEach = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[],
  result: BatchResult
): Promise<void> => {
  for (const row of rows) {
    try {
      const outcome = await throughFaults(strapi, () =>
        inImportTransaction(strapi, () => importOne(strapi, tags, row))
      );
      result[outcome] += 1;
    } catch (error) {
      requireRowFault(error);
      result.failures.push({ row, message: reasonOf(error) });
    }
    await giveWay();
  }
};
