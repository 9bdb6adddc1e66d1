import type { EventDeclaration, EventMap } from '../hooks';
import { changedFields } from './rules/changed';
import type { EntryStatus, Shape } from './rules/shape';
import { entrySchema } from './catalogue/schema';
import { exampleEntry, exampleFile } from './catalogue/example';

type Schema = Record<string, unknown>;

/** What of a type the catalogue speaks of. */
export interface DeclaredType {
  readonly uid: string;
  readonly shape: Shape;
  readonly draftAndPublish: boolean;
  readonly localized: boolean;
  readonly drafts: boolean;
  readonly events: readonly string[];
}

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

const someChanged = (shape: Shape, example: Readonly<Record<string, unknown>>): string[] =>
  changedFields(shape, null, example).slice(0, 1);

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
      ...(words.changed && { changed: someChanged(type.shape, entry) }),
    },
  };
};

/** The events of entries; none where no type is named. */
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

/** The events of files. */
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
