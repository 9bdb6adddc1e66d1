import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';
import { isRecord } from '../../runtime/text';
import { type Refusal, refusal } from '../../runtime/refusal';
import { addFilterKeywords, expandFilter, LOOPED, UnfitFilter, withInner } from './filter-schema';

/**
 * Caches compiled filters by the row's text: any change applies to the next event, and equal filters are shared.
 * @param make may throw; nothing is kept then
 * @param most maximum size; the least recently used is dropped
 */
export class FilterCache<Filter, T> {
  /** A map remembers the order in which it was filled: the least recently used comes first. */
  private readonly kept = new Map<string, T>();

  constructor(
    private readonly make: (filter: Filter) => T,
    private readonly most: number
  ) {}

  /** The compiled filter of a text, compiled if it is not cached. */
  get(text: string, filter: Filter): T {
    const made = this.kept.get(text) ?? this.make(filter);
    this.kept.delete(text);
    this.kept.set(text, made);
    const [oldest] = this.kept.keys();
    if (this.kept.size > this.most && oldest !== undefined) this.kept.delete(oldest);
    return made;
  }
}

/** A webhook's filter: a JSON Schema (2020-12) that `data` must match to be sent; docs/management-api.md#filters. */
type DataFilter = Record<string, unknown>;

/** Patterns of version 0.2, as the keywords that took their place. */

/** A character of a pattern that stands for itself, or one that was escaped so that it does. */
const LITERAL = /^(?:[^\\^$.*+?()[\]{}|]|\\[\\^$.*+?()[\]{}|/-])*$/u;

/** The keywords for a pattern `^abc`, `abc$`, `^abc$` or `abc`, special characters escaped; null for other patterns. */
const keywordsOf = (pattern: string): DataFilter | null => {
  const starts = pattern.startsWith('^');
  const ends = /(?:^|[^\\])(?:\\\\)*\$$/.test(pattern);
  const sought = pattern.slice(starts ? 1 : 0, ends ? -1 : undefined);
  if (!LITERAL.test(sought)) return null;
  const text = sought.replace(/\\(.)/gu, '$1');
  // A pattern matches any value that is not a text.
  if (starts && ends) return { if: { type: 'string' }, then: { const: text } };
  if (starts) return { startsWith: text };
  return ends ? { endsWith: text } : { includes: text };
};

/** A schema with further keywords, in `allOf` if it has one of them already. */
const withKeywords = (schema: DataFilter, said: DataFilter): DataFilter => {
  const isFree = Object.keys(said).every((keyword) => !Object.hasOwn(schema, keyword));
  if (isFree && !Object.hasOwn(schema, 'if')) return { ...schema, ...said };
  const others: unknown[] = Array.isArray(schema.allOf) ? schema.allOf : [];
  return { ...schema, allOf: [...others, said] };
};

/** A filter with simple patterns replaced by keywords; other patterns stay. */
const withoutPatterns = (schema: DataFilter): DataFilter => {
  const { pattern, ...rest } = withInner(schema, (inner) =>
    isRecord(inner) ? withoutPatterns(inner) : inner
  );
  if (pattern === undefined) return rest;
  const said = typeof pattern === 'string' ? keywordsOf(pattern) : null;
  return said === null ? { ...rest, pattern } : withKeywords(rest, said);
};

const NOTHING: DataFilter = { not: {} };

/** The rows' texts of filters, which tell them apart without making text of each again at every event. */
const texts = new WeakMap<DataFilter, string>();

/**
 * A webhook row's filter, or null. Invalid text matches nothing, and must not fail a write. Simple patterns of version
 * 0.2 become keywords; the row stays unchanged for nodes of 0.2 that run at the same time.
 */
export const storedFilter = (text: string | null): DataFilter | null => {
  if (text === null) return null;
  try {
    const filter: unknown = JSON.parse(text);
    if (filter === null) return null;
    if (!isRecord(filter)) return NOTHING;
    const stored = text.includes('"pattern') ? withoutPatterns(filter) : filter;
    texts.set(stored, text);
    return stored;
  } catch {
    return NOTHING;
  }
};

/** ajv counts errors that it does not tell, and lists them as well, which costs more than most checks. */
const NOTED_ERROR =
  /const (err\d+) = \{\};if\(vErrors === null\)\{vErrors = \[\1\];\}else \{vErrors\.push\(\1\);\}/g;

const ajv = new Ajv2020({
  strict: true,
  // A filter names the properties it is about: what it requires need not be described.
  strictRequired: false,
  strictTypes: false,
  allowUnionTypes: true,
  // The meaning of a format differs from library to library; here it is an annotation only.
  validateFormats: false,
  // Schemas are checked before; compiling the meta-schema by itself takes some 100 ms.
  validateSchema: false,
  meta: false,
  addUsedSchema: false,
  loopRequired: LOOPED,
  // Without it each quotient is made text, which takes longer than all else; and 0.3 is three times 0.1.
  multipleOfPrecision: 9,
  code: {
    // Making the code shorter takes longer than all else.
    optimize: false,
    process: (code) => code.replace(NOTED_ERROR, ''),
  },
});
addFilterKeywords(ajv);

/** @throws UnfitFilter if the filter may not be used, Error if it is no JSON Schema */
export const compile = (filter: DataFilter): ValidateFunction => {
  // Within `if` ajv tells no errors.
  const schema = { if: expandFilter(filter), else: false };
  try {
    return ajv.compile(schema);
  } finally {
    // ajv keeps what it has compiled, by the object it was given.
    ajv.removeSchema(schema);
  }
};

const faultOf = (judge: () => unknown): Refusal | null => {
  try {
    judge();
    return null;
  } catch (error) {
    if (error instanceof UnfitFilter) return error.refusal;
    const reason = (error as Error).message;
    return refusal(reason, 'filter_schema', { reason });
  }
};

/** Why a filter may not be used; null: it may. Faults that only compiling finds are absent: none could be saved. */
export const refusalOf = (filter: DataFilter): Refusal | null =>
  faultOf(() => expandFilter(filter));

/** Why a filter is not taken, in words for its author; null if it is. */
export const judgeFilter = (filter: DataFilter): Refusal | null => {
  const fault = faultOf(() => compile(filter));
  return fault && refusal(`is not a valid filter: ${fault.message}`, fault.code, fault.values);
};

/** A filter that is compiled takes some 10 kB; a site with more webhooks compiles some of them again. */
const KEPT = 5000;
const compiled = new FilterCache<DataFilter, ValidateFunction>(compile, KEPT);

/** True if a webhook with this filter gets data; `data` is the full JSON. Throws an Error for an invalid filter. */
export const matches = (filter: DataFilter, data: unknown): boolean => {
  const text = texts.get(filter) ?? JSON.stringify(filter);
  return compiled.get(text, filter)(data);
};
