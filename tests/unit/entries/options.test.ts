import { parseOptions } from '../../../server/src/config/schema';

const parse = (sources: unknown) => () => parseOptions({ sources });

it.each<[string, unknown]>([
  ["'*'", '*'],
  ['a list', ['api::article.article', { contentType: 'api::page.page', drafts: true }]],
  ['an empty list', []],
])('%s is taken', (_name, entries) => {
  expect(parse({ entries })().sources.entries).toEqual(entries);
});

it.each<[string, unknown, RegExp]>([
  [
    'a uid that is no list',
    { entries: 'api::article.article' },
    /sources\.entries: must be '\*' or/,
  ],
  [
    'a misspelt key',
    { entries: [{ type: 'api::article.article' }] },
    /switchboard\.sources\.entries/,
  ],
  ['drafts of another kind', { entries: [{ contentType: 'a', drafts: 1 }] }, /sources\.entries/],
  ['media of another kind', { media: 'yes' }, /switchboard\.sources\.media/],
  ['a list of contacts', { contact: ['api::a.a'] }, /sources\.contact: must be one mapping/],
  ['an unknown kind', { invoice: { contentType: 'a' } }, /switchboard\.sources\.invoice/],
])('%s is refused', (_name, sources, message) => {
  expect(parse(sources)).toThrow(message);
});

it('says nothing of entries unless asked to', () => {
  expect(parseOptions({}).sources).toEqual({});
});
