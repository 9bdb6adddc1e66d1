import type { Core, UID } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { errorText } from '../../error-text';
import { inTransaction } from '../../database/connection';
import { upsertContact } from '../resources/upsert-contact';
import { getInspected } from '../sources/registry';
import { emailKey } from '../upkeep/email-key';
import type { ImportRow } from './columns';
import type { ImportTags } from './import-tags';
import { insertContacts } from './insert-contacts';

export interface BatchResult {
  created: number;
  updated: number;
  unchanged: number;
  failures: { row: ImportRow; message: string }[];
}

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

/** Who withdrew stays withdrawn: a list that is older than that must not subscribe them again. */
const WITHDRAWN = new Set<unknown>(['unsubscribed', 'bounced', 'complained']);

const withoutStatus = ({ status: _status, ...rest }: Record<string, unknown>) => rest;

const existingKeys = async (strapi: Core.Strapi, keys: readonly string[]): Promise<Set<string>> => {
  const rows = (await strapi.db
    .queryBuilder(CONTACT)
    .init({ select: ['id', 'email_key'], where: { email_key: { $in: [...keys] } } })
    .execute()) as { email_key: string }[];
  return new Set(rows.map(({ email_key: key }) => key));
};

/** Rows that one statement can insert: new addresses, without an owner or a company. */
const plainNewRows = async (
  strapi: Core.Strapi,
  rows: readonly ImportRow[]
): Promise<ReadonlySet<ImportRow>> => {
  const { source, tagSource } = getInspected(strapi, 'contact');
  if (!source.own) return new Set();
  const ownTags = tagSource.own;
  const keys = rows.map(({ email }) => emailKey(email) ?? '');
  const existing = await existingKeys(strapi, keys);
  const seen = new Set<string>();
  return new Set(
    rows.filter(({ input, tags }, index) => {
      const key = keys[index] ?? '';
      const isNew = !existing.has(key) && !seen.has(key);
      seen.add(key);
      const isPlain = !('company_id' in input) && !('owner_id' in input);
      return isNew && isPlain && (tags.length === 0 || ownTags);
    })
  );
};

const importOne = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  row: ImportRow
): Promise<'created' | 'updated' | 'unchanged'> => {
  const before = await upsertContact(
    strapi,
    { ...withoutStatus(row.input), email: row.email },
    { source: 'import', ...row.input }
  );
  let { contact } = before;
  let { changed } = before;
  if (row.input.status && !before.created && !WITHDRAWN.has(contact.status)) {
    const status = { email: row.email, status: row.input.status };
    const again = await upsertContact(strapi, status);
    contact = again.contact;
    changed ||= again.changed;
  }
  for (const id of await tags.idsOf(row.tags)) await tags.add(id, [contact.id]);
  if (before.created) return 'created';
  return changed ? 'updated' : 'unchanged';
};

const importEach = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[],
  result: BatchResult
): Promise<void> => {
  for (const row of rows) {
    try {
      result[await inTransaction(strapi, () => importOne(strapi, tags, row))] += 1;
    } catch (error) {
      const isOurs = error instanceof errors.ApplicationError;
      result.failures.push({ row, message: isOurs ? error.message : errorText(error) });
    }
  }
};

/**
 * Imports some rows. New contacts go in together; should they not, or where a row needs more than a
 * row of a table (an owner, a company) or its contact exists, each goes by itself, so that a
 * bad one never costs its neighbours anything.
 */
export const importBatch = async (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<BatchResult> => {
  const result: BatchResult = { created: 0, updated: 0, unchanged: 0, failures: [] };
  // Before any transaction: a tag that is made for a row that then fails is still there.
  for (const row of rows) await tags.idsOf(row.tags);
  const plain = await plainNewRows(strapi, rows);
  const together = rows.filter((row) => plain.has(row));
  let rest = rows.filter((row) => !plain.has(row));
  if (together.length > 0) {
    try {
      await inTransaction(strapi, () => insertContacts(strapi, tags, together));
      result.created += together.length;
    } catch {
      // Perhaps one of them was made elsewhere at this moment: then it is an update now.
      rest = [...rows];
    }
  }
  await importEach(strapi, tags, rest, result);
  return result;
};
