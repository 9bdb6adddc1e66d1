import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';
import { isRecord } from '../../runtime/is-record';
import type { RefusalCode, RefusalValues } from '../../../../shared/contracts/refusals';
import { type Refusal, refusal } from '../../runtime/refusal';
import { judgePattern, linearPattern } from './safe-pattern';

/**
 * A webhook's filter: a JSON Schema (2020-12) that the `data` of an event must match to be sent.
 * docs/management-api.md#filters.
 */
export type DataFilter = Record<string, unknown>;

/** What nothing matches. */
const NOTHING: DataFilter = { not: {} };

/**
 * The filter that a webhook's row holds; null: none. Somebody else may have written there what is no
 * filter: that lets nothing through, and must cost no write.
 */
export const storedFilter = (text: string | null): DataFilter | null => {
  if (text === null) return null;
  try {
    const filter: unknown = JSON.parse(text);
    return filter === null || isRecord(filter) ? filter : NOTHING;
  } catch {
    return NOTHING;
  }
};

/** Bytes of JSON. */
const LARGEST = 16_384;
/** Schemas in schemas. */
const DEEPEST = 16;
/** Schemas that data is held against, each reference counted with all that it leads to. */
const MOST_SCHEMAS = 500;

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const ONE = [
  ...['additionalProperties', 'propertyNames', 'unevaluatedProperties', 'unevaluatedItems'],
  ...['items', 'contains', 'not', 'if', 'then', 'else'],
];
const LIST = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const NAMED = ['properties', 'patternProperties', 'dependentSchemas'];
const DEFINED = ['$defs', 'definitions'];

/** References go to places within the filter; these would lead elsewhere, or to where nobody sees. */
const UNUSABLE = [
  ...['$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$recursiveAnchor', '$recursiveRef'],
  // Compares each item with each other one.
  'uniqueItems',
  // ajv's own: what checks it answers with a promise, which is neither yes nor no.
  '$async',
];

class Unfit extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.message);
  }
}

const unfit = (reason: string, code: RefusalCode, values?: RefusalValues): never => {
  throw new Unfit(refusal(reason, code, values));
};

const unusable = (keyword: string): never =>
  unfit(`${keyword} may not be used`, 'filter_keyword', { keyword });

const at = (root: DataFilter, reference: unknown): unknown => {
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
    const known = typeof found === 'object' && found !== null && Object.hasOwn(found, key);
    found = known
      ? (found as Record<string, unknown>)[key]
      : unfit(`there is nothing at ${JSON.stringify(reference)}`, 'filter_place', {
          place: reference,
        });
  }
  return found;
};

const patternsOf = (schema: Record<string, unknown>): unknown[] => [
  ...(schema.pattern === undefined ? [] : [schema.pattern]),
  ...(isRecord(schema.patternProperties) ? Object.keys(schema.patternProperties) : []),
];

const judgePatterns = (schema: Record<string, unknown>): void => {
  for (const pattern of patternsOf(schema)) {
    const fault = typeof pattern === 'string' ? judgePattern(pattern) : 'is no text';
    if (!fault) continue;
    const written = JSON.stringify(pattern);
    unfit(`the pattern ${written} ${fault}`, 'filter_pattern', { pattern: written });
  }
};

const childrenOf = (schema: Record<string, unknown>): unknown[] => [
  ...ONE.flatMap((key) => (schema[key] === undefined ? [] : [schema[key]])),
  ...LIST.flatMap((key) => (Array.isArray(schema[key]) ? schema[key] : [])),
  ...NAMED.flatMap((key) => (isRecord(schema[key]) ? Object.values(schema[key]) : [])),
];

/** Bounds what holding data against the filter may cost, and refuses what ajv would take too far. */
const measure = (root: DataFilter): void => {
  let seen = 0;
  const visit = (schema: unknown, depth: number, within: readonly unknown[]): void => {
    seen += 1;
    if (seen > MOST_SCHEMAS) {
      const reason = `more than ${MOST_SCHEMAS} schemas, with what $ref leads to`;
      unfit(reason, 'filter_many', { maximum: MOST_SCHEMAS });
    }
    if (depth > DEEPEST) {
      const reason = `schemas are nested more than ${DEEPEST} deep`;
      unfit(reason, 'filter_deep', { maximum: DEEPEST });
    }
    if (!isRecord(schema)) return;
    for (const key of UNUSABLE) if (Object.hasOwn(schema, key)) unusable(key);
    judgePatterns(schema);
    if (Object.hasOwn(schema, '$ref')) {
      const target = at(root, schema.$ref);
      if (target === schema || within.includes(target)) {
        unfit('$ref may not lead to itself', 'filter_loop');
      }
      visit(target, depth + 1, [...within, schema]);
    }
    for (const child of childrenOf(schema)) visit(child, depth + 1, [...within, schema]);
  };
  visit(root, 0, []);
  for (const key of DEFINED) {
    const defined = root[key];
    if (isRecord(defined)) for (const schema of Object.values(defined)) visit(schema, 1, [root]);
  }
};

const ajv = new Ajv2020({
  strict: true,
  // A filter names the properties it is about: what it requires need not be described.
  strictRequired: false,
  strictTypes: false,
  allowUnionTypes: true,
  // What a format means differs from library to library; here it says something to people alone.
  validateFormats: false,
  addUsedSchema: false,
  code: {
    // ajv asks for the source of a module too, which only code that is written to a file needs.
    regExp: Object.assign((source: string) => linearPattern(source), { code: '' }) as never,
  },
});

const compile = (filter: DataFilter): ValidateFunction => {
  const own = structuredClone(filter);
  try {
    const validate = ajv.compile(own);
    // A row that something else has written was not measured.
    if ((validate as { $async?: unknown }).$async) unusable('$async');
    return validate;
  } finally {
    // ajv keeps what it has compiled, by the object it was given.
    ajv.removeSchema(own);
  }
};

/** Why a filter is not taken, in words for who wrote it; null where it is. */
export const judgeFilter = (filter: DataFilter): Refusal | null => {
  try {
    if (Buffer.byteLength(JSON.stringify(filter)) > LARGEST) {
      const values = { maximum: LARGEST };
      return refusal(`must not be larger than ${LARGEST} bytes`, 'filter_large', values);
    }
    measure(filter);
    compile(filter);
    return null;
  } catch (error) {
    const reason = (error as Error).message;
    const { code, values } =
      error instanceof Unfit ? error.refusal : refusal(reason, 'filter_schema', { reason });
    return refusal(`is no filter: ${reason}`, code, values);
  }
};

/** Compiled filters by their JSON; every write asks, and compiling takes milliseconds. */
const compiled = new Map<string, ValidateFunction>();
const KEPT = 1000;

/**
 * Whether data is sent to a webhook with this filter.
 * @param data as JSON has it, whole: before anything is left out of it
 * @throws Error where the filter is none; such a filter cannot be saved
 */
export const matches = (filter: DataFilter, data: unknown): boolean => {
  const key = JSON.stringify(filter);
  let validate = compiled.get(key);
  if (!validate) {
    if (compiled.size >= KEPT) compiled.clear();
    validate = compile(filter);
    compiled.set(key, validate);
  }
  return validate(data);
};
