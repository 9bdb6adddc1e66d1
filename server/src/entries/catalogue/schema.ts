import type { FieldShape, Shape } from '../rules/shape';

type Schema = Record<string, unknown>;

const NULL: Schema = { type: 'null' };
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, NULL] });

const SCALARS: Readonly<Record<string, Schema>> = {
  integer: { type: 'integer' },
  float: { type: 'number' },
  decimal: { type: 'number' },
  boolean: { type: 'boolean' },
  datetime: { type: 'string', format: 'date-time' },
  timestamp: { type: 'string', format: 'date-time' },
  date: { type: 'string', format: 'date' },
};

const scalar = ({ type, values }: Extract<FieldShape, { kind: 'scalar' }>): Schema => {
  // Whatever JSON can say.
  if (type === 'json' || type === 'blocks') return {};
  if (values) return orNull({ type: 'string', enum: [...values] });
  return orNull(SCALARS[type] ?? { type: 'string' });
};

const oneOrMany = (many: boolean, schema: Schema): Schema =>
  many ? { type: 'array', items: schema } : orNull(schema);

const reference: Schema = {
  type: 'object',
  required: ['documentId'],
  properties: { documentId: { type: 'string' } },
};

const fieldSchema = (field: FieldShape, within: readonly Shape[]): Schema => {
  switch (field.kind) {
    case 'scalar':
      return scalar(field);
    case 'relation':
      return oneOrMany(field.many, reference);
    case 'media':
      return oneOrMany(field.many, entrySchema(field.file, within));
    case 'component':
      return oneOrMany(field.many, partSchema(field.shape, {}, within));
    case 'zone': {
      const parts = [...field.shapes].map(([uid, shape]) =>
        partSchema(shape, { __component: { type: 'string', const: uid } }, within)
      );
      return { type: 'array', items: parts.length > 0 ? { anyOf: parts } : { type: 'object' } };
    }
  }
};

const objectOf = (shape: Shape, first: Schema, within: readonly Shape[]): Schema => {
  // A component that contains itself is described once.
  if (within.includes(shape)) return { type: 'object' };
  const inside = [...within, shape];
  const properties = {
    ...first,
    ...Object.fromEntries(
      shape.fields.map(([name, field]) => [name, fieldSchema(field, inside)] as const)
    ),
  };
  return { type: 'object', required: Object.keys(properties), properties };
};

const partSchema = (shape: Shape, first: Schema, within: readonly Shape[]): Schema =>
  objectOf(shape, { ...first, id: { type: 'integer' } }, within);

/** JSON Schema 2020-12 of an entry or a file, as `serialize` makes it. */
export const entrySchema = (shape: Shape, within: readonly Shape[] = []): Schema =>
  objectOf(shape, { id: { type: 'integer' }, documentId: { type: 'string' } }, within);
