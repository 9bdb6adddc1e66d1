import type { Core } from '@strapi/strapi';
import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js';
import { getOptions } from '../../config';
import { table } from '../../database/connection';
import { whereContains, writtenDigits } from '../../database/contains';
import type { Where } from '../../database/matching-documents';
import type { WatchedSource } from '../mapping/watched-types';

const SEARCHED: ReadonlySet<string> = new Set([
  ...['first_name', 'last_name', 'name', 'email', 'phone'],
]);
const TEXTS: ReadonlySet<string> = new Set(['string', 'text', 'email', 'uid', 'enumeration']);

const PHONE = /^[+\d\s()./-]+$/;
/** Fewer would be in nearly every number. */
const LEAST_DIGITS = 3;

/** What a phone number has in it however it begins; null for what is none. */
const phoneDigits = (text: string, country: string | undefined): string | null => {
  if (!PHONE.test(text)) return null;
  const international = text.replace(/^00/, '+');
  const parsed = parsePhoneNumberFromString(international, country as CountryCode | undefined);
  const digits = parsed?.isValid()
    ? parsed.nationalNumber
    : text.replace(/\D/g, '').replace(/^0+/, '');
  return digits.length < LEAST_DIGITS ? null : digits;
};

/**
 * The condition that finds contacts by a text: each of its words is in a name, the e-mail address or the
 * phone number, in any case; or it is a phone number, or a part of one, however it is written. Reads
 * every contact. docs/management-api.md#finding-contacts
 */
export const contactWhere = (
  strapi: Core.Strapi,
  { uid, source }: WatchedSource,
  text: string
): Where => {
  const { tableName, attributes } = strapi.db.metadata.get(uid);
  const columns = source.fields.flatMap(({ path, attribute, shape }) => {
    if (!attribute || !shape || !SEARCHED.has(path)) return [];
    const { columnName } = attributes[attribute] as { columnName?: string };
    return [{ path, column: columnName ?? attribute, isText: TEXTS.has(shape.type) }];
  });
  const texts = columns.flatMap(({ column, isText }) => (isText ? column : []));
  const phone = columns.find(({ path }) => path === 'phone')?.column;
  const digits = phoneDigits(text, getOptions(strapi).pos.country);
  const found = table(strapi, strapi.db.connection, tableName).select('id');
  found.where((any) => {
    if (texts.length > 0)
      any.orWhere((all) => {
        for (const word of text.split(/\s+/)) whereContains(strapi, all, texts, word);
      });
    if (phone && digits) {
      const { sql, bindings } = writtenDigits(phone);
      any.orWhereRaw(`${sql} LIKE ?`, [...bindings, `%${digits}%`]);
    }
  });
  const isSearchable = texts.length > 0 || (phone !== undefined && digits !== null);
  return { id: isSearchable ? { $in: found } : -1 };
};
