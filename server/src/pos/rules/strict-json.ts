import { isUtf8 } from 'node:buffer';
import type { Steps } from '../../runtime/event-loop';

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

/** Formats a path for messages: `line_items[0].sku`, odd keys as `meta["two words"]`, the body itself as `body`. */
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

/** A body's fault, in plain words. */
export interface BodyIssue {
  /** `line_items[0].sku`; `body` if it is the body as a whole. */
  field: string;
  /** A whole sentence that begins with the field. */
  message: string;
}

export type Read<T> = { ok: true; value: T } | Refused;

export interface Refused {
  ok: false;
  issue: BodyIssue;
}

export const refuse = (field: string, rule: string): Refused => ({
  ok: false,
  issue: { field, message: `${field} ${rule}` },
});

/** Stops the reading; never leaves this file. */
class JsonFault extends Error {
  readonly refused: Refused;

  constructor(rule: string, path: JsonPath = []) {
    super(rule);
    this.refused = refuse(formatPath(path), rule);
  }
}

/** A word, or one of the most common numbers: whole, and exact in a double. */
const SHORT_VALUE = /true|false|null|-?(?:0|[1-9]\d{0,14})(?![\d.eE])/y;
const NUMBER = /-?(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?/y;
/** A string's characters up to its end, an escape, or what must not stand there. */
const PLAIN_CHARACTERS = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** The end of a match that begins here; -1: there is none. */
const endOfMatch = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
};

/** True if a literal is whole before rounding (`5.0`, `1e3`). No regular expression: many zeros would be quadratic. */
const isWholeLiteral = (whole: string, fraction: string, exponent: number): boolean => {
  const digits = whole + fraction;
  let significant = digits.length;
  while (significant > 0 && digits.charCodeAt(significant - 1) === 0x30) significant -= 1;
  return significant === 0 || exponent >= significant - whole.length;
};

/** Steps to a number that a record's rules ask about; what its sender adds may lie deeper. */
const ROUNDED_STEPS = 4;

export interface JsonPart {
  /** In an object, as it is meant; '' elsewhere. */
  key: string;
  text: string;
  /** Its contents; see `outlineSteps`. */
  parts: JsonPart[];
}

interface ScanRules {
  /** Nested objects and arrays, the document itself being the first. */
  depth: number;
  /** Values of all kinds. */
  nodes: number;
  /** For each level, how many parts of a value are outlined; with an outline a key may appear twice. */
  outline?: readonly number[];
}

interface Open {
  closing: '}' | ']';
  keys: Set<string> | null;
  start: number;
  part: JsonPart | null;
}

/** Scans text before `JSON.parse`, which accepts duplicate keys, rounds, and has no depth limit and no pause. */
class JsonScanner {
  /** Fields whose number is whole only because it was rounded. */
  readonly roundedToInteger = new Set<string>();
  hasMinusZero = false;
  outline: JsonPart | null = null;
  private at = 0;
  private nodes = 0;
  private readonly path: (string | number)[] = [];
  private readonly open: Open[] = [];

  constructor(
    private readonly text: string,
    private readonly rules: ScanRules
  ) {}

  /** Scans so many more values; true at the end of the text. Throws JsonFault. */
  scan(most: number): boolean {
    for (let count = 0; count < most; count += 1) {
      // The first value of the opened object or list comes next.
      if (this.start() && this.finish()) return true;
    }
    return false;
  }

  /** @returns whether the value that begins here has ended, too */
  private start(): boolean {
    this.nodes += 1;
    if (this.nodes > this.rules.nodes) {
      throw new JsonFault(`must not have more than ${this.rules.nodes} values`);
    }
    this.skipSpace();
    const start = this.at;
    const part = this.rules.outline ? this.partOf(this.rules.outline) : null;
    switch (this.text[start]) {
      case '{':
        if (this.enter('}', part)) return false;
        break;
      case '[':
        if (this.enter(']', part)) return false;
        break;
      case '"':
        this.skipString();
        break;
      default:
        this.skipShortValue();
    }
    if (part) part.text = this.text.slice(start, this.at);
    return true;
  }

  /** Steps over what follows a value, and closes what ends with it. @returns whether it was the last one */
  private finish(): boolean {
    for (let around = this.open.at(-1); around; around = this.open.at(-1)) {
      const step = this.path.pop();
      if (this.takes(',')) {
        if (around.closing === '}') this.readKey();
        else this.path.push((step as number) + 1);
        return false;
      }
      if (!this.takes(around.closing)) {
        const bracket = around.closing === '}' ? 'brace' : 'bracket';
        this.fail(`a comma or closing ${bracket} is missing`);
      }
      if (around.part) around.part.text = this.text.slice(around.start, this.at);
      this.open.pop();
    }
    this.skipSpace();
    if (this.at < this.text.length) this.fail('nothing may follow the JSON value');
    return true;
  }

  /** @returns whether it contains anything */
  private enter(closing: Open['closing'], part: JsonPart | null): boolean {
    const { depth, outline } = this.rules;
    if (this.open.length >= depth) {
      throw new JsonFault(`must not be nested more than ${depth} levels deep`);
    }
    const start = this.at;
    this.at++;
    if (this.takes(closing)) return false;
    const keys = closing === '}' && !outline ? new Set<string>() : null;
    this.open.push({ closing, keys, start, part });
    if (closing === '}') this.readKey();
    else this.path.push(0);
    return true;
  }

  private partOf(outline: readonly number[]): JsonPart | null {
    const step = this.path.at(-1);
    const part = { key: typeof step === 'string' ? step : '', text: '', parts: [] };
    if (this.open.length === 0) return (this.outline = part);
    const around = this.open.at(-1)?.part;
    if (!around || around.parts.length >= (outline[this.open.length - 1] ?? 0)) return null;
    around.parts.push(part);
    return part;
  }

  private readKey(): void {
    this.skipSpace();
    const start = this.at;
    if (this.text[start] !== '"') this.fail('a key in double quotes is missing');
    this.skipString();
    const written = this.text.slice(start, this.at);
    const key = written.includes('\\') ? (JSON.parse(written) as string) : written.slice(1, -1);
    this.path.push(key);
    const keys = this.open.at(-1)?.keys;
    if (keys?.has(key)) throw new JsonFault('must not appear twice', this.path);
    keys?.add(key);
    if (!this.takes(':')) this.fail('a colon is missing');
  }

  private skipString(): void {
    this.at++;
    for (;;) {
      this.at = endOfMatch(PLAIN_CHARACTERS, this.text, this.at);
      switch (this.text[this.at]) {
        case '"':
          this.at++;
          return;
        case '\\': {
          const end = endOfMatch(ESCAPE, this.text, this.at);
          if (end < 0) this.fail('an escape in a string is not valid');
          this.at = end;
          break;
        }
        case undefined:
          return this.fail('a string is not closed');
        default:
          return this.fail('a control character in a string is not escaped');
      }
    }
  }

  private skipShortValue(): void {
    const start = this.at;
    const end = endOfMatch(SHORT_VALUE, this.text, start);
    if (end < 0) this.skipLongNumber();
    else this.at = end;
    const isNegative = this.text.charCodeAt(start) === 0x2d;
    if (isNegative && Number(this.text.slice(start, this.at)) === 0) this.hasMinusZero = true;
  }

  private skipLongNumber(): void {
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.text);
    if (!match)
      this.fail(this.at < this.text.length ? 'a value is not valid' : 'it ends too early');
    this.at = NUMBER.lastIndex;
    const [literal, whole = '', fraction = '', exponent] = match;
    if (
      this.path.length <= ROUNDED_STEPS &&
      (fraction !== '' || exponent !== undefined) &&
      Number.isInteger(Number(literal)) &&
      !isWholeLiteral(whole, fraction, Number(exponent ?? 0))
    ) {
      this.roundedToInteger.add(formatPath(this.path));
    }
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
    throw new JsonFault(`must be valid JSON: ${what} (at character ${this.at + 1})`);
  }
}

type StrictJson =
  | {
      ok: true;
      value: JsonValue;
      /** Fields of the record itself whose fraction a double cannot hold: they read as whole numbers but are not. */
      roundedToInteger: ReadonlySet<string>;
    }
  | Refused;

/** A body's raw bytes as text: strict UTF-8 without a byte order mark, not empty. */
export const readText = (bytes: Uint8Array): Read<string> => {
  if (bytes.length === 0) return refuse('body', 'must not be empty: send a JSON object');
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    return refuse('body', 'must not begin with a byte order mark');
  }
  if (!isUtf8(bytes)) return refuse('body', 'must be valid UTF-8');
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return { ok: true, value: text };
};

/** Values between two places at which the reading may stop: some tenths of a millisecond. */
const VALUES_A_STEP = 500;

/** Looks a text through, step by step. @returns what was found in it, or its fault */
function* scanSteps(text: string, rules: ScanRules): Steps<Read<JsonScanner>> {
  const scanner = new JsonScanner(text, rules);
  try {
    while (!scanner.scan(VALUES_A_STEP)) yield;
    return { ok: true, value: scanner };
  } catch (error) {
    if (error instanceof JsonFault) return error.refused;
    throw error;
  }
}

const plainZeros = (_key: string, value: JsonValue): JsonValue => (value === 0 ? 0 : value);

/**
 * Parses raw bytes as JSON (RFC 8259), stepwise: strict UTF-8 without byte order mark, no duplicate keys however
 * escaped. `-0` reads as 0, `__proto__` becomes an own property. Never throws.
 * @param depth maximum nesting; the body is the first level
 * @param nodes maximum number of values
 */
export function* strictJsonSteps(
  bytes: Uint8Array,
  depth: number,
  nodes: number
): Steps<StrictJson> {
  const read = readText(bytes);
  if (!read.ok) return read;
  const scanned = yield* scanSteps(read.value, { depth, nodes });
  if (!scanned.ok) return scanned;
  const { roundedToInteger, hasMinusZero } = scanned.value;
  const value = JSON.parse(read.value, hasMinusZero ? plainZeros : undefined) as JsonValue;
  return { ok: true, value, roundedToInteger };
}

/**
 * Finds the positions of a JSON text's values, to keep parts exactly as sent; depth and keys are checked later.
 * @param most how many parts are outlined per level; none on further levels
 * @returns null if the text is no JSON
 */
export function* outlineSteps(text: string, most: readonly number[]): Steps<JsonPart | null> {
  const scanned = yield* scanSteps(text, { depth: Infinity, nodes: Infinity, outline: most });
  return scanned.ok ? scanned.value.outline : null;
}

/** The index of the first of some values that is there twice; -1: none is. */
export const firstRepeated = (values: readonly string[]): number => {
  const seen = new Set<string>();
  return values.findIndex((value) => seen.size === seen.add(value).size);
};
