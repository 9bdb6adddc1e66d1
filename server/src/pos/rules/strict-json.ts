import { isUtf8 } from 'node:buffer';
import { inOneGo, type Steps } from '../../runtime/event-loop';

/** Steps from the body to a value: keys of objects and indexes of arrays. */
export type JsonPath = readonly (string | number)[];

const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const SHOWN_CHARACTERS = 40;

/** A key as it may stand in a message: quoted and escaped, cut if it is long. */
const quote = (key: string): string => {
  const shown = Array.from(key.slice(0, SHOWN_CHARACTERS * 2))
    .slice(0, SHOWN_CHARACTERS)
    .join('');
  return JSON.stringify(shown.length < key.length ? `${shown}…` : shown);
};

/**
 * Names a value as messages to senders do: `line_items[0].sku`; odd keys in brackets,
 * `meta["two words"]`; the body itself is `body`.
 */
export const formatPath = (path: JsonPath): string => {
  if (path.length === 0) return 'body';
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      if (!PLAIN_KEY.test(step)) return `[${quote(step)}]`;
      return index === 0 ? step : `.${step}`;
    })
    .join('');
};

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

/** Stops the reading; never leaves `parseStrictJson`. */
class JsonFault extends Error {
  constructor(
    readonly path: JsonPath,
    readonly rule: string
  ) {
    super(rule);
  }
}

/** What most numbers are: whole, and exact in a double. */
const SHORT_INTEGER = /-?(?:0|[1-9]\d{0,14})(?![\d.eE])/y;
const NUMBER = /-?(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?/y;
/** A string's characters up to its end, an escape, or what must not stand there. */
const PLAIN_CHARACTERS = /[^"\\\u0000-\u001f]*/y;
const HEX4 = /^[0-9a-fA-F]{4}$/;

const { isInteger, parseInt } = Number;
const { fromCharCode } = String;
const { defineProperty, hasOwn } = Object;

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/**
 * Whether a literal is a whole number as written, before any rounding: `5.0` and `1e3` are. Counts
 * from the end: a pattern for zeros at the end would begin anew at each zero of a long literal.
 */
const isWholeLiteral = (whole: string, fraction: string, exponent: number): boolean => {
  const digits = whole + fraction;
  let significant = digits.length;
  while (significant > 0 && digits.charCodeAt(significant - 1) === 0x30) significant -= 1;
  return significant === 0 || exponent >= significant - whole.length;
};

/** Steps to a number that a record's rules ask about; what its sender adds may lie deeper. */
const ROUNDED_STEPS = 4;

/** How large a document may be. */
interface JsonLimits {
  /** Nested objects and arrays, the document itself being the first. */
  depth: number;
  /** Values of all kinds. */
  nodes: number;
}

/**
 * A reader of its own, because `JSON.parse` takes the last of two equal keys, rounds numbers
 * silently, has no limit of depth and cannot stop on its way. It does not recurse.
 */
class JsonReader {
  /** Fields whose number is whole only because it was rounded. */
  readonly roundedToInteger = new Set<string>();
  private at = 0;
  private nodes = 0;
  private readonly path: (string | number)[] = [];
  /** What is open around the next value; null: a list without its first value. */
  private readonly open: (JsonObject | JsonValue[] | null)[] = [];
  private document: JsonValue = null;

  constructor(
    private readonly text: string,
    private readonly limits: JsonLimits
  ) {}

  /** The document, once `readOn` has said that it is read. */
  get value(): JsonValue {
    return this.document;
  }

  /**
   * Reads so many values more.
   * @returns whether the document is read to its end
   * @throws JsonFault
   */
  readOn(most: number): boolean {
    for (let count = 0; count < most; count += 1) {
      const value = this.readStart();
      // Of what was opened, the first value comes next.
      if (value !== undefined && this.finish(value)) return true;
    }
    return false;
  }

  /** A value, where it is complete. */
  private readStart(): JsonValue | undefined {
    this.nodes += 1;
    if (this.nodes > this.limits.nodes) {
      throw new JsonFault([], `must not have more than ${this.limits.nodes} values`);
    }
    this.skipSpace();
    switch (this.text[this.at]) {
      case '{':
        this.enter();
        if (this.takes('}')) return {};
        this.open.push({});
        this.readKey();
        return undefined;
      case '[':
        this.enter();
        if (this.takes(']')) return [];
        // Begun with its first value: pushing into an empty list reserves room for many.
        this.open.push(null);
        this.path.push(0);
        return undefined;
      case '"':
        return this.readString();
      case 't':
        return this.readWord('true', true);
      case 'f':
        return this.readWord('false', false);
      case 'n':
        return this.readWord('null', null);
      default:
        return this.readNumber();
    }
  }

  /**
   * Puts a value where it belongs, and closes what ends with it.
   * @returns whether it was the last one
   */
  private finish(complete: JsonValue): boolean {
    let value = complete;
    while (this.open.length > 0) {
      const step = this.path.pop();
      const around = this.open.at(-1);
      if (typeof step === 'string') {
        const object = around as JsonObject;
        this.assign(object, step, value);
        if (this.takes(',')) {
          this.readKey();
          return false;
        }
        if (!this.takes('}')) this.fail('a comma or closing brace is missing');
        value = object;
      } else {
        const list = (around as JsonValue[] | null) ?? [value];
        if (around !== null) list.push(value);
        if (this.takes(',')) {
          this.open[this.open.length - 1] = list;
          this.path.push(list.length);
          return false;
        }
        if (!this.takes(']')) this.fail('a comma or closing bracket is missing');
        value = list;
      }
      this.open.pop();
    }
    this.skipSpace();
    if (this.at < this.text.length) this.fail('nothing may follow the JSON value');
    this.document = value;
    return true;
  }

  private readKey(): void {
    this.skipSpace();
    if (this.text[this.at] !== '"') this.fail('a key in double quotes is missing');
    const key = this.readString();
    this.path.push(key);
    if (hasOwn(this.open.at(-1) as JsonObject, key)) {
      throw new JsonFault([...this.path], 'must not appear twice');
    }
    if (!this.takes(':')) this.fail('a colon is missing');
  }

  private assign(object: JsonObject, key: string, value: JsonValue): void {
    if (key === '__proto__') {
      // A plain assignment would set the object's prototype.
      defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
    } else {
      object[key] = value;
    }
  }

  private readString(): string {
    let decoded = '';
    this.at++;
    for (;;) {
      PLAIN_CHARACTERS.lastIndex = this.at;
      PLAIN_CHARACTERS.test(this.text);
      decoded += this.text.slice(this.at, PLAIN_CHARACTERS.lastIndex);
      this.at = PLAIN_CHARACTERS.lastIndex;
      switch (this.text[this.at]) {
        case '"':
          this.at++;
          return decoded;
        case '\\':
          decoded += this.readEscape();
          break;
        case undefined:
          return this.fail('a string is not closed');
        default:
          return this.fail('a control character in a string is not escaped');
      }
    }
  }

  private readEscape(): string {
    const letter = this.text[this.at + 1] ?? '';
    if (letter === 'u') {
      const hex = this.text.slice(this.at + 2, this.at + 6);
      if (!HEX4.test(hex)) this.fail('an escape in a string is not valid');
      this.at += 6;
      return fromCharCode(parseInt(hex, 16));
    }
    const decoded = hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
    if (decoded === undefined) this.fail('an escape in a string is not valid');
    this.at += 2;
    return decoded;
  }

  private readNumber(): number {
    SHORT_INTEGER.lastIndex = this.at;
    if (SHORT_INTEGER.test(this.text)) {
      const short = +this.text.slice(this.at, SHORT_INTEGER.lastIndex);
      this.at = SHORT_INTEGER.lastIndex;
      return short === 0 ? 0 : short;
    }
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.text);
    if (!match)
      this.fail(this.at < this.text.length ? 'a value is not valid' : 'it ends too early');
    this.at = NUMBER.lastIndex;
    const value = +match[0];
    const [, whole = '', fraction = '', exponent = '0'] = match;
    if (
      this.path.length <= ROUNDED_STEPS &&
      (fraction !== '' || match[3] !== undefined) &&
      isInteger(value) &&
      !isWholeLiteral(whole, fraction, +exponent)
    ) {
      this.roundedToInteger.add(formatPath(this.path));
    }
    return value === 0 ? 0 : value;
  }

  private readWord<T>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.at)) this.fail('a value is not valid');
    this.at += word.length;
    return value;
  }

  /** Steps over an opening brace or bracket. */
  private enter(): void {
    const { depth } = this.limits;
    if (this.open.length >= depth) {
      throw new JsonFault([], `must not be nested more than ${depth} levels deep`);
    }
    this.at++;
  }

  /** Steps over `character` if it comes next. */
  private takes(character: string): boolean {
    this.skipSpace();
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  private skipSpace(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at++;
    }
  }

  private fail(what: string): never {
    throw new JsonFault([], `must be valid JSON: ${what} (at character ${this.at + 1})`);
  }
}

/** What is wrong with a body, in plain words. */
export interface BodyIssue {
  /** `line_items[0].sku`; `body` if it is the body as a whole. */
  field: string;
  /** A whole sentence that begins with the field. */
  message: string;
}

type StrictJson =
  | {
      ok: true;
      value: JsonValue;
      /**
       * Fields whose number was written with a fraction that a double cannot hold, such as
       * `1.00000000000000000001`: they read as whole numbers and are none. Those of the record's
       * own fields; what lies deeper is its sender's.
       */
      roundedToInteger: ReadonlySet<string>;
    }
  | { ok: false; issue: BodyIssue };

const refuse = (field: string, rule: string): { ok: false; issue: BodyIssue } => ({
  ok: false,
  issue: { field, message: `${field} ${rule}` },
});

const hasByteOrderMark = (bytes: Uint8Array): boolean =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;

/** A body's raw bytes as text: strict UTF-8 without a byte order mark, not empty. */
export const readText = (
  bytes: Uint8Array
): { ok: true; text: string } | { ok: false; issue: BodyIssue } => {
  if (bytes.length === 0) return refuse('body', 'must not be empty: send a JSON object');
  if (hasByteOrderMark(bytes)) return refuse('body', 'must not begin with a byte order mark');
  if (!isUtf8(bytes)) return refuse('body', 'must be valid UTF-8');
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return { ok: true, text };
};

/** Values between two places at which the reading may stop: some tenths of a millisecond. */
const VALUES_A_STEP = 500;

/** `parseStrictJson`, step by step. */
export function* strictJsonSteps(
  bytes: Uint8Array,
  depth: number,
  nodes: number
): Steps<StrictJson> {
  const read = readText(bytes);
  if (!read.ok) return read;
  try {
    const reader = new JsonReader(read.text, { depth, nodes });
    while (!reader.readOn(VALUES_A_STEP)) yield;
    return { ok: true, value: reader.value, roundedToInteger: reader.roundedToInteger };
  } catch (error) {
    if (error instanceof JsonFault) return refuse(formatPath(error.path), error.rule);
    throw error;
  }
}

/**
 * Reads a body's raw bytes as JSON (RFC 8259): strict UTF-8 without a byte order mark, no key twice
 * in one object however it is escaped, nested at most `maxDepth` deep (the body is the first). `-0`
 * reads as 0. A key `__proto__` becomes an ordinary own property.
 * Never throws.
 */
export const parseStrictJson = (bytes: Uint8Array, maxDepth: number): StrictJson =>
  inOneGo(strictJsonSteps(bytes, maxDepth, Infinity));

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
const CHARACTERS_OF_STRING = /[^"\\\u0000-\u001f]*/y;
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
    next = endOfMatch(CHARACTERS_OF_STRING, text, next);
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
const VALUES_A_CHECK = 2000;

/** Whether a text is JSON (RFC 8259), however deep; nothing of it is kept. */
export function* jsonCheckSteps(text: string): Steps<boolean> {
  /** The characters that will close what is open. */
  const open: number[] = [];
  let at = skipSpace(text, 0);
  for (let values = 1; ; values += 1) {
    if (values % VALUES_A_CHECK === 0) yield;
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
