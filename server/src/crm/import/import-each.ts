import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { errorText } from '../../error-text';
import { tagsOfContact } from '../resources/crm-records';
import { upsertContact } from '../resources/upsert-contact';
import { getInspected } from '../sources/registry';
import type { BatchResult } from './batch-result';
import type { ImportRow } from './columns';
import { giveWay } from './give-way';
import type { ImportTags } from './import-tags';
import { inImportTransaction } from './import-transaction';
import { inputForKnown } from './known-contacts';

const importOne = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  row: ImportRow
): Promise<'created' | 'updated' | 'unchanged'> => {
  const { contact, created, changed } = await upsertContact(
    strapi,
    { ...row.input, email: row.email },
    { onlyNew: { source: 'import' }, forKnown: (known) => inputForKnown(row, known) }
  );
  const ids = getInspected(strapi, 'contact').source.tags ? await tags.idsOf(row.tags) : [];
  const present = ids.length > 0 ? await tagsOfContact(strapi, contact.id) : [];
  const missing = ids.filter((id) => !present.some((tag) => tag.id === id));
  for (const id of missing) await tags.add(id, [contact.id]);
  if (created) return 'created';
  return changed || missing.length > 0 ? 'updated' : 'unchanged';
};

/** Imports rows one by one, each in a transaction of its own. */
export const importEach = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[],
  result: BatchResult
): Promise<void> => {
  for (const row of rows) {
    try {
      result[await inImportTransaction(strapi, () => importOne(strapi, tags, row))] += 1;
    } catch (error) {
      const isOurs = error instanceof errors.ApplicationError;
      result.failures.push({ row, message: isOurs ? error.message : errorText(error) });
    }
    await giveWay();
  }
};
