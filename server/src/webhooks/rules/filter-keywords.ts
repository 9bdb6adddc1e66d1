import {
  _,
  type CodeKeywordDefinition,
  type default as Ajv,
  type KeywordCxt,
} from 'ajv/dist/2020.js';
import { isDeepStrictEqual } from 'node:util';

/** Where a text that is looked for may begin anew after a part of it that was found. */
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

/**
 * Tells whether a text has another one in it, in time linear to the text (Knuth, Morris, Pratt):
 * `String.includes` may take the product of both lengths.
 */
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
export const isComposite = (value: unknown): boolean => typeof value === 'object' && value !== null;

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

/**
 * Adds the keywords that filters have beside those of JSON Schema: `startsWith`, `endsWith` and
 * `includes` compare texts, and hold for whatever is no text. docs/management-api.md#filters.
 */
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
