import { seededChance } from '../../../support/seeded-chance';

/** Filters that want to cost much, and data that makes them. */

type Schema = Record<string, unknown>;

export interface Hostile {
  number(below: number): number;
  /** A filter of at most some 16 kB. */
  filter(): Schema;
}

const NAMES = ['a', 'b', 'c', 'k1', 'key'];

const LARGEST = 16_384;

/** What is being made would be larger than a filter may be: most are, some a thousand times. */
class TooLarge extends Error {}

/** @param seed of all that is chosen */
export const hostile = (seed: number): Hostile => {
  const chance = seededChance(seed);
  const number = (below: number): number => Math.floor(chance() * below);
  const oneOf = <T>(list: readonly T[]): T => list[number(list.length)] as T;
  /** Entries so far, of which each takes two characters at least; a part of them may be dropped again. */
  let entries = 0;
  const many = <T>(count: number, make: (at: number) => T): T[] =>
    Array.from({ length: count }, (_, at) => {
      entries += 1;
      if (entries > LARGEST) throw new TooLarge();
      return make(at);
    });
  const value = (): unknown =>
    oneOf<() => unknown>([
      () => number(5),
      () => 'a'.repeat(number(40)),
      () => null,
      () => ({}),
      () => [],
      () => ({ a: 1, b: [2] }),
      () => many(number(20), (at) => at),
    ])();
  const text = (): string =>
    oneOf([
      () => 'a'.repeat(1 + number(2_000)),
      () => `b${'a'.repeat(number(3_000))}`,
      () => 'a',
      () => 'é',
    ])();

  const leaf = (): Schema =>
    oneOf<() => Schema>([
      () => ({
        type: oneOf([
          'number',
          'string',
          'integer',
          'object',
          'array',
          ['null', 'string', 'number'],
        ]),
      }),
      () => ({ const: value() }),
      () => ({ enum: many(1 + number(60), value) }),
      () => ({ enum: many(1 + number(1_500), (at) => at) }),
      () => ({ minimum: number(9), maximum: 10, exclusiveMinimum: 0, multipleOf: 0.1 }),
      () => ({ minLength: number(100_000) }),
      () => ({ maxLength: number(100_000) }),
      () => ({ startsWith: text() }),
      () => ({ endsWith: text() }),
      () => ({ includes: text() }),
      () => ({ required: many(1 + number(600), (at) => `r${at}`) }),
      () => ({ required: ['a'], minItems: 1, maxItems: 100_000 }),
      () => ({ minProperties: number(3), maxProperties: 100_000 }),
      () => ({ dependentRequired: { a: many(number(50), (at) => `r${at}`), k1: ['b'] } }),
      () => ({ propertyNames: { maxLength: 200 } }),
      () => ({
        additionalProperties: false,
        properties: Object.fromEntries(many(number(30), (at) => [`k${at}`, true])),
      }),
      () =>
        oneOf<Schema>([
          { uniqueItems: true },
          { pattern: '(a+)+$' },
          { patternProperties: { a: {} } },
          { dependencies: { a: { required: ['b'] } } },
          { unevaluatedItems: false },
        ]),
    ])();

  const schema = (depth: number, defined: readonly string[]): Schema => {
    if (depth === 0) return leaf();
    const below = (): Schema => schema(depth - 1, defined);
    const several = (): Schema[] => many(1 + number(oneOf([3, 12, 60])), below);
    return oneOf<() => Schema>([
      leaf,
      () => ({ ...leaf(), ...leaf(), ...leaf() }),
      () => ({ items: below() }),
      () => ({ contains: below(), minContains: number(4), maxContains: 50_000 }),
      () => ({ additionalProperties: below() }),
      () => ({ allOf: several() }),
      () => ({ anyOf: several() }),
      () => ({ oneOf: several() }),
      () => ({ allOf: many(1 + number(400), (at) => ({ ...leaf(), $comment: at })) }),
      () => ({ not: below() }),
      () => ({ if: below(), then: below(), else: below() }),
      () => ({ prefixItems: several(), items: below() }),
      () => ({ properties: Object.fromEntries(NAMES.map((name) => [name, below()])) }),
      () => ({ dependentSchemas: { a: below(), k1: below() } }),
      ...(defined.length === 0
        ? []
        : [
            () => ({ $ref: oneOf(defined) }),
            () => ({ allOf: many(1 + number(120), () => ({ $ref: oneOf(defined) })) }),
            () => ({ anyOf: many(1 + number(120), () => ({ not: { $ref: oneOf(defined) } })) }),
          ]),
    ])();
  };

  const make = (): Schema => {
    entries = 0;
    const $defs: Record<string, Schema> = {};
    for (let at = number(6); at > 0; at -= 1) {
      const known = Object.keys($defs).map((name) => `#/$defs/${name}`);
      $defs[`d${at}`] = schema(number(3), known);
    }
    const all = Object.keys($defs).map((name) => `#/$defs/${name}`);
    const inner = schema(1 + number(4), all);
    return { $defs, ...(number(4) === 0 ? inner : { properties: { a: inner } }) };
  };

  return {
    number,
    filter() {
      for (;;) {
        try {
          const filter = make();
          if (JSON.stringify(filter).length <= LARGEST) return filter;
        } catch (error) {
          if (!(error instanceof TooLarge)) throw error;
        }
      }
    },
  };
};

const listOf = (size: number, item: unknown): unknown[] =>
  Array.from({ length: Math.floor(size / (JSON.stringify(item).length + 1)) }, () => item);

const nested = (wrap: (inner: unknown) => unknown, levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = wrap(value);
  return value;
};

const keyed = (size: number, value: unknown, letters: number): Record<string, unknown> => {
  const each = JSON.stringify(value).length + letters + 4;
  return Object.fromEntries(
    Array.from({ length: Math.floor(size / each) }, (_, at) => [
      `k${String(at).padStart(letters - 1, '0')}`,
      value,
    ])
  );
};

/** Data of so many bytes in many shapes; what is in `a` is the costly part. */
export const costlyData = (size: number): (readonly [string, Record<string, unknown>])[] => {
  const side = Math.floor(Math.sqrt(size / 2));
  return (
    [
      ['numbers', listOf(size, 1)],
      ['broken numbers', listOf(size, 0.3)],
      ['short texts', listOf(size, 'a')],
      ['texts', listOf(size, 'a'.repeat(200))],
      ['empty objects', listOf(size, {})],
      ['objects', listOf(size, { a: 1, b: 'a', key: [1] })],
      ['empty lists', listOf(size, [])],
      ['lists of lists', Array.from({ length: side }, () => Array.from({ length: side }, () => 1))],
      ['deep lists', nested((inner) => [1, inner], size / 20)],
      ['deep objects', nested((inner) => ({ a: inner }), size / 20)],
      ['a long text', 'a'.repeat(size)],
      ['a long text of other letters', 'é'.repeat(size / 2)],
      ['a long text of pairs', '😀'.repeat(size / 4)],
      ['keys', keyed(size, 1, 5)],
      ['keys of texts', keyed(size, 'a', 5)],
      ['keys of objects', keyed(size, { a: 1 }, 5)],
      ['nothing', listOf(size, null)],
    ] as const
  ).map(([name, a]) => [
    name,
    // Data is JSON: objects share nothing with each other.
    JSON.parse(
      JSON.stringify(
        typeof a === 'object' && !Array.isArray(a) ? { ...(a as object), a } : { a, b: 1 }
      )
    ) as Record<string, unknown>,
  ]);
};

const byName = <T>(size: number, make: (at: number) => T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: size }, (_, at) => [`p${at}`, make(at)]));
const times = <T>(size: number, make: (at: number) => T): T[] =>
  Array.from({ length: size }, (_, at) => make(at));

/** Filters that grow in one way until they are refused: what compiles to the most code, or does the most to data. */
const GROWING: Readonly<Record<string, (size: number) => Schema>> = {
  properties: (size) => ({ properties: byName(size, () => ({ minimum: 1, multipleOf: 3 })) }),
  texts: (size) => ({ properties: byName(size, () => ({ startsWith: 'a', type: 'string' })) }),
  'asked names': (size) => ({ allOf: times(size, (at) => ({ required: [`a${at}`, `b${at}`] })) }),
  'dependent names': (size) => ({ dependentRequired: byName(size, () => ['a', 'b', 'c', 'd']) }),
  'dependent schemas': (size) => ({ dependentSchemas: byName(size, () => ({ required: ['a'] })) }),
  conditions: (size) => ({
    allOf: times(size, (at) => ({ if: { minimum: at }, then: { maximum: 1 }, else: { const: 2 } })),
  }),
  'one of values': (size) => ({ oneOf: times(size, (at) => ({ const: at })) }),
  'one of ranges': (size) => ({ oneOf: times(size, (at) => ({ type: 'number', minimum: at })) }),
  'any of types': (size) => ({
    anyOf: times(size, (at) => ({ type: ['string', 'integer', 'null'], minimum: at })),
  }),
  negations: (size) => ({ allOf: times(size, () => ({ not: { not: { type: 'null' } } })) }),
  entries: (size) => ({
    properties: { a: { items: { enum: times(size, (at) => at) } } },
  }),
  'texts in texts': (size) => ({
    properties: { a: { allOf: times(size, () => ({ includes: `${'ab'.repeat(300)}c` })) } },
  }),
  'checks of items': (size) => ({
    properties: { a: { items: { oneOf: times(size, (at) => ({ multipleOf: 0.1 + at })) } } },
  }),
  'contained items': (size) => ({
    properties: {
      a: { contains: { allOf: times(size, () => ({ minimum: 0 })) }, minContains: 50_000 },
    },
  }),
  'checks of keys': (size) => ({
    properties: { a: { propertyNames: { anyOf: times(size, () => ({ endsWith: 'x' })) } } },
  }),
  'lists in objects': (size) => ({
    properties: { a: { items: { contains: { allOf: times(size, () => ({ required: ['a'] })) } } } },
  }),
  values: (size) => ({
    properties: { a: { anyOf: times(size, () => ({ const: times(500, () => 1) })) } },
  }),
};

/** The largest filter of each way of growing that is taken. */
export const largestTaken = (isTaken: (filter: Schema) => boolean): (readonly [string, Schema])[] =>
  Object.entries(GROWING).map(([name, grow]) => {
    let [taken, refused] = [0, 2_048];
    while (refused - taken > 1) {
      const size = Math.floor((taken + refused) / 2);
      if (isTaken(grow(size))) taken = size;
      else refused = size;
    }
    return [name, grow(taken)] as const;
  });
