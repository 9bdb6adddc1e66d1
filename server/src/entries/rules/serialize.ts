import { isRecord } from '../../runtime/is-record';
import type { EntryStatus, EntryValue, FieldShape, Shape } from './shape';

type Row = Readonly<Record<string, unknown>>;
type Relation = Extract<FieldShape, { kind: 'relation' }>;

const listOf = (value: unknown): Row[] =>
  (Array.isArray(value) ? value : [value]).filter((one) => isRecord(one));

/** Rows of one document (a draft and a published one, several languages) are one reference. */
const references = (field: Relation, value: unknown, status: EntryStatus): EntryValue[] => {
  const found = new Map<string, EntryValue>();
  for (const row of listOf(value)) {
    const { documentId, publishedAt, __type: type } = row;
    if (typeof documentId !== 'string') continue;
    // What is published shows no draft of what it relates to.
    if (field.drafts && status === 'published' && publishedAt === null) continue;
    const reference = field.morph ? { __type: type, documentId } : { documentId };
    found.set(`${field.morph ? String(type) : ''}:${documentId}`, reference);
  }
  return [...found.values()];
};

const scalar = (value: unknown): unknown =>
  value instanceof Date ? value.toISOString() : (value ?? null);

const valueOf = (field: FieldShape, value: unknown, status: EntryStatus): unknown => {
  if (field.kind === 'scalar') return scalar(value);
  if (field.kind === 'zone') {
    return listOf(value).flatMap((row) => {
      const uid = String(row.__component);
      const shape = field.shapes.get(uid);
      return shape ? [{ __component: uid, ...serializePart(shape, row, status) }] : [];
    });
  }
  const values =
    field.kind === 'relation'
      ? references(field, value, status)
      : listOf(value).map((row) =>
          field.kind === 'media'
            ? serialize(field.file, row, status)
            : serializePart(field.shape, row, status)
        );
  return field.many ? values : (values[0] ?? null);
};

const fieldsOf = ({ fields }: Shape, row: Row, status: EntryStatus): Record<string, unknown> =>
  Object.fromEntries(fields.map(([name, field]) => [name, valueOf(field, row[name], status)]));

/** A component has an id and no document. */
const serializePart = (shape: Shape, row: Row, status: EntryStatus): EntryValue => ({
  id: row.id,
  ...fieldsOf(shape, row, status),
});

/**
 * A row as a full-access token sees it over REST, relations one level deep as `{ documentId }`,
 * components, dynamic zones and media in full. Made of the shape's attributes and of nothing else.
 * docs/any-content-type.md#what-a-receiver-gets
 */
export const serialize = (shape: Shape, row: Row, status: EntryStatus): EntryValue => ({
  id: row.id,
  documentId: row.documentId,
  ...fieldsOf(shape, row, status),
});
