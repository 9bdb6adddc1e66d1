/**
 * Finds where values stand in a JSON text, so that a part of it can be kept exactly as it was sent.
 * Every function takes text that `JSON.parse` accepts, and the place at which a value begins. None
 * recurses: how deeply a part is nested is judged when the part is read.
 */

const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const QUOTE = 0x22;
const COMMA = 0x2c;

const isSpace = (code: number): boolean =>
  code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

const skipSpace = (text: string, at: number): number => {
  let next = at;
  while (isSpace(text.charCodeAt(next))) next += 1;
  return next;
};

const endOfString = (text: string, at: number): number => {
  for (let from = at + 1; ;) {
    const quote = text.indexOf('"', from);
    let before = quote - 1;
    while (text[before] === '\\') before -= 1;
    if ((quote - 1 - before) % 2 === 0) return quote + 1;
    from = quote + 1;
  }
};

const endOfScalar = (text: string, at: number): number => {
  let end = at;
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    if (code === COMMA || code === CLOSING_BRACE || code === CLOSING_BRACKET || isSpace(code))
      break;
  }
  return end;
};

const endOfNested = (text: string, at: number): number => {
  let depth = 0;
  for (let next = at; next < text.length; next += 1) {
    const code = text.charCodeAt(next);
    if (code === QUOTE) next = endOfString(text, next) - 1;
    else if (code === OPENING_BRACE || code === OPENING_BRACKET) depth += 1;
    else if (code === CLOSING_BRACE || code === CLOSING_BRACKET) {
      depth -= 1;
      if (depth === 0) return next + 1;
    }
  }
  return text.length;
};

const endOfValue = (text: string, at: number): number => {
  const code = text.charCodeAt(at);
  if (code === QUOTE) return endOfString(text, at);
  return code === OPENING_BRACE || code === OPENING_BRACKET
    ? endOfNested(text, at)
    : endOfScalar(text, at);
};

/** A member of an object: its key as it is meant, and its value as it was written. */
export interface Member {
  key: string;
  value: string;
}

/** What kind of value a text begins with; `other` is anything but an object or a list. */
export const shapeOf = (value: string): 'object' | 'list' | 'other' => {
  const code = value.charCodeAt(skipSpace(value, 0));
  if (code === OPENING_BRACE) return 'object';
  return code === OPENING_BRACKET ? 'list' : 'other';
};

/** The members of an object, in their order, those with the same key too. */
export const membersOf = (object: string): Member[] => {
  const members: Member[] = [];
  let at = skipSpace(object, skipSpace(object, 0) + 1);
  while (object.charCodeAt(at) === QUOTE) {
    const keyEnd = endOfString(object, at);
    // A colon stands between key and value.
    const start = skipSpace(object, skipSpace(object, keyEnd) + 1);
    const end = endOfValue(object, start);
    members.push({
      key: JSON.parse(object.slice(at, keyEnd)) as string,
      value: object.slice(start, end),
    });
    at = skipSpace(object, end);
    if (object.charCodeAt(at) === COMMA) at = skipSpace(object, at + 1);
  }
  return members;
};

/** The first values of a list as they were written, at most so many. */
export const elementsOf = (list: string, most: number): string[] => {
  const elements: string[] = [];
  let at = skipSpace(list, skipSpace(list, 0) + 1);
  while (elements.length < most && at < list.length && list.charCodeAt(at) !== CLOSING_BRACKET) {
    const end = endOfValue(list, at);
    elements.push(list.slice(at, end));
    at = skipSpace(list, end);
    if (list.charCodeAt(at) === COMMA) at = skipSpace(list, at + 1);
  }
  return elements;
};

/** The first key that an object has twice. */
export const repeatedKey = (members: readonly Member[]): string | undefined => {
  const seen = new Set<string>();
  for (const { key } of members) {
    if (seen.has(key)) return key;
    seen.add(key);
  }
  return undefined;
};
