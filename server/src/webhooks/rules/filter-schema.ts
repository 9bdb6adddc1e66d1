import { isDeepStrictEqual } from 'node:util';
import {
  _,
  type default as Ajv,
  type CodeKeywordDefinition,
  type KeywordCxt,
} from 'ajv/dist/2020.js';
import type { RefusalCode, RefusalValues } from '../../../../shared/contracts/refusals';
import { isRecord } from '../../runtime/text';
import { type Refusal, refusal } from '../../runtime/refusal';

/** Positions at which a searched text may restart after a partial match. */
const restartsOf = (sought: string): Uint16Array => {
  const restarts = new Uint16Array(sought.length);
  let matched = 0;
  for (let at = 1; at < sought.length; at += 1) {
    while (matched > 0 && sought[at] !== sought[matched]) matched = restarts[matched - 1] as number;
    if (sought[at] === sought[matched]) matched += 1;
    restarts[at] = matched;
  }
  return restarts;
};

/** Shorter ones are found by the host in next to linear time. */
const SHORT = 8;

/** Substring test in linear time (Knuth, Morris, Pratt); `String.includes` may be quadratic. */
export const finder = (sought: string): ((text: string) => boolean) => {
  if (sought.length <= SHORT) return (text) => text.includes(sought);
  const restarts = restartsOf(sought);
  return (text) => {
    let matched = 0;
    for (let at = 0; at < text.length; at += 1) {
      while (matched > 0 && text[at] !== sought[matched]) matched = restarts[matched - 1] as number;
      if (text[at] === sought[matched]) matched += 1;
      if (matched === sought.length) return true;
    }
    return false;
  };
};

/** An object or a list, which is compared by all that is in it. */
export const isComposite = (value: unknown): value is object =>
  typeof value === 'object' && value !== null;

/** `enum` by a look-up: ajv compares with one entry after the other. */
const oneOf = (entries: readonly unknown[]): ((data: unknown) => boolean) => {
  if (entries.length === 0) throw new Error('enum must have at least one entry');
  const simple = new Set(entries.filter((entry) => !isComposite(entry)));
  const others = entries.filter(isComposite);
  if (others.length === 0) return (data) => simple.has(data);
  return (data) =>
    simple.has(data) ||
    (isComposite(data) && others.some((entry) => isDeepStrictEqual(data, entry)));
};

/** A keyword that one function of the data decides, called without what ajv hands to others. */
const decidedBy = <S>(
  keyword: string,
  schemaType: 'string' | 'array',
  build: (value: S) => (data: never) => boolean
): CodeKeywordDefinition => ({
  keyword,
  schemaType,
  ...(schemaType === 'string' && { type: 'string' }),
  code(cxt: KeywordCxt) {
    const decides = cxt.gen.scopeValue('func', { ref: build(cxt.schema as S) });
    cxt.pass(_`${decides}(${cxt.data})`);
  },
});

/** Adds `startsWith`, `endsWith`, `includes`, which accept any value that is no text; docs/management-api.md#filters */
export const addFilterKeywords = (ajv: Ajv): void => {
  ajv.addKeyword(
    decidedBy('startsWith', 'string', (start: string) => (text: string) => text.startsWith(start))
  );
  ajv.addKeyword(
    decidedBy('endsWith', 'string', (end: string) => (text: string) => text.endsWith(end))
  );
  ajv.addKeyword(decidedBy('includes', 'string', finder));
  ajv.removeKeyword('enum');
  ajv.addKeyword(decidedBy('enum', 'array', oneOf));
};

/** Limits of a filter's JSON Schema: its keywords, and the cost of holding data against it. */

type Schema = Record<string, unknown>;

/** A rejected filter, with the reason in `refusal`. */
export class UnfitFilter extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.message);
  }
}

const unfit = (reason: string, code: RefusalCode, values?: RefusalValues): never => {
  throw new UnfitFilter(refusal(reason, code, values));
};

const wrong = (reason: string): never => unfit(reason, 'filter_schema', { reason });

const atMost = (maximum: number, count: number, what: string, code: RefusalCode): void => {
  if (count > maximum)
    unfit(`more than ${maximum} ${what}, with what $ref leads to`, code, { maximum });
};

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';
/** Bytes of JSON. */
const LARGEST = 16_384;
/** Its size with everything that $ref leads to in its place. */
const LARGEST_EXPANDED = 32_768;
const DEEPEST = 16;
/** Schemas that data is held against, each reference counted with all that it leads to. */
const MOST_SCHEMAS = 150;
/** Keywords of all schemas, and names that one of them asks for; each takes its time to compile. */
const MOST_KEYWORDS = 300;
/** Units of work for each item of a list, key of an object or character of a text in the data. */
const MOST_WALKED = 24;
/** Entries of all `enum`, each reference counted with all that it leads to. */
const MOST_ENTRIES = 5_000;

/** As many names in `required` as are looked up in a loop. */
export const LOOPED = 20;

/** Allowed filter keywords by value kind. Others have no cost below; `uniqueItems` compares items with each other. */
const ONE_SCHEMA = [
  ...['items', 'contains', 'additionalProperties', 'propertyNames'],
  ...['not', 'if', 'then', 'else'],
];
const LIST_OF_SCHEMAS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const SCHEMAS_BY_NAME = ['properties', 'dependentSchemas'];
const DEFINED = ['$defs', 'definitions'];
const NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
const TEXTS = ['startsWith', 'endsWith', 'includes'];
const COUNTS = [
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minContains', 'maxContains'],
  ...['minProperties', 'maxProperties'],
];
/** For people: nothing is held against them. */
const NOTES = [
  ...['$schema', '$comment', 'title', 'description', 'default', 'examples', 'format'],
  ...['deprecated', 'readOnly', 'writeOnly', 'contentEncoding', 'contentMediaType'],
];
const PATTERNS = ['pattern', 'patternProperties'];
/** Other keywords that JSON Schema or ajv has, to tell them from misspelt ones. */
const REFUSED = [
  ...['$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$recursiveAnchor', '$recursiveRef'],
  ...['$vocabulary', '$async', 'id', 'uniqueItems', 'dependencies', 'additionalItems'],
  ...['unevaluatedProperties', 'unevaluatedItems', 'contentSchema', 'nullable', 'discriminator'],
];

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];

const isText = (value: unknown): boolean => typeof value === 'string';
const isNumber = (value: unknown): boolean => typeof value === 'number';
const isList = (value: unknown): value is unknown[] => Array.isArray(value) && value.length > 0;
const isListOf = (value: unknown, isOne: (one: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isOne) && new Set(value).size === value.length;
const isNames = (value: unknown): boolean => isListOf(value, isText);
const isType = (value: unknown): boolean => TYPES.includes(value as string);
const isAnything = (): boolean => true;

/** The shape of a keyword's value and its test; nested schemas are checked when they are reached. */
type Shape = readonly [words: string, is: (value: unknown) => boolean];

const shapes = (keywords: readonly string[], ...shape: Shape): [string, Shape][] =>
  keywords.map((keyword) => [keyword, shape]);

const SHAPES: ReadonlyMap<string, Shape> = new Map([
  ...shapes(['$ref', 'const', ...ONE_SCHEMA, ...NOTES], 'anything', isAnything),
  ...shapes(LIST_OF_SCHEMAS, 'a list of schemas', isList),
  ...shapes([...SCHEMAS_BY_NAME, ...DEFINED], 'an object of schemas', isRecord),
  ...shapes(TEXTS, 'a text', isText),
  ...shapes(NUMBERS, 'a number', isNumber),
  ...shapes(
    COUNTS,
    'a whole number that is not negative',
    (value) => Number.isInteger(value) && Number(value) >= 0
  ),
  ...shapes(['multipleOf'], 'a number above 0', (value) => isNumber(value) && Number(value) > 0),
  ...shapes(['enum'], 'a list with at least one entry', isList),
  ...shapes(['required'], 'a list of different names', isNames),
  ...shapes(
    ['dependentRequired'],
    'an object of lists of different names',
    (value) => isRecord(value) && Object.values(value).every(isNames)
  ),
  ...shapes(
    ['type'],
    `one of ${TYPES.join(', ')}, or a list of different ones`,
    (value) => isType(value) || (isList(value) && isListOf(value, isType))
  ),
]);
const isUnheld = (keyword: string): boolean => NOTES.includes(keyword) || DEFINED.includes(keyword);

const at = (root: Schema, reference: unknown): unknown => {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) {
    return unfit(
      '$ref may only lead to a place within the filter, such as "#/$defs/name"',
      'filter_reference'
    );
  }
  const keys = reference
    .split('/')
    .slice(1)
    .map((key) => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~'));
  let found: unknown = root;
  for (const key of keys) {
    if (!isComposite(found) || !Object.hasOwn(found, key)) {
      const reason = `there is nothing at ${JSON.stringify(reference)}`;
      return unfit(reason, 'filter_place', { place: reference });
    }
    found = (found as Schema)[key];
  }
  return found;
};

const judgeKeywords = (schema: Schema): void => {
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === '$schema' && value !== DRAFT && value !== `${DRAFT}#`) {
      wrong(`$schema may only be ${DRAFT}`);
    }
    const [words, is] = SHAPES.get(keyword) ?? [];
    if (is?.(value)) continue;
    if (is) wrong(`${keyword} must be ${words}`);
    if (PATTERNS.includes(keyword)) {
      const written = JSON.stringify(isRecord(value) ? Object.keys(value) : value).slice(0, 200);
      unfit(
        `${keyword} may not be used: startsWith, endsWith and includes compare texts`,
        'filter_pattern',
        { pattern: written }
      );
    }
    if (REFUSED.includes(keyword)) {
      unfit(`${keyword} may not be used`, 'filter_keyword', { keyword });
    }
    wrong(`unknown keyword: ${JSON.stringify(keyword.slice(0, 200))}`);
  }
};

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0);

const namesIn = (value: unknown): number =>
  isRecord(value)
    ? Object.values(value).reduce((sum: number, names) => sum + lengthOf(names), 0)
    : 0;

/** Names, of types too, that are compiled one by one; ajv goes through a longer `required` in a loop. */
const namesOf = (schema: Schema, keyword: string): number => {
  if (keyword === 'dependentRequired') return namesIn(schema[keyword]);
  if (keyword === 'type') return lengthOf(schema[keyword]);
  return keyword === 'required' ? Math.min(LOOPED, lengthOf(schema[keyword])) : 0;
};

const COMPARING_OBJECTS = 6;
const KEYS_OF_OBJECT = 5;

const keysIn = (value: unknown): number => (isRecord(value) ? Object.keys(value).length : 0);

/** By keyword: a cost, or what makes it of the keyword's value and its schema. */
type Costs = Readonly<Record<string, number | ((value: unknown, schema: Schema) => number)>>;

const costIn = (costs: Costs, schema: Schema, keyword: string, other: number): number => {
  const cost = costs[keyword] ?? other;
  return typeof cost === 'number' ? cost : cost(schema[keyword], schema);
};

/** Cost units of keywords that look at each item, key or character; measured: a unit costs at most 0.2 ms for 60 kB. */
const WALKING: Costs = {
  items: (value) => (typeof value === 'boolean' ? 0 : 1),
  contains: 7,
  // Each key is compared with the names of `properties`; of many, with a table of them.
  additionalProperties: (_value, { properties }) =>
    KEYS_OF_OBJECT + Math.min(8, keysIn(properties)),
  propertyNames: KEYS_OF_OBJECT,
  minProperties: KEYS_OF_OBJECT,
  maxProperties: KEYS_OF_OBJECT,
  minLength: 2,
  maxLength: 2,
  includes: 3,
  const: (value) => (isComposite(value) ? COMPARING_OBJECTS : 0),
  enum: (value) =>
    Array.isArray(value) ? value.filter(isComposite).length * COMPARING_OBJECTS : 0,
};

/** The cost of a keyword for each item, if it is held against each of them; 1 of any other. */
const PER_ITEM: Costs = {
  enum: 3,
  multipleOf: 3,
  startsWith: 2,
  endsWith: 2,
  type: (value) => Math.max(1, lengthOf(value)),
  required: (value) => Math.max(1, lengthOf(value)),
  dependentRequired: (value) => Math.max(1, namesIn(value)),
  properties: keysIn,
};

/** Keywords whose schema is held against each item or key. */
const WALKERS = ['items', 'contains', 'additionalProperties', 'propertyNames'];

const ownBytes = (schema: Schema): number =>
  Object.entries(schema).reduce((sum, [keyword, value]) => {
    if (isUnheld(keyword)) return sum;
    const hasSchemas = ONE_SCHEMA.includes(keyword) || LIST_OF_SCHEMAS.includes(keyword);
    const isByName = SCHEMAS_BY_NAME.includes(keyword) && isRecord(value);
    const said = hasSchemas ? null : isByName ? Object.keys(value) : value;
    return sum + keyword.length + 4 + Buffer.byteLength(JSON.stringify(said) ?? '');
  }, 2);

/** A schema with each schema that is in it as `change` makes it. */
export const withInner = (
  schema: Schema,
  change: (inner: unknown, keyword: string) => unknown
): Schema =>
  Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (ONE_SCHEMA.includes(keyword)) return [keyword, change(value, keyword)];
      if (LIST_OF_SCHEMAS.includes(keyword) && Array.isArray(value)) {
        return [keyword, value.map((one) => change(one, keyword))];
      }
      if (![...SCHEMAS_BY_NAME, ...DEFINED].includes(keyword) || !isRecord(value)) {
        return [keyword, value];
      }
      const named = Object.entries(value).map(([name, one]) => [name, change(one, keyword)]);
      return [keyword, Object.fromEntries(named)];
    })
  );

interface Place {
  depth: number;
  /** True if it is held against each item of something. */
  walked: boolean;
  within: readonly unknown[];
}

class Expansion {
  private schemas = 0;
  private entries = 0;
  private keywords = 0;
  private walked = 0;
  private bytes = 0;
  private readonly sizes = new Map<Schema, number>();

  constructor(private readonly root: Schema) {}

  /** Counts before anything is built: what is too much is never made. */
  private count(schema: unknown, { depth, walked }: Place): void {
    this.schemas += 1;
    atMost(MOST_SCHEMAS, this.schemas, 'schemas', 'filter_many');
    if (depth > DEEPEST) {
      const reason = `schemas are nested more than ${DEEPEST} deep`;
      unfit(reason, 'filter_deep', { maximum: DEEPEST });
    }
    if (typeof schema === 'boolean') return;
    if (!isRecord(schema)) return wrong('a schema must be an object, true or false');
    judgeKeywords(schema);
    const size = this.sizes.get(schema) ?? ownBytes(schema);
    this.sizes.set(schema, size);
    this.bytes += size;
    if (this.bytes > LARGEST_EXPANDED) {
      const reason = `larger than ${LARGEST_EXPANDED} bytes with what $ref leads to`;
      unfit(reason, 'filter_large', { maximum: LARGEST_EXPANDED });
    }
    this.entries += lengthOf(schema.enum);
    atMost(MOST_ENTRIES, this.entries, 'entries of enum', 'filter_entries');
    for (const keyword of Object.keys(schema)) {
      if (isUnheld(keyword)) continue;
      this.keywords += Math.max(1, namesOf(schema, keyword));
      this.walked += costIn(WALKING, schema, keyword, 0);
      if (walked) this.walked += costIn(PER_ITEM, schema, keyword, 1);
    }
    atMost(MOST_KEYWORDS, this.keywords, 'keywords', 'filter_keywords');
    if (this.walked > MOST_WALKED) {
      unfit('too much is done to each item, key or character of the data', 'filter_walks');
    }
  }

  private reference(schema: Schema, place: Place): unknown {
    const target = at(this.root, schema.$ref);
    if (target === schema || place.within.includes(target)) {
      unfit('$ref may not lead to itself', 'filter_loop');
    }
    return this.of(target, place);
  }

  /** A schema with what its references lead to in their place, and without notes and definitions. */
  of(schema: unknown, place: Place): unknown {
    this.count(schema, place);
    if (!isRecord(schema)) return schema;
    const below = { ...place, depth: place.depth + 1, within: [...place.within, schema] };
    const held = Object.entries(schema).filter(
      ([keyword]) => keyword !== '$ref' && !isUnheld(keyword)
    );
    const expanded = withInner(Object.fromEntries(held), (inner, keyword) =>
      this.of(inner, WALKERS.includes(keyword) ? { ...below, walked: true } : below)
    );
    if (!Object.hasOwn(schema, '$ref')) return expanded;
    const target = this.reference(schema, below);
    return held.length === 0 ? target : { allOf: [target, expanded] };
  }
}

/** A filter with each `$ref` expanded, without annotations; throws UnfitFilter if it is forbidden or too expensive. */
export const expandFilter = (filter: Schema): Schema | boolean => {
  if (Buffer.byteLength(JSON.stringify(filter)) > LARGEST) {
    unfit(`must not be larger than ${LARGEST} bytes`, 'filter_large', { maximum: LARGEST });
  }
  const place: Place = { depth: 0, walked: false, within: [] };
  const expanded = new Expansion(filter).of(filter, place) as Schema | boolean;
  // Unused definitions are judged as well: they may be meant.
  const unused = new Expansion(filter);
  const defined = DEFINED.map((key) => filter[key]).filter(isRecord);
  for (const schema of defined.flatMap((schemas) => Object.values(schemas))) {
    unused.of(schema, { depth: 1, walked: false, within: [filter] });
  }
  return expanded;
};
