import type { EventDeclaration, EventMap } from '../hooks';
import {
  changedFields,
  type EntryStatus,
  type EntryValue,
  type FieldShape,
  type Shape,
} from './rules';
import type { EntryType } from './types';

type Schema = Record<string, unknown>;

interface Described {
  schema: Schema;
  example: unknown;
}

const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });

const TIME = '2026-03-02T08:15:00.000Z';
const DOCUMENT = 'k3v9x2m5q7w1e4r6t8y0u2i4';
const RELATED = 'b6n8m1v3c5x7z9l2k4j6h8g0';

const text = (example: string): Described => ({ schema: { type: 'string' }, example });
const time = { schema: { type: 'string', format: 'date-time' }, example: TIME };
const number = { schema: { type: 'number' }, example: 1.5 };

const SCALARS: Readonly<Record<string, Described>> = {
  integer: { schema: { type: 'integer' }, example: 1 },
  float: number,
  decimal: number,
  biginteger: text('1'),
  boolean: { schema: { type: 'boolean' }, example: true },
  date: { schema: { type: 'string', format: 'date' }, example: '2026-03-02' },
  time: text('08:15:00.000'),
  datetime: time,
  timestamp: time,
  email: text('ada@example.test'),
  uid: text('an-example'),
};

const ANY: Readonly<Record<string, Described>> = {
  json: { schema: {}, example: {} },
  blocks: { schema: {}, example: [] },
};

const scalar = (name: string, { type, values }: Extract<FieldShape, { kind: 'scalar' }>) => {
  const any = ANY[type];
  if (any) return any;
  const { schema, example } = SCALARS[type] ?? text('An example');
  return {
    schema: orNull(values ? { type: 'string', enum: [...values] } : schema),
    example: name === 'locale' ? 'en' : (values?.[0] ?? example),
  };
};

const oneOrMany = (many: boolean, { schema, example }: Described): Described =>
  many
    ? { schema: { type: 'array', items: schema }, example: [example] }
    : { schema: orNull(schema), example };

const objectSchema = (properties: Record<string, Schema>): Schema => ({
  type: 'object',
  required: Object.keys(properties),
  properties,
});

const documentId = text(RELATED);
const reference: Described = {
  schema: objectSchema({ documentId: documentId.schema }),
  example: { documentId: RELATED },
};

const rowId = (example: number): Described => ({ schema: { type: 'integer' }, example });

const fieldOf = (name: string, field: FieldShape, within: readonly Shape[]): Described => {
  switch (field.kind) {
    case 'scalar':
      return scalar(name, field);
    case 'relation':
      return oneOrMany(field.many, reference);
    case 'media':
      return oneOrMany(field.many, fileOf(field.file, within));
    case 'component':
      return oneOrMany(field.many, objectOf(field.shape, { id: rowId(1) }, within));
    case 'zone': {
      const parts = [...field.shapes].map(([uid, shape]) => {
        const component = { schema: { type: 'string', const: uid }, example: uid };
        return objectOf(shape, { __component: component, id: rowId(1) }, within);
      });
      const [first] = parts;
      if (!first) return { schema: { type: 'array', items: { type: 'object' } }, example: [] };
      const items = { anyOf: parts.map(({ schema }) => schema) };
      return { schema: { type: 'array', items }, example: [first.example] };
    }
  }
};

const objectOf = (
  shape: Shape,
  first: Readonly<Record<string, Described>>,
  within: readonly Shape[]
) => {
  // A component that contains itself is described once.
  const isKnown = within.includes(shape);
  const fields = isKnown ? [] : shape.fields;
  const all = [
    ...Object.entries(first),
    ...fields.map(([name, field]) => [name, fieldOf(name, field, [...within, shape])] as const),
  ];
  const schemas = Object.fromEntries(all.map(([name, { schema }]) => [name, schema]));
  return {
    schema: isKnown ? { type: 'object' } : objectSchema(schemas),
    example: Object.fromEntries(all.map(([name, { example }]) => [name, example])),
  };
};

/** An entry of a type, made up: a test sends it, and the preview of a filter judges it. */
const entryOf = (shape: Shape): { schema: Schema; example: EntryValue } =>
  objectOf(shape, { id: rowId(12), documentId: text(DOCUMENT) }, []);

/** Values of a file of the media library; a name that is not here is null. */
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

const fileOf = (shape: Shape, within: readonly Shape[] = []): Described => {
  const first = { id: rowId(7), documentId };
  const values = Object.fromEntries(shape.fields.map(([name]) => [name, FILE[name] ?? null]));
  const { schema } = objectOf(shape, first, within);
  return { schema, example: { id: 7, documentId: RELATED, ...values } };
};

type DeclaredType = Omit<EntryType, 'populate' | 'uid'> & { readonly uid: string };

interface Words {
  label: string;
  description: string;
  /** Which version of an entry it may be about, if the type has drafts. */
  status: (type: DeclaredType) => readonly EntryStatus[];
  changed: boolean;
}

const PUBLISHED: readonly EntryStatus[] = ['published'];
const withDrafts = ({ drafts }: DeclaredType): readonly EntryStatus[] =>
  drafts ? ['draft', 'published'] : PUBLISHED;

const WORDS: Readonly<Record<string, Words>> = {
  'entry.created': {
    label: 'Entry created',
    description:
      'An entry, or one of its languages, is created. With draft and publish: a draft, if the option includes drafts.',
    status: ({ draftAndPublish }) => (draftAndPublish ? ['draft'] : PUBLISHED),
    changed: false,
  },
  'entry.updated': {
    label: 'Entry updated',
    description:
      'An entry is changed. `changed` lists the changed attributes. With draft and publish: the published version changes without being published again, or a draft changes, if the option includes drafts.',
    status: withDrafts,
    changed: true,
  },
  'entry.published': {
    label: 'Entry published',
    description:
      'A draft is published. `changed` lists the attributes that differ from the version published before, and may be empty.',
    status: () => PUBLISHED,
    changed: true,
  },
  'entry.unpublished': {
    label: 'Entry unpublished',
    description: 'An entry is unpublished. `entry` is the version that was published.',
    status: () => PUBLISHED,
    changed: false,
  },
  'entry.deleted': {
    label: 'Entry deleted',
    description: 'An entry, or one of its languages, is deleted. `entry` is its last state.',
    status: withDrafts,
    changed: false,
  },
};

const changedSchema: Schema = { type: 'array', items: { type: 'string' } };

const locales = (types: readonly DeclaredType[]): Schema => {
  const [type, other] = new Set(types.map(({ localized }) => (localized ? 'string' : 'null')));
  return other ? orNull({ type: 'string' }) : { type };
};

const dataSchema = (
  { status, changed }: Words,
  types: readonly DeclaredType[],
  contentType: Schema,
  entry: Schema
): Schema =>
  objectSchema({
    content_type: { type: 'string', ...contentType },
    locale: locales(types),
    status: { type: 'string', enum: [...new Set(types.flatMap(status))].sort() },
    entry,
    ...(changed && { changed: changedSchema }),
  });

/** One schema for all types, discriminated by `content_type`; no other type matches it. */
const schemaOf = (words: Words, types: readonly DeclaredType[]): Schema => ({
  ...dataSchema(words, types, { enum: types.map(({ uid }) => uid) }, { type: 'object' }),
  anyOf: types.map((type) =>
    dataSchema(words, [type], { const: type.uid }, entryOf(type.shape).schema)
  ),
});

export const declareEntries = (types: readonly DeclaredType[]): EventMap => {
  const [first] = types;
  if (!first) return {};
  return Object.fromEntries(
    Object.entries(WORDS).map(([event, words]): [string, EventDeclaration] => {
      const { label, description, changed } = words;
      const type = types.find(({ events }) => events.includes(event)) ?? first;
      const entry = entryOf(type.shape).example;
      const example = {
        content_type: type.uid,
        locale: type.localized ? 'en' : null,
        status: words.status(type)[0],
        entry,
        ...(changed && { changed: changedFields(type.shape, null, entry).slice(0, 1) }),
      };
      const schema = schemaOf(words, types);
      return [event, { label, group: 'Entries', description, schema, example }];
    })
  );
};

const MEDIA_WORDS: readonly (readonly [name: string, label: string, description: string])[] = [
  ['media.created', 'File added', 'A file is added to the media library.'],
  [
    'media.updated',
    'File updated',
    'The details of a file change, or the file is replaced. `changed` lists the changed attributes. It is empty if the new file has the same attributes.',
  ],
  ['media.deleted', 'File deleted', 'A file is deleted from the media library.'],
];

export const declareMedia = (shape: Shape): EventMap =>
  Object.fromEntries(
    MEDIA_WORDS.map(([event, label, description]): [string, EventDeclaration] => {
      const file = fileOf(shape);
      const hasChanged = event === 'media.updated';
      const changed = hasChanged && { changed: changedSchema };
      const schema = objectSchema({ media: file.schema, ...changed });
      const example = { media: file.example, ...(hasChanged && { changed: ['alternativeText'] }) };
      return [event, { label, group: 'Media', description, schema, example }];
    })
  );
