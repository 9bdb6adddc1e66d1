import Ajv2020 from 'ajv/dist/2020';
import { declareEntries, declareMedia } from '../../../server/src/entries/catalogue';
import { ENTRY_EVENTS, MEDIA_EVENTS } from '../../../server/src/entries/rules';
import { createDescriber, type ModelShape, populateOf } from '../../../server/src/entries/types';
import { thinEvent } from '../../../server/src/webhooks/rules/thin-payload';

const MODELS: Record<string, ModelShape> = {
  'api::article.article': {
    options: { draftAndPublish: true },
    attributes: {
      title: { type: 'string' },
      mood: { type: 'enumeration', enum: ['calm', 'loud'] },
      secret: { type: 'string' },
      password: { type: 'password' },
      cover: { type: 'media' },
      gallery: { type: 'media', multiple: true },
      seo: { type: 'component', component: 'shared.tree' },
      body: { type: 'dynamiczone', components: ['shared.tree'] },
      writer: { type: 'relation', relation: 'manyToOne', target: 'api::article.article' },
      localizations: { type: 'relation', relation: 'oneToMany', unstable_virtual: true },
      createdBy: { type: 'relation', relation: 'oneToOne', target: 'admin::user' },
      locale: { type: 'string' },
    },
  },
  'api::note.note': { attributes: { words: { type: 'text' }, rank: { type: 'integer' } } },
  'shared.tree': {
    attributes: {
      leaf: { type: 'boolean' },
      branches: { type: 'component', component: 'shared.tree', repeatable: true },
    },
  },
  'plugin::upload.file': {
    attributes: {
      name: { type: 'string' },
      folderPath: { type: 'string' },
      related: { type: 'relation', relation: 'morphToMany' },
    },
  },
};

const describeModel = createDescriber({
  model: (uid) => MODELS[uid],
  isPrivate: (_model, name) => name === 'secret' || name === 'folderPath',
});

const types = [
  {
    uid: 'api::article.article',
    shape: describeModel('api::article.article'),
    draftAndPublish: true,
    localized: true,
    drafts: false,
    events: ENTRY_EVENTS.filter((event) => event !== 'entry.created'),
  },
  {
    uid: 'api::note.note',
    shape: describeModel('api::note.note'),
    draftAndPublish: false,
    localized: false,
    drafts: false,
    events: ['entry.created', 'entry.updated', 'entry.deleted'],
  },
];

const events = {
  ...declareEntries(types),
  ...declareMedia(describeModel('plugin::upload.file')),
};
const compile = (event: string) =>
  new Ajv2020({ strict: true, validateFormats: false }).compile(events[event]!.schema!);

it('declares each event once', () => {
  expect(Object.keys(events)).toEqual([...ENTRY_EVENTS, ...MEDIA_EVENTS]);
  expect(declareEntries([])).toEqual({});
});

it.each(Object.keys(events))('the example of %s matches its schema', (event) => {
  const validate = compile(event);
  expect(validate(events[event]!.example) || validate.errors).toBe(true);
});

it('refuses types that are not named, and an entry of another type than it says', () => {
  const validate = compile('entry.deleted');
  const note = {
    content_type: 'api::note.note',
    locale: null,
    status: 'published',
    entry: { id: 1, documentId: 'a', words: null, rank: 3 },
  };
  expect(validate(note)).toBe(true);
  expect(validate({ ...note, content_type: 'api::other.other' })).toBe(false);
  expect(validate({ ...note, content_type: 'api::article.article', locale: 'en' })).toBe(false);
  expect(validate({ ...note, entry: { ...note.entry, rank: 'three' } })).toBe(false);
  expect(validate({ ...note, locale: 'en' })).toBe(false);
});

it('leaves out what is private, creators, other languages, and where a file is used', () => {
  const names = (uid: string) => describeModel(uid).fields.map(([name]) => name);
  expect(names('api::article.article')).toEqual(
    'title mood cover gallery seo body writer locale'.split(' ')
  );
  expect(names('plugin::upload.file')).toEqual(['name']);
});

it('loads what it shows, a component that contains itself once', () => {
  expect(populateOf(describeModel('api::article.article'))).toEqual({
    cover: { select: ['id', 'documentId', 'name'] },
    gallery: { select: ['id', 'documentId', 'name'] },
    seo: { populate: {} },
    body: { on: { 'shared.tree': { populate: {} } } },
    writer: { select: ['id', 'documentId', 'publishedAt'] },
  });
});

it('keeps of an entry which it is, and nothing that it says', () => {
  expect(thinEvent('entry.updated', events['entry.updated']!.example)).toEqual({
    content_type: 'api::article.article',
    locale: 'en',
    status: 'published',
    entry: { documentId: expect.any(String) },
    changed: ['title'],
  });
  expect(thinEvent('media.deleted', events['media.deleted']!.example)).toEqual({
    media: { id: 7, documentId: expect.any(String) },
  });
  expect(thinEvent('entry.archived', { id: 3, words: 'x' })).toEqual({ id: 3 });
});
