import type { EntryValue, FieldShape, Shape } from '../rules/shape';

const TIME = '2026-03-02T08:15:00.000Z';
const DOCUMENT = 'k3v9x2m5q7w1e4r6t8y0u2i4';
const RELATED = 'b6n8m1v3c5x7z9l2k4j6h8g0';

const SCALARS: Readonly<Record<string, unknown>> = {
  integer: 1,
  float: 1.5,
  decimal: 1.5,
  biginteger: '1',
  boolean: true,
  date: '2026-03-02',
  time: '08:15:00.000',
  datetime: TIME,
  timestamp: TIME,
  email: 'ada@example.test',
  uid: 'an-example',
  json: {},
  blocks: [],
};

/** What a file of the media library may be; a name that is not here is null. */
const FILE: EntryValue = {
  name: 'harbour.jpg',
  alternativeText: 'The harbour',
  width: 1200,
  height: 800,
  hash: 'harbour_4f1c',
  ext: '.jpg',
  mime: 'image/jpeg',
  size: 182.5,
  url: '/uploads/harbour_4f1c.jpg',
  provider: 'local',
  createdAt: TIME,
  updatedAt: TIME,
  publishedAt: TIME,
};

const valueOf = (name: string, field: FieldShape, within: readonly Shape[]): unknown => {
  switch (field.kind) {
    case 'scalar':
      if (name === 'locale') return 'en';
      return field.values?.[0] ?? SCALARS[field.type] ?? 'An example';
    case 'relation':
      return field.many ? [{ documentId: RELATED }] : { documentId: RELATED };
    case 'media':
      return field.many ? [exampleFile(field.file)] : exampleFile(field.file);
    case 'component': {
      const part = { id: 1, ...fieldsOf(field.shape, within) };
      return field.many ? [part] : part;
    }
    case 'zone': {
      const [first] = field.shapes;
      if (!first) return [];
      return [{ __component: first[0], id: 1, ...fieldsOf(first[1], within) }];
    }
  }
};

const fieldsOf = (shape: Shape, within: readonly Shape[]): EntryValue => {
  if (within.includes(shape)) return {};
  const inside = [...within, shape];
  return Object.fromEntries(
    shape.fields.map(([name, field]) => [name, valueOf(name, field, inside)])
  );
};

/** An entry of a type, made up: what a test sends and a filter's preview judges. */
export const exampleEntry = (shape: Shape): EntryValue => ({
  id: 12,
  documentId: DOCUMENT,
  ...fieldsOf(shape, []),
});

export const exampleFile = ({ fields }: Shape): EntryValue => ({
  id: 7,
  documentId: RELATED,
  ...Object.fromEntries(fields.map(([name]) => [name, FILE[name] ?? null])),
});
