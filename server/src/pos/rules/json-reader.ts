import { formatPath, type JsonPath } from './json-path';

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

/** Stops the reading; never leaves `parseStrictJson`. */
export class JsonFault extends Error {
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

/**
 * A reader of its own, because `JSON.parse` takes the last of two equal keys, rounds numbers
 * silently and has no limit of depth. It recurses, but never deeper than `maxDepth`.
 */
export class JsonReader {
  readonly roundedToInteger = new Set<string>();
  private at = 0;
  private readonly path: (string | number)[] = [];

  constructor(
    private readonly text: string,
    private readonly maxDepth: number
  ) {}

  readDocument(): JsonValue {
    const value = this.readValue(1);
    this.skipSpace();
    if (this.at < this.text.length) this.fail('nothing may follow the JSON value');
    return value;
  }

  private readValue(depth: number): JsonValue {
    this.skipSpace();
    switch (this.text[this.at]) {
      case '{':
        return this.readObject(depth);
      case '[':
        return this.readArray(depth);
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

  private readObject(depth: number): JsonObject {
    this.enter(depth);
    const object: JsonObject = {};
    if (this.takes('}')) return object;
    do {
      this.skipSpace();
      if (this.text[this.at] !== '"') this.fail('a key in double quotes is missing');
      const key = this.readString();
      this.path.push(key);
      if (hasOwn(object, key)) throw new JsonFault([...this.path], 'must not appear twice');
      if (!this.takes(':')) this.fail('a colon is missing');
      const value = this.readValue(depth + 1);
      if (key === '__proto__') {
        // A plain assignment would set the object's prototype.
        defineProperty(object, key, {
          value,
          enumerable: true,
          configurable: true,
          writable: true,
        });
      } else {
        object[key] = value;
      }
      this.path.pop();
    } while (this.takes(','));
    if (!this.takes('}')) this.fail('a comma or closing brace is missing');
    return object;
  }

  private readArray(depth: number): JsonValue[] {
    this.enter(depth);
    if (this.takes(']')) return [];
    // Begun with its first value: pushing into an empty list reserves room for many.
    const array = [this.readElement(0, depth)];
    while (this.takes(',')) array.push(this.readElement(array.length, depth));
    if (!this.takes(']')) this.fail('a comma or closing bracket is missing');
    return array;
  }

  private readElement(index: number, depth: number): JsonValue {
    this.path.push(index);
    const value = this.readValue(depth + 1);
    this.path.pop();
    return value;
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
  private enter(depth: number): void {
    if (depth > this.maxDepth) {
      throw new JsonFault([], `must not be nested more than ${this.maxDepth} levels deep`);
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
