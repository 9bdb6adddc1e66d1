import {
  changedFields,
  derive,
  type DocumentChange,
  eventOf,
  serialize,
  type Shape,
  type Version,
} from '../../../server/src/entries/rules';

const file: Shape = {
  fields: [
    ['name', { kind: 'scalar', type: 'string' }],
    ['url', { kind: 'scalar', type: 'text' }],
  ],
};
const place: Shape = { fields: [['city', { kind: 'scalar', type: 'string' }]] };
const quote: Shape = {
  fields: [
    ['words', { kind: 'scalar', type: 'text' }],
    ['by', { kind: 'relation', many: false, morph: false, ordered: true, drafts: false }],
  ],
};
const article: Shape = {
  fields: [
    ['title', { kind: 'scalar', type: 'string' }],
    ['startsAt', { kind: 'scalar', type: 'datetime' }],
    ['tags', { kind: 'relation', many: true, morph: false, ordered: false, drafts: false }],
    ['next', { kind: 'relation', many: true, morph: false, ordered: true, drafts: true }],
    ['target', { kind: 'relation', many: false, morph: true, ordered: true, drafts: false }],
    ['cover', { kind: 'media', many: false, file }],
    ['places', { kind: 'component', many: true, shape: place }],
    [
      'body',
      {
        kind: 'zone',
        shapes: new Map([
          ['shared.place', place],
          ['shared.quote', quote],
        ]),
      },
    ],
    ['createdAt', { kind: 'scalar', type: 'datetime' }],
    ['publishedAt', { kind: 'scalar', type: 'datetime' }],
    ['locale', { kind: 'scalar', type: 'string' }],
  ],
};

const row = (values: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: 4,
  documentId: 'doc',
  title: 'One',
  ...values,
});
const entry = (values: Record<string, unknown> = {}) =>
  serialize(article, row(values), 'published');

describe('an entry', () => {
  it('has every public attribute, and nothing that the shape does not name', () => {
    expect(
      entry({
        secret: 'x',
        createdBy: { id: 1 },
        startsAt: new Date('2026-01-02T03:04:05Z'),
        tags: [
          { id: 1, documentId: 'a', name: 'left out' },
          { id: 2, documentId: 'a' },
          { id: 3, documentId: 'b' },
        ],
        target: { id: 9, documentId: 't', __type: 'api::page.page', words: 'left out' },
        cover: { id: 7, documentId: 'f', name: 'f.png', url: '/f.png', folderPath: '/1' },
        places: [{ id: 11, city: 'Ghent', alarm: '1234' }],
        body: [
          { id: 1, __component: 'shared.quote', words: 'Yes', by: { id: 3, documentId: 'w' } },
          { id: 2, __component: 'gone.part' },
        ],
      })
    ).toEqual({
      id: 4,
      documentId: 'doc',
      title: 'One',
      startsAt: '2026-01-02T03:04:05.000Z',
      tags: [{ documentId: 'a' }, { documentId: 'b' }],
      next: [],
      target: { __type: 'api::page.page', documentId: 't' },
      cover: { id: 7, documentId: 'f', name: 'f.png', url: '/f.png' },
      places: [{ id: 11, city: 'Ghent' }],
      body: [{ __component: 'shared.quote', id: 1, words: 'Yes', by: { documentId: 'w' } }],
      createdAt: null,
      publishedAt: null,
      locale: null,
    });
  });

  it('shows drafts of what it relates to in a draft alone', () => {
    const next = [
      { id: 1, documentId: 'a', publishedAt: null },
      { id: 2, documentId: 'b', publishedAt: '2026-01-01' },
    ];
    expect(entry({ next }).next).toEqual([{ documentId: 'b' }]);
    expect(serialize(article, row({ next }), 'draft').next).toEqual([
      { documentId: 'a' },
      { documentId: 'b' },
    ]);
  });
});

describe('what changed', () => {
  const changed = (before: Record<string, unknown>, after: Record<string, unknown>) =>
    changedFields(article, entry(before), entry(after));

  it.each<[string, Record<string, unknown>, Record<string, unknown>, string[]]>([
    ['nothing', {}, {}, []],
    ['a text', { title: 'One' }, { title: 'Two' }, ['title']],
    ["a time of the site's own", {}, { startsAt: '2026-01-02T00:00:00.000Z' }, ['startsAt']],
    ['times and ids of the host', { id: 1, createdAt: 'a' }, { id: 2, publishedAt: 'b' }, []],
    [
      'ids of components',
      { places: [{ id: 1, city: 'A' }], body: [{ id: 1, __component: 'shared.place', city: 'B' }] },
      { places: [{ id: 2, city: 'A' }], body: [{ id: 5, __component: 'shared.place', city: 'B' }] },
      [],
    ],
    [
      'a component',
      { places: [{ id: 1, city: 'A' }] },
      { places: [{ id: 1, city: 'B' }] },
      ['places'],
    ],
    [
      'the order of components',
      { places: [{ city: 'A' }, { city: 'B' }] },
      { places: [{ city: 'B' }, { city: 'A' }] },
      ['places'],
    ],
    [
      'the kind of a part',
      { body: [{ __component: 'shared.place', city: null }] },
      { body: [{ __component: 'shared.quote', words: null }] },
      ['body'],
    ],
    ['another file', { cover: { id: 1 } }, { cover: { id: 2 } }, ['cover']],
    [
      'what a file says of itself',
      { cover: { id: 1, name: 'a' } },
      { cover: { id: 1, name: 'b' } },
      [],
    ],
    [
      'the order of a relation whose other side keeps it',
      { tags: [{ documentId: 'a' }, { documentId: 'b' }] },
      { tags: [{ documentId: 'b' }, { documentId: 'a' }] },
      [],
    ],
    [
      'the order of a relation',
      { next: [{ documentId: 'a' }, { documentId: 'b' }] },
      { next: [{ documentId: 'b' }, { documentId: 'a' }] },
      ['next'],
    ],
  ])('%s', (_name, before, after, expected) => {
    expect(changed(before, after)).toEqual(expected);
  });

  it('against nothing is what has a value', () => {
    expect(changedFields(article, null, entry({ locale: 'en', places: [] }))).toEqual(['title']);
  });
});

describe('the events of a document', () => {
  const version = (
    number: number,
    title: string,
    where: Partial<Pick<Version, 'locale' | 'status'>> = {}
  ): Version => ({
    row: number,
    locale: null,
    status: 'published',
    ...where,
    entry: entry({ id: number, title }),
  });
  const draft = { status: 'draft' } as const;
  const said = (change: Partial<DocumentChange>) =>
    derive({
      shape: article,
      draftAndPublish: false,
      before: [],
      after: [],
      drafts: new Set(),
      ...change,
    }).map(({ action, version: { row: id, locale, status }, changed }) =>
      [action, id, locale, status, ...(changed ? [changed.join()] : [])].join(' ').trim()
    );

  it('without drafts', () => {
    const [one, two] = [version(1, 'One'), version(1, 'Two')];
    expect(said({ after: [one] })).toEqual(['created 1  published']);
    expect(said({ before: [one], after: [two] })).toEqual(['updated 1  published title']);
    expect(said({ before: [one], after: [version(1, 'One')] })).toEqual([]);
    expect(said({ before: [one] })).toEqual(['deleted 1  published']);
    expect(said({ before: [one], after: [one], rewritten: true })).toEqual([
      'updated 1  published',
    ]);
  });

  it('tells a publish by its new row, an edit by the old one', () => {
    const change = { draftAndPublish: true, before: [version(1, 'One')] };
    expect(said({ ...change, after: [version(2, 'One')] })).toEqual(['published 2  published']);
    expect(said({ ...change, after: [version(2, 'Two')] })).toEqual([
      'published 2  published title',
    ]);
    expect(said({ ...change, after: [version(1, 'Two')] })).toEqual(['updated 1  published title']);
    expect(said({ ...change, before: [], after: [version(1, 'One')] })).toEqual([
      'published 1  published title',
    ]);
  });

  it('is unpublished where a draft of its language is left, and else deleted', () => {
    const change = {
      draftAndPublish: true,
      before: [version(1, 'One', { locale: 'en' }), version(2, 'Un', { locale: 'fr' })],
    };
    expect(said({ ...change, drafts: new Set(['en']) })).toEqual([
      'unpublished 1 en published',
      'deleted 2 fr published',
    ]);
  });

  it('with drafts says each write of one, and one deletion a language', () => {
    const both = [version(1, 'One', draft), version(2, 'One')];
    const change = { draftAndPublish: true };
    expect(said({ ...change, after: both })).toEqual([
      'created 1  draft',
      'published 2  published title',
    ]);
    expect(said({ ...change, before: both })).toEqual(['deleted 2  published']);
    expect(said({ ...change, before: [version(1, 'One', draft)] })).toEqual(['deleted 1  draft']);
    expect(
      said({ ...change, before: both, after: [version(5, 'Two', draft), version(2, 'One')] })
    ).toEqual(['updated 5  draft title']);
  });

  it('names the record by its title, or by its id', () => {
    const event = (title: string | null) =>
      eventOf('api::article.article', article, {
        action: 'deleted',
        version: { ...version(1, ''), entry: entry({ title }) },
      });
    expect(event('A\nline').subject).toEqual({
      type: 'api::article.article',
      id: 'doc',
      label: 'A line',
    });
    expect(event(null).subject.label).toBe('doc');
    expect(event('x').event).toBe('entry.deleted');
  });
});
