import type { Core } from '@strapi/strapi';
import { fieldErrors } from '../../http/validation';
import type { MappedField, Source } from '../mapping/mapping';

type Data = Record<string, unknown>;

/** Keys of an input that stand elsewhere in the object. */
const PATHS: Readonly<Record<string, string>> = { trashed_at: 'dates.trashed_at' };
const IGNORED = new Set(['id', 'dates']);

/** @returns what is wrong with these ids; null where each names a record. */
const missingOf = async (
  strapi: Core.Strapi,
  target: string,
  ids: readonly unknown[]
): Promise<string | null> => {
  const column = target === 'admin::user' ? 'id' : 'documentId';
  const rows = (await strapi.db
    .queryBuilder(target)
    .init({ select: ['id', 'documentId'], where: { [column]: { $in: ids } } })
    .execute()) as Data[];
  const found = new Set(rows.map((row) => row[column]));
  const missing = ids.find((id) => !found.has(id));
  return missing === undefined ? null : `there is no record with the id ${missing}`;
};

/** Writes a value into the data. @returns what is wrong with it, or null. */
const assign = async (
  strapi: Core.Strapi,
  data: Data,
  field: MappedField | undefined,
  value: unknown
): Promise<string | null> => {
  if (!field?.attribute) return 'is not kept on this site, or is computed';
  const target = field.shape?.type === 'relation' ? field.shape.target : undefined;
  if (!target || value === null) {
    data[field.attribute] = value;
    return null;
  }
  data[field.attribute] = target === 'admin::user' ? { id: value } : value;
  return missingOf(strapi, target, [value]);
};

/**
 * Turns an object as REST takes it into the attributes of the content type that holds it.
 * @throws ValidationError (400) naming the keys that this site cannot write, or whose record is missing.
 */
export const toData = async (
  strapi: Core.Strapi,
  source: Source,
  tagUid: string,
  input: Readonly<Data>
): Promise<Data> => {
  const data: Data = {};
  const wrong: { path: string; message: string }[] = [];
  const note = (path: string, message: string | null): void => {
    if (message !== null) wrong.push({ path, message });
  };
  const byPath = new Map(source.fields.map((field) => [field.path, field]));
  for (const [key, value] of Object.entries(input)) {
    if (value === undefined || IGNORED.has(key)) continue;
    if (key === 'name' && source.kind === 'contact') continue;
    if (key === 'tags' && source.kind === 'contact') {
      if (!source.tags) {
        note('tags', 'are not kept on this site');
        continue;
      }
      if (Array.isArray(value)) note('tags', await missingOf(strapi, tagUid, [...new Set(value)]));
      data[source.tags] = value;
    } else if (key === 'fields' && !byPath.get('fields')?.attribute) {
      for (const [name, one] of Object.entries((value as Data | null) ?? {})) {
        const path = `fields.${name}`;
        note(path, await assign(strapi, data, byPath.get(path), one));
      }
    } else {
      note(key, await assign(strapi, data, byPath.get(PATHS[key] ?? key), value));
    }
  }
  if (wrong.length > 0) throw fieldErrors(wrong);
  return data;
};
