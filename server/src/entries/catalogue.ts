import type { EventDeclaration, EventMap } from '../hooks';
import {
  changedFields,
  ENTRY_EVENTS,
  type EntryStatus,
  type EntryValue,
  type FieldShape,
  type Shape,
} from './rules';
import { type AttributeShape, createDescriber, type EntryType } from './types';

type Schema = Record<string, unknown>;

const NULL: Schema = { type: 'null' };
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, NULL] });

const SCALAR_SCHEMAS: Readonly<Record<string, Schema>> = {
  integer: { type: 'integer' },
  float: { type: 'number' },
  decimal: { type: 'number' },
  boolean: { type: 'boolean' },
  datetime: { type: 'string', format: 'date-time' },
  timestamp: { type: 'string', format: 'date-time' },
  date: { type: 'string', format: 'date' },
};

const scalar = ({ type, values }: Extract<FieldShape, { kind: 'scalar' }>): Schema => {
  // Any JSON.
  if (type === 'json' || type === 'blocks') return {};
  if (values) return orNull({ type: 'string', enum: [...values] });
  return orNull(SCALAR_SCHEMAS[type] ?? { type: 'string' });
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
const entrySchema = (shape: Shape, within: readonly Shape[] = []): Schema =>
  objectOf(shape, { id: { type: 'integer' }, documentId: { type: 'string' } }, within);

const TIME = '2026-03-02T08:15:00.000Z';
const DOCUMENT = 'k3v9x2m5q7w1e4r6t8y0u2i4';
const RELATED = 'b6n8m1v3c5x7z9l2k4j6h8g0';

const SCALAR_EXAMPLES: Readonly<Record<string, unknown>> = {
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

const valueOf = (name: string, field: FieldShape, within: readonly Shape[]): unknown => {
  switch (field.kind) {
    case 'scalar':
      if (name === 'locale') return 'en';
      return field.values?.[0] ?? SCALAR_EXAMPLES[field.type] ?? 'An example';
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
const exampleEntry = (shape: Shape): EntryValue => ({
  id: 12,
  documentId: DOCUMENT,
  ...fieldsOf(shape, []),
});

const exampleFile = ({ fields }: Shape): EntryValue => ({
  id: 7,
  documentId: RELATED,
  ...Object.fromEntries(fields.map(([name]) => [name, FILE[name] ?? null])),
});

/** The part of a type that the catalogue needs. */
type DeclaredType = Omit<EntryType, 'populate' | 'uid'> & { readonly uid: string };

interface Words {
  label: string;
  description: string;
  /** Which version of an entry it may be about, where the type has drafts. */
  status: (type: DeclaredType) => readonly EntryStatus[];
  changed: boolean;
}

const PUBLISHED: readonly EntryStatus[] = ['published'];
const withDrafts = ({ drafts }: DeclaredType): readonly EntryStatus[] =>
  drafts ? ['draft', 'published'] : PUBLISHED;
const published = (): readonly EntryStatus[] => PUBLISHED;

const WORDS: Readonly<Record<string, Words>> = {
  'entry.created': {
    label: 'Entry created',
    description:
      'An entry is added, or one of its languages. With draft and publish: a draft, where the option asks for drafts.',
    status: ({ draftAndPublish }) => (draftAndPublish ? ['draft'] : PUBLISHED),
    changed: false,
  },
  'entry.updated': {
    label: 'Entry updated',
    description:
      'An entry changes; `changed` names its attributes that differ. With draft and publish: what is published changes without a publish, or a draft does, where the option asks for drafts.',
    status: withDrafts,
    changed: true,
  },
  'entry.published': {
    label: 'Entry published',
    description:
      'A draft is published. `changed` names the attributes that differ from what was published before; it is empty where none does.',
    status: published,
    changed: true,
  },
  'entry.unpublished': {
    label: 'Entry unpublished',
    description: 'What was published is a draft alone again. `entry` is what was published.',
    status: published,
    changed: false,
  },
  'entry.deleted': {
    label: 'Entry deleted',
    description: 'An entry is deleted, or one of its languages. `entry` is what it was last.',
    status: withDrafts,
    changed: false,
  },
};

const changedSchema: Schema = { type: 'array', items: { type: 'string' } };

const branch = ({ status, changed }: Words, type: DeclaredType): Schema => {
  const properties = {
    content_type: { type: 'string', const: type.uid },
    locale: { type: type.localized ? 'string' : 'null' },
    status: { type: 'string', enum: [...status(type)] },
    entry: entrySchema(type.shape),
    ...(changed && { changed: changedSchema }),
  };
  return { type: 'object', required: Object.keys(properties), properties };
};

const locales = (types: readonly DeclaredType[]): Schema => {
  const [first, ...others] = [
    ...new Set(types.map(({ localized }) => (localized ? 'string' : 'null'))),
  ].map((type) => ({ type }));
  return others.length === 0 && first ? first : { anyOf: [{ type: 'string' }, { type: 'null' }] };
};

/** One schema for all types, which says by `content_type` what the rest is; no other type fits it. */
const schemaOf = (words: Words, types: readonly DeclaredType[]): Schema => {
  const statuses = [...new Set(types.flatMap((type) => words.status(type)))].sort();
  const properties = {
    content_type: { type: 'string', enum: types.map(({ uid }) => uid) },
    locale: locales(types),
    status: { type: 'string', enum: statuses },
    entry: { type: 'object' },
    ...(words.changed && { changed: changedSchema }),
  };
  return {
    type: 'object',
    required: Object.keys(properties),
    properties,
    anyOf: types.map((type) => branch(words, type)),
  };
};

const entryDeclaration = (
  event: string,
  words: Words,
  types: readonly [DeclaredType, ...DeclaredType[]]
): EventDeclaration => {
  const { label, description } = words;
  const type = types.find(({ events }) => events.includes(event)) ?? types[0];
  const entry = exampleEntry(type.shape);
  return {
    label,
    group: 'Entries',
    description,
    schema: schemaOf(words, types),
    example: {
      content_type: type.uid,
      locale: type.localized ? 'en' : null,
      status: words.status(type)[0],
      entry,
      ...(words.changed && { changed: changedFields(type.shape, null, entry).slice(0, 1) }),
    },
  };
};

/** The events of entries; none if no type is named. */
export const declareEntries = (types: readonly DeclaredType[]): EventMap => {
  const [first, ...others] = types;
  if (!first) return {};
  return Object.fromEntries(
    Object.entries(WORDS).map(([event, words]) => [
      event,
      entryDeclaration(event, words, [first, ...others]),
    ])
  );
};

const MEDIA_WORDS: readonly (readonly [name: string, label: string, description: string])[] = [
  ['media.created', 'File added', 'A file is added to the media library.'],
  [
    'media.updated',
    'File updated',
    'What is said of a file changes, or the file is replaced. `changed` names its attributes that differ; it is empty where a file is replaced by one that looks the same from outside.',
  ],
  ['media.deleted', 'File deleted', 'A file is deleted from the media library.'],
];

export const declareMedia = (shape: Shape): EventMap =>
  Object.fromEntries(
    MEDIA_WORDS.map(([event, label, description]) => {
      const hasChanged = event === 'media.updated';
      const properties = {
        media: entrySchema(shape),
        ...(hasChanged && { changed: changedSchema }),
      };
      const declaration: EventDeclaration = {
        label,
        group: 'Media',
        description,
        schema: { type: 'object', required: Object.keys(properties), properties },
        example: {
          media: exampleFile(shape),
          ...(hasChanged && { changed: ['alternativeText'] }),
        },
      };
      return [event, declaration];
    })
  );

const ARTICLE = 'api::article.article';

const all = (type: string, ...names: string[]): Record<string, AttributeShape> =>
  Object.fromEntries(names.map((name) => [name, { type }]));

const STAMPS = all('datetime', 'createdAt', 'updatedAt', 'publishedAt');

/** A type such as sites have, and files as the host has them. */
const MODELS: Readonly<Record<string, Record<string, AttributeShape>>> = {
  [ARTICLE]: {
    ...all('string', 'title'),
    cover: { type: 'media' },
    seo: { type: 'component', component: 'shared.seo' },
    writer: { type: 'relation', relation: 'manyToOne', target: 'api::writer.writer' },
    ...STAMPS,
    ...all('string', 'locale'),
  },
  'shared.seo': all('string', 'description'),
  'plugin::upload.file': {
    ...all('string', 'name', 'alternativeText', 'caption'),
    ...all('decimal', 'width', 'height', 'size'),
    formats: { type: 'json' },
    ...all('string', 'hash', 'ext', 'mime', 'url', 'previewUrl', 'provider'),
    ...STAMPS,
  },
};

/** The events of entries and files of a site that has articles: what the documentation shows. */
export const sampleEvents = (): EventMap => {
  const describe = createDescriber({
    model: (uid) => ({ attributes: MODELS[uid] ?? {} }),
    isPrivate: () => false,
  });
  const article = {
    uid: ARTICLE,
    shape: describe(ARTICLE),
    draftAndPublish: true,
    localized: true,
    drafts: true,
    events: ENTRY_EVENTS,
  };
  return { ...declareEntries([article]), ...declareMedia(describe('plugin::upload.file')) };
};
