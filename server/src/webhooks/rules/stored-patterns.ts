import { isRecord } from '../../runtime/is-record';

/** Patterns of version 0.2, as the keywords that took their place. */

type Schema = Record<string, unknown>;

/** A character of a pattern that stands for itself, or one that was escaped so that it does. */
const LITERAL = /^(?:[^\\^$.*+?()[\]{}|]|\\[\\^$.*+?()[\]{}|/-])*$/u;

/** The text that a pattern without any special character finds; null for another pattern. */
const literalOf = (pattern: string): string | null =>
  LITERAL.test(pattern) ? pattern.replace(/\\(.)/gu, '$1') : null;

/**
 * The keywords that say what a pattern says: `^abc`, `abc$`, `^abc$` or `abc`, with special characters
 * escaped; null for a pattern that says more.
 */
export const keywordsOf = (pattern: string): Schema | null => {
  const starts = pattern.startsWith('^');
  const ends = /(?:^|[^\\])(?:\\\\)*\$$/.test(pattern);
  const text = literalOf(pattern.slice(starts ? 1 : 0, ends ? -1 : undefined));
  if (text === null) return null;
  // A pattern says nothing of what is no text.
  if (starts && ends) return { if: { type: 'string' }, then: { const: text } };
  if (starts) return { startsWith: text };
  return ends ? { endsWith: text } : { includes: text };
};

/** Keywords whose value is data, which may look like a schema. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required', 'dependentRequired']);
const BY_NAME = new Set(['properties', 'dependentSchemas', '$defs', 'definitions']);

const each = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(each);
  return isRecord(value) ? withoutPatterns(value) : value;
};

/** Beside what the schema says already. */
const beside = (schema: Schema, said: Schema): Schema => {
  const isFree = Object.keys(said).every((keyword) => !Object.hasOwn(schema, keyword));
  if (isFree && !Object.hasOwn(schema, 'if')) return { ...schema, ...said };
  const others: unknown[] = Array.isArray(schema.allOf) ? schema.allOf : [];
  return { ...schema, allOf: [...others, said] };
};

/** A filter with its simple patterns said by keywords; those that say more are left where they are. */
export const withoutPatterns = (schema: Schema): Schema => {
  const { pattern, ...rest } = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (DATA.has(keyword)) return [keyword, value];
      if (!BY_NAME.has(keyword) || !isRecord(value)) return [keyword, each(value)];
      return [
        keyword,
        Object.fromEntries(Object.entries(value).map(([name, one]) => [name, each(one)])),
      ];
    })
  );
  if (pattern === undefined) return rest;
  const said = typeof pattern === 'string' ? keywordsOf(pattern) : null;
  return said === null ? { ...rest, pattern } : beside(rest, said);
};
