import type { Core, UID } from '@strapi/strapi';
import { keptInput } from '../resources/kept-input';
import { toData } from '../resources/to-data';
import { getInspected } from '../mapping/registry';
import { inUnitOfWork } from '../capture/capture';
import { emailKey } from '../contact-integrity/email-key';
import { tryLockEmails } from '../contact-integrity/email-lock';
import type { ImportRow } from './columns';
import type { ImportTags } from './tags';
import { linkTags, type TagLink } from './link-tags';

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

/** Somebody holds an address: the transaction is to be run again in a moment. */
export class AddressesHeldError extends Error {}

interface Stored {
  id: number;
  documentId: string;
  email_key: string;
}

const storedRows = async (
  strapi: Core.Strapi,
  rows: readonly ImportRow[]
): Promise<Map<string, Stored>> => {
  const where = { email_key: { $in: rows.map(({ email }) => emailKey(email)) } };
  const found = (await strapi.db
    .queryBuilder(CONTACT)
    .init({ select: ['id', 'documentId', 'email_key'], where })
    .execute()) as Stored[];
  return new Map(found.map((row) => [row.email_key, row]));
};

const linksOf = async (
  tags: ImportTags,
  rows: readonly ImportRow[],
  stored: ReadonlyMap<string, Stored>
): Promise<TagLink[]> => {
  const links: TagLink[] = [];
  for (const row of rows) {
    const contact = stored.get(emailKey(row.email) ?? '');
    if (!contact) continue;
    const { id: rowId, documentId } = contact;
    links.push({ rowId, documentId, tagIds: await tags.idsOf(row.tags), after: 0 });
  }
  return links;
};

/**
 * Inserts contacts and their tags as one change, in one transaction that holds all their addresses
 * from its beginning: neither a form nor another import can make one of them meanwhile.
 * @param rows of different addresses, without an owner or a company
 * @returns the rows whose contact was made by somebody else just before; they are left alone.
 * @throws AddressesHeldError where somebody is at work with one of the addresses.
 */
export const insertContacts = (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<ImportRow[]> =>
  inUnitOfWork(strapi, getInspected(strapi, 'contact').events, async (context) => {
    const emails = rows.map(({ email }) => email);
    if (!(await tryLockEmails(strapi, emails))) throw new AddressesHeldError();
    const taken = await storedRows(strapi, rows);
    const isFree = ({ email }: ImportRow): boolean => !taken.has(emailKey(email) ?? '');
    const free = rows.filter(isFree);
    const { source, tagSource } = getInspected(strapi, 'contact');
    const data: Record<string, unknown>[] = [];
    for (const { input } of free) {
      const kept = keptInput(strapi, source, { source: 'import', ...input });
      data.push(await toData(strapi, source, tagSource.uid, kept));
    }
    if (data.length > 0) await strapi.db.query(CONTACT).createMany({ data: data as never });
    const tagged = free.filter((row) => row.tags.length > 0);
    if (tagged.length > 0) {
      const stored = await storedRows(strapi, tagged);
      await linkTags(context, tags, await linksOf(tags, tagged, stored));
    }
    return rows.filter((row) => !isFree(row));
  });
