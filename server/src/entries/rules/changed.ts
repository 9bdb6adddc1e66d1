import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../runtime/is-record';
import type { EntryValue, FieldShape, Shape } from './shape';

/** Kept by the host: they follow a change and are none. */
const BOOKKEEPING: ReadonlySet<string> = new Set(
  'createdAt updatedAt publishedAt firstPublishedAt locale'.split(' ')
);

const each = (value: unknown, one: (part: EntryValue) => unknown): unknown => {
  if (Array.isArray(value)) return value.map((part) => one(part as EntryValue));
  return isRecord(value) ? one(value) : null;
};

const keyOf = (reference: EntryValue): string =>
  `${typeof reference.__type === 'string' ? reference.__type : ''}:${String(reference.documentId)}`;

/** Without the ids of rows: each publish writes components anew. A file is the same file by its id. */
const comparable = (field: FieldShape, value: unknown): unknown => {
  switch (field.kind) {
    case 'scalar':
      return value;
    case 'media':
      return each(value, ({ id }) => id);
    case 'relation': {
      const keys = each(value, keyOf);
      return Array.isArray(keys) && !field.ordered ? keys.sort() : keys;
    }
    case 'component':
      return each(value, (part) => comparablePart(field.shape, part));
    case 'zone':
      return each(value, (part) => {
        const uid = String(part.__component);
        const shape = field.shapes.get(uid);
        return [uid, shape ? comparablePart(shape, part) : null];
      });
  }
};

const comparablePart = ({ fields }: Shape, part: EntryValue): unknown[] =>
  fields.map(([name, field]) => comparable(field, part[name] ?? null));

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (Array.isArray(value) && value.length === 0);

/**
 * The attributes whose value differs: no ids, times or languages. Against nothing: those that have a
 * value. docs/any-content-type.md#changed
 */
export const changedFields = (
  { fields }: Shape,
  before: EntryValue | null,
  after: EntryValue
): string[] =>
  fields
    .filter(([name, field]) => {
      if (BOOKKEEPING.has(name)) return false;
      if (before === null) return !isEmpty(after[name]);
      return !isDeepStrictEqual(
        comparable(field, before[name] ?? null),
        comparable(field, after[name] ?? null)
      );
    })
    .map(([name]) => name);
