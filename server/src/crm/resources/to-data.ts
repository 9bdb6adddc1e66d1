import type { Core } from '@strapi/strapi';
import { fieldError } from '../../validation';
import type { MappedField, Source } from '../sources/mapping';

type Data = Record<string, unknown>;

/** Keys of an input that stand elsewhere in the object. */
const PATHS: Readonly<Record<string, string>> = { trashed_at: 'dates.trashed_at' };
const IGNORED = new Set(['id', 'dates']);

const checkReference = async (
  strapi: Core.Strapi,
  key: string,
  target: string,
  ids: readonly unknown[]
): Promise<void> => {
  const column = target === 'admin::user' ? 'id' : 'documentId';
  const rows = (await strapi.db
    .queryBuilder(target)
    .init({ select: ['id', 'documentId'], where: { [column]: { $in: ids } } })
    .execute()) as Data[];
  const found = new Set(rows.map((row) => row[column]));
  const missing = ids.find((id) => !found.has(id));
  if (missing !== undefined) throw fieldError(key, `there is no record with the id ${missing}`);
};

const assign = async (
  strapi: Core.Strapi,
  data: Data,
  key: string,
  field: MappedField | undefined,
  value: unknown
): Promise<void> => {
  if (!field?.attribute) throw fieldError(key, 'is not kept on this site, or is computed');
  const target = field.shape?.type === 'relation' ? field.shape.target : undefined;
  if (target && value !== null) {
    await checkReference(strapi, key, target, [value]);
    data[field.attribute] = target === 'admin::user' ? { id: value } : value;
    return;
  }
  data[field.attribute] = value;
};

/**
 * Turns an object as REST takes it into the attributes of the content type that holds it.
 * @throws ValidationError (400) naming the key that this site cannot write, or whose record is missing.
 */
export const toData = async (
  strapi: Core.Strapi,
  source: Source,
  tagUid: string,
  input: Readonly<Data>
): Promise<Data> => {
  const data: Data = {};
  const byPath = new Map(source.fields.map((field) => [field.path, field]));
  for (const [key, value] of Object.entries(input)) {
    if (value === undefined || IGNORED.has(key)) continue;
    if (key === 'name' && source.kind === 'contact') continue;
    if (key === 'tags' && source.kind === 'contact') {
      if (!source.tags) throw fieldError('tags', 'are not kept on this site');
      if (Array.isArray(value)) await checkReference(strapi, 'tags', tagUid, [...new Set(value)]);
      data[source.tags] = value;
    } else if (key === 'fields' && !byPath.get('fields')?.attribute) {
      for (const [name, one] of Object.entries((value as Data | null) ?? {})) {
        const path = `fields.${name}`;
        await assign(strapi, data, path, byPath.get(path), one);
      }
    } else {
      await assign(strapi, data, key, byPath.get(PATHS[key] ?? key), value);
    }
  }
  return data;
};
