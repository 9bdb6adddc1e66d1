import fc from 'fast-check';
import {
  compile,
  judgeFilter,
  matches,
  refusalOf,
  storedFilter,
} from '../../../server/src/webhooks/rules/data-filter';
import { finder } from '../../../server/src/webhooks/rules/filter-schema';
import { costlyData, hostile, largestTaken } from './support/hostile-filters';

const requires = (properties: Record<string, unknown>) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});

/** A filter that holds what is said against a text. */
const matching = (said: object) => requires({ email: { type: 'string', ...said } });

describe('a filter', () => {
  it.each([
    [requires({ source: { const: 'form' } }), { source: 'form' }, true],
    [requires({ source: { const: 'form' } }), { source: 'api' }, false],
    [requires({ source: { const: 'form' } }), {}, false],
    [requires({ value: { minimum: 100 } }), { value: 100 }, true],
    [requires({ value: { minimum: 100 } }), { value: 99 }, false],
    [matching({ endsWith: '@example.com' }), { email: 'a@example.com' }, true],
    [matching({ endsWith: '@example.com' }), { email: 'a@example.org' }, false],
    [matching({ startsWith: 'a@' }), { email: 'a@example.com' }, true],
    [matching({ startsWith: '@' }), { email: 'a@example.com' }, false],
    [matching({ includes: '@ex' }), { email: 'a@example.com' }, true],
    [matching({ includes: '@ex' }), { email: 'a@EXAMPLE.com' }, false],
    [requires({ a: { startsWith: 'x' } }), { a: 1 }, true],
    [requires({ a: { enum: [1, 'b', { c: [1] }] } }), { a: { c: [1] } }, true],
    [requires({ a: { enum: [1, 'b', { c: [1] }] } }), { a: { c: [2] } }, false],
    [requires({ a: { enum: [1, 'b'] } }), { a: '1' }, false],
    [
      { $defs: { a: { minimum: 2 } }, properties: { a: { $ref: '#/$defs/a', maximum: 3 } } },
      { a: 4 },
      false,
    ],
    [
      { $defs: { a: { minimum: 2 } }, properties: { a: { $ref: '#/$defs/a', maximum: 3 } } },
      { a: 1 },
      false,
    ],
    [
      { $defs: { a: { minimum: 2 } }, properties: { a: { $ref: '#/$defs/a', maximum: 3 } } },
      { a: 3 },
      true,
    ],
    [
      { properties: { list: { contains: { const: 1 }, minContains: 2 } } },
      { list: [1, 2, 1] },
      true,
    ],
    [{ properties: { list: { contains: { const: 1 }, minContains: 2 } } }, { list: [1, 2] }, false],
    [{ anyOf: [{ required: ['a'] }, { not: { required: ['b'] } }] }, { b: 1 }, false],
    [
      {
        $defs: { vip: requires({ slug: { const: 'vip' } }) },
        properties: { tag: { $ref: '#/$defs/vip' } },
      },
      { tag: { slug: 'other' } },
      false,
    ],
    [requires({ a: { multipleOf: 0.1 } }), { a: 0.3 }, true],
    [requires({ a: { multipleOf: 0.1 } }), { a: 0.35 }, false],
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
    ['a pattern', matching({ pattern: '^a' })],
    ['a pattern in the name of a property', { patternProperties: { '^a': true } }],
    ['a keyword of an older draft', { dependencies: { a: { required: ['b'] } } }],
    ['the same in a definition that nothing leads to', { $defs: { a: { dependencies: {} } } }],
    ['what ajv has beside JSON Schema', { nullable: true, type: 'string' }],
    ['an empty enum', { enum: [] }],
    ['a type twice', { type: ['null', 'null'] }],
    ['a schema that is none', { properties: { a: 5 } }],
    ['the same in a list', { anyOf: ['a'] }],
    ['schemas that are no list', { anyOf: { a: true } }],
    ['no schemas', { allOf: [] }],
    ['schemas without names', { properties: [true] }],
    ['a limit that is no number', { minimum: '1' }],
    ['a negative length', matching({ maxLength: -1 })],
    ['a part of a length', matching({ minLength: 1.5 })],
    ['a multiple of nothing', { multipleOf: 0 }],
    ['names without a list', { dependentRequired: { a: 'b' } }],
    ['a name twice', { required: ['a', 'a'] }],
    ['a start that is no text', matching({ startsWith: 1 })],
    ['a list of names that are none', { required: [1] }],
    ['more than it may be large', { description: 'x'.repeat(20_000) }],
  ])('is refused: %s', (_what, filter) => {
    expect(judgeFilter(filter as Record<string, unknown>)?.message).toMatch(/\S/);
  });

  it('is compiled to code that notes no errors, however ajv writes that', () => {
    const said = { type: 'string', startsWith: 'a', required: ['a'], minimum: 1, const: 'a' };
    const few = { minimum: 1 };
    const lists = { items: { oneOf: [few] }, contains: few, additionalProperties: few };
    const all = { ...said, anyOf: [said], oneOf: [said], allOf: [said], not: said, if: said };
    const code = String(
      compile({ ...all, ...lists, then: said, else: said, properties: { a: said } })
    );
    // One is left: that of the whole, which says that it does not match.
    expect(code.match(/const err\d+/g)).toHaveLength(1);
    expect(code.match(/vErrors\.push/g)).toHaveLength(1);
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
    expect(judgeFilter({ $defs, $ref: '#/$defs/d5' })?.message).toMatch(/more than 150/);
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

describe('a filter of version 0.2', () => {
  const email = (said: object) => ({ properties: { email: said } });

  it.each([
    ['^abc', { startsWith: 'abc' }, ['abcd', 'xabc']],
    ['abc$', { endsWith: 'abc' }, ['xabc', 'abcd']],
    ['abc', { includes: 'abc' }, ['xabcd', 'xab']],
    ['^abc$', { if: { type: 'string' }, then: { const: 'abc' } }, ['abc', 'abcd']],
    ['@example\\.com$', { endsWith: '@example.com' }, ['a@example.com', 'a@exampleXcom']],
    ['a\\$', { includes: 'a$' }, ['xa$b', 'xa']],
    ['^\\\\$', { if: { type: 'string' }, then: { const: '\\' } }, ['\\', '$']],
  ])('says by keywords what the pattern %s said', (pattern, said, [fits, fitsNot]) => {
    const stored = storedFilter(JSON.stringify(email({ pattern })));
    expect(stored).toEqual(email(said));
    expect(
      [{ email: fits }, { email: fitsNot }, { email: 5 }].map((data) => matches(stored!, data))
    ).toEqual([true, false, true]);
    for (const text of [fits, fitsNot]) {
      expect([text, new RegExp(pattern, 'u').test(text!)]).toEqual([text, text === fits]);
    }
  });

  it('keeps what stands beside a pattern, and what only looks like one', () => {
    const filter = email({
      ...{ startsWith: 'a', pattern: '^ab', type: 'string' },
      allOf: [{ pattern: 'c$' }, { const: { pattern: '^d' } }],
    });
    expect(storedFilter(JSON.stringify(filter))).toEqual(
      email({
        ...{ startsWith: 'a', type: 'string' },
        allOf: [{ endsWith: 'c' }, { const: { pattern: '^d' } }, { startsWith: 'ab' }],
      })
    );
    const named = { properties: { pattern: { const: '^a' } }, required: ['pattern'] };
    expect(storedFilter(JSON.stringify(named))).toEqual(named);
  });

  it.each([['a|b', 'a.c', '^[ab]', 'a+', '(a)', 'a\\d', '^a$b', 'a{2}', '\\bvip']].flat())(
    'is left with the pattern %s, and may not be used',
    (pattern) => {
      const stored = storedFilter(JSON.stringify(email({ pattern })));
      expect(stored).toEqual(email({ pattern }));
      expect(refusalOf(stored!)).toMatchObject({ code: 'filter_pattern' });
      expect(() => matches(stored!, { email: 'a' })).toThrow('pattern may not be used');
    }
  );
});

describe('a text that is looked for', () => {
  it('is found where the host finds it', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 200 }),
        fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 14 }),
        (text, sought) => finder(sought)(text) === text.includes(sought)
      ),
      { numRuns: 500 }
    );
  });
});

/** Data that counts how often something in it is read. */
const counting = (data: object, count: () => void): unknown => {
  const known = new WeakMap<object, unknown>();
  const wrap = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    const wrapped =
      known.get(value) ??
      new Proxy(value, {
        get: (target, key, receiver) => {
          count();
          return wrap(Reflect.get(target, key, receiver));
        },
        ownKeys: (target) => {
          const keys = Reflect.ownKeys(target);
          keys.forEach(count);
          return keys;
        },
      });
    known.set(value, wrapped);
    return wrapped;
  };
  return wrap(data);
};

const valuesIn = (value: unknown): number =>
  typeof value !== 'object' || value === null
    ? 1
    : Object.values(value).reduce((sum: number, one) => sum + valuesIn(one), 1);

describe('a filter that wants to cost much', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { filter: make } = hostile(seed);
  const taken: Record<string, unknown>[] = [];
  const data = costlyData(4_000).map(([name, value]) => [name, value, valuesIn(value)] as const);

  /** That a filter which is taken costs little: what it is compiled to, and what it reads of the data. */
  const costsLittle = (filter: Record<string, unknown>): void => {
    const validate = compile(filter);
    // 300 keywords of some 200 characters each.
    const { length } = String(validate);
    if (length > 60_000) throw new Error(`${length} of code: ${JSON.stringify(filter)}`);
    for (const [name, value, values] of data) {
      let reads = 0;
      validate(counting(value, () => (reads += 1)));
      const most = 24 * 3 * values + 15_000;
      if (reads > most) throw new Error(`${reads} reads of ${name}: ${JSON.stringify(filter)}`);
    }
  };

  it(`is compiled to little code, and reads little of the data (seed ${seed})`, () => {
    for (let made = 0; made < 150; made += 1) {
      const filter = make();
      if (judgeFilter(filter) !== null) continue;
      taken.push(filter);
      costsLittle(filter);
    }
    expect(taken.length).toBeGreaterThan(10);
  });

  it.each(largestTaken((filter) => refusalOf(filter) === null))(
    'costs little, too, where it has as much as is taken of one kind: %s',
    (_name, filter) => {
      expect(judgeFilter(filter)).toBeNull();
      expect(JSON.stringify(filter).length).toBeGreaterThan(50);
      costsLittle(filter);
    }
  );

  it('is refused before it is expanded where references or entries multiply', () => {
    const names = Array.from({ length: 1_500 }, (_, at) => at);
    const $defs = { many: { enum: names } };
    const allOf = Array.from({ length: 60 }, () => ({ $ref: '#/$defs/many' }));
    expect(judgeFilter({ $defs, allOf: allOf.slice(0, 3) })).toBeNull();
    expect(judgeFilter({ $defs, allOf })).toMatchObject({ code: 'filter_entries' });
    const walks = (count: number) => ({
      properties: {
        a: { items: { allOf: names.slice(0, count).map((minimum) => ({ minimum })) } },
      },
    });
    expect(judgeFilter(walks(22))).toBeNull();
    expect(judgeFilter(walks(23))).toMatchObject({ code: 'filter_walks' });
    const lengths = names.slice(0, 13).map((minLength) => ({ minLength }));
    expect(judgeFilter({ allOf: lengths })).toMatchObject({ code: 'filter_walks' });
    const required = names.map(String).slice(0, 1_400);
    const wide = {
      $defs: { wide: { required } },
      allOf: allOf.map(() => ({ $ref: '#/$defs/wide' })),
    };
    expect(judgeFilter(wide)).toMatchObject({ code: 'filter_large' });
    const keywords = names.slice(0, 200).map((minimum) => ({ minimum, maximum: 1, multipleOf: 2 }));
    expect(judgeFilter({ allOf: keywords.slice(0, 90) })).toBeNull();
    expect(judgeFilter({ allOf: keywords.slice(0, 110) })).toMatchObject({
      code: 'filter_keywords',
    });
  });
});
