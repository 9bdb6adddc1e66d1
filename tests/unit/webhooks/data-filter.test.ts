import { judgeFilter, matches, storedFilter } from '../../../server/src/webhooks/rules/data-filter';
import { judgePattern, linearPattern } from '../../../server/src/webhooks/rules/safe-pattern';

const requires = (properties: Record<string, unknown>) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});

/** A filter that holds the pattern against a text. */
const matching = (pattern: string) => requires({ email: { type: 'string', pattern } });

describe('a filter', () => {
  it.each([
    [requires({ source: { const: 'form' } }), { source: 'form' }, true],
    [requires({ source: { const: 'form' } }), { source: 'api' }, false],
    [requires({ source: { const: 'form' } }), {}, false],
    [requires({ value: { minimum: 100 } }), { value: 100 }, true],
    [requires({ value: { minimum: 100 } }), { value: 99 }, false],
    [matching('@example\\.com$'), { email: 'a@example.com' }, true],
    [matching('@example\\.com$'), { email: 'a@example.org' }, false],
    [
      {
        $defs: { vip: requires({ slug: { const: 'vip' } }) },
        properties: { tag: { $ref: '#/$defs/vip' } },
      },
      { tag: { slug: 'other' } },
      false,
    ],
    [{}, { anything: 1 }, true],
  ])('%j holds %j: %s', (filter, data, expected) => {
    expect(judgeFilter(filter)).toBeNull();
    expect(matches(filter, data)).toBe(expected);
  });

  it.each([
    ['a type that there is not', { type: 'text' }],
    ['a keyword that there is not', { propertys: {} }],
    ['another draft', { $schema: 'http://json-schema.org/draft-07/schema#' }],
    ['a reference to elsewhere', { $ref: 'https://example.com/schema.json' }],
    ['a reference to nothing', { $ref: '#/$defs/missing' }],
    ['a reference to a place of another kind', { $ref: '#/type/x', type: 'object' }],
    ['a reference to itself', { properties: { a: { $ref: '#' } } }],
    ['a circle', { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }],
    ['a name that leads elsewhere', { $id: 'https://example.com/' }],
    ['a dynamic reference', { $dynamicRef: '#a' }],
    ['items compared with each other', { properties: { a: { uniqueItems: true } } }],
    ['a check that answers later', { $async: true, required: ['a'] }],
    ['the same further in', { properties: { a: { $async: true } } }],
    ['a pattern that may backtrack', matching('^(a+)+$')],
    ['the same in the name of a property', { patternProperties: { '^(a+)+$': true } }],
    ['no pattern', matching('(')],
    ['more than it may be large', { description: 'x'.repeat(20_000) }],
  ])('is refused: %s', (_what, filter) => {
    expect(judgeFilter(filter as Record<string, unknown>)?.message).toMatch(/\S/);
  });

  it('is refused where it is nested too deeply', () => {
    let filter: Record<string, unknown> = { type: 'string' };
    for (let depth = 0; depth < 40; depth += 1) filter = { properties: { a: filter } };
    expect(judgeFilter(filter)?.message).toMatch(/nested/);
  });

  it('is refused where references multiply what is looked at', () => {
    const $defs: Record<string, unknown> = { d0: { type: 'object' } };
    for (let at = 1; at <= 5; at += 1) {
      const before = { $ref: `#/$defs/d${at - 1}` };
      $defs[`d${at}`] = { allOf: [before, before, before, before] };
    }
    expect(judgeFilter({ $defs, $ref: '#/$defs/d5' })?.message).toMatch(/more than 500/);
  });
});

describe('what a row holds for a filter', () => {
  it('is the filter, none, or what lets nothing through where it is neither', () => {
    expect(storedFilter('{"type":"object"}')).toEqual({ type: 'object' });
    expect([storedFilter(null), storedFilter('null')]).toEqual([null, null]);
    for (const text of ['', '{', '[]', '"text"', '1']) {
      const filter = storedFilter(text);
      expect([text, filter && matches(filter, {})]).toEqual([text, false]);
    }
  });
});

describe('a pattern', () => {
  it.each([
    '^[A-Z]{2}$',
    '@example\\.com$',
    '^\\d{4}-\\d{2}$',
    '(foo|bar)',
    '^\\p{L}+$',
    '(?:abc)+',
  ])('%s is taken', (pattern) => {
    expect(judgePattern(pattern)).toBeNull();
  });

  it.each([
    ...['^(a+)+$', '(a|aa)+$', '(a|a)*$', '([a-z]+)*x', '(a?){50}', '((ab)*c)*'],
    ...['(a)\\1', '(?=a)b', '(?<!a)b', '[', '(', '\\u{110000}'],
  ])('%s is not', (pattern) => {
    expect(judgePattern(pattern)).toMatch(/\S/);
  });

  it('finds what the host’s regular expressions find', () => {
    for (const [pattern, texts] of [
      ['^\\p{L}+$', ['Ärger', 'a1', '']],
      ['^a.c$', ['abc', 'a😀c', 'a\nc']],
      ['\\bvip\\b', ['a vip here', 'vips']],
      ['^\\u00e9$', ['é', 'e']],
    ] as const) {
      const own = linearPattern(pattern);
      const host = new RegExp(pattern, 'u');
      for (const text of texts)
        expect([pattern, text, own.test(text)]).toEqual([pattern, text, host.test(text)]);
    }
  });
});
