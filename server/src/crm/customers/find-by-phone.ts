import type { Core } from '@strapi/strapi';
import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js';
import { currentExecutor, table } from '../../database/connection';
import { writtenDigits } from '../../database/contains';
import { getInspected } from '../mapping/registry';
import { inChunks } from '../../database/matching-documents';
import { binWhere, readRows } from '../mapping/records';
import { indexedUpTo } from './fill-phone-index';
import { lastDigits, PHONES_TABLE, type PhoneSource, phoneSourceOf } from './phone-index';

/** A phone number as the whole world writes it; null for what is none. */
export const e164 = (phone: string, country: string | undefined): string | null => {
  const parsed = parsePhoneNumberFromString(phone, country as CountryCode | undefined);
  return parsed?.isValid() ? parsed.number : null;
};

/** The contacts whose phone may end like this: those of the index, and those that it has not reached. */
const candidates = async (
  strapi: Core.Strapi,
  source: PhoneSource,
  digits: string
): Promise<string[]> => {
  const { tableName, column } = source;
  const executor = await currentExecutor(strapi);
  const indexed = (await table(strapi, executor, PHONES_TABLE)
    .select('document_id')
    .where({ digits })) as { document_id: string }[];
  const written = writtenDigits(column);
  const others = (await table(strapi, executor, tableName)
    .distinct('document_id')
    .where('id', '>', await indexedUpTo(strapi, source))
    .whereNotNull(column)
    .whereRaw(`${written.sql} LIKE ?`, [...written.bindings, `%${digits}`])) as typeof indexed;
  return [...new Set([...indexed, ...others].map(({ document_id: id }) => id))].sort();
};

/**
 * The contacts with a phone number, which is compared in E.164; one that is stored without a prefix
 * is read by the same country. At most two: more are as many as two. One in the bin is nobody's.
 * @param phone  in E.164
 */
export const findByPhone = async (
  strapi: Core.Strapi,
  phone: string,
  country: string | undefined
): Promise<string[]> => {
  const watched = getInspected(strapi, 'contact');
  const source = phoneSourceOf(strapi);
  const digits = lastDigits(phone);
  if (!source || digits === null) return [];
  const found: string[] = [];
  for (const ids of inChunks(await candidates(strapi, source, digits))) {
    const where = { $and: [{ documentId: { $in: ids } }, ...binWhere(watched, false)] };
    const reading = { keys: new Set(['phone']), tags: false };
    for (const entry of await readRows(strapi, watched, where, reading)) {
      if (e164(String(entry[source.attribute] ?? ''), country) !== phone) continue;
      found.push(String(entry.documentId));
      if (found.length > 1) return found;
    }
  }
  return found;
};
