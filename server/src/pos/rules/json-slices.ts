import type { Steps } from '../../runtime/steps';

/**
 * Finds where values stand in a JSON text, so that a part of it can be kept exactly as it was sent.
 * Every other function takes text that `jsonCheckSteps` accepts, and the place at which a value begins. None
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

/** A string's characters up to its end, an escape, or what must not stand there. */
const PLAIN_CHARACTERS = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const NUMBER_OR_WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Where a match that begins here ends; -1: there is none. */
const endOfMatch = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
};

/** Where a string, a number or a word ends; -1: there is none. */
const endOfChecked = (text: string, at: number): number => {
  if (text.charCodeAt(at) !== QUOTE) return endOfMatch(NUMBER_OR_WORD, text, at);
  for (let next = at + 1; ;) {
    next = endOfMatch(PLAIN_CHARACTERS, text, next);
    if (text.charCodeAt(next) === QUOTE) return next + 1;
    next = endOfMatch(ESCAPE, text, next);
    if (next < 0) return -1;
  }
};

/** Where the value of the key begins that stands here; -1: there is no key, or nothing after it. */
const startOfMember = (text: string, at: number): number => {
  if (text.charCodeAt(at) !== QUOTE) return -1;
  const end = endOfChecked(text, at);
  if (end < 0) return -1;
  const colon = skipSpace(text, end);
  return text[colon] === ':' ? skipSpace(text, colon + 1) : -1;
};

/** Values between two places at which the check may stop. */
const VALUES_A_STEP = 2000;

/** Whether a text is JSON (RFC 8259), however deep; nothing of it is kept. */
export function* jsonCheckSteps(text: string): Steps<boolean> {
  /** The characters that will close what is open. */
  const open: number[] = [];
  let at = skipSpace(text, 0);
  for (let values = 1; ; values += 1) {
    if (values % VALUES_A_STEP === 0) yield;
    const code = text.charCodeAt(at);
    if (code === OPENING_BRACE || code === OPENING_BRACKET) {
      const closing = code === OPENING_BRACE ? CLOSING_BRACE : CLOSING_BRACKET;
      at = skipSpace(text, at + 1);
      if (text.charCodeAt(at) !== closing) {
        open.push(closing);
        if (closing === CLOSING_BRACE) at = startOfMember(text, at);
        if (at < 0) return false;
        continue;
      }
      at += 1;
    } else {
      at = endOfChecked(text, at);
      if (at < 0) return false;
    }
    // A value has ended, and with it whatever it was the last of.
    for (;;) {
      at = skipSpace(text, at);
      const closing = open.at(-1);
      if (closing === undefined) return at === text.length;
      const next = text.charCodeAt(at);
      at += 1;
      if (next === COMMA) {
        at = skipSpace(text, at);
        if (closing === CLOSING_BRACE) at = startOfMember(text, at);
        if (at < 0) return false;
        break;
      }
      if (next !== closing) return false;
      open.pop();
    }
  }
}

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

/** The first members of an object in their order, at most so many, those with the same key too. */
export const membersOf = (object: string, most = Infinity): Member[] => {
  const members: Member[] = [];
  let at = skipSpace(object, skipSpace(object, 0) + 1);
  while (members.length < most && object.charCodeAt(at) === QUOTE) {
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
