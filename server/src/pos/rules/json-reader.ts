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

const NUMBER = /-?(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?/y;
const HEX4 = /^[0-9a-fA-F]{4}$/;

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

/** Whether a literal is a whole number as written, before any rounding: `5.0` and `1e3` are. */
const isWholeLiteral = (whole: string, fraction: string, exponent: number): boolean => {
  const significant = `${whole}${fraction}`.replace(/0+$/, '');
  if (significant === '') return true;
  const lastDigitAt = significant.length - whole.length;
  return exponent >= lastDigitAt;
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
      if (Object.hasOwn(object, key)) throw new JsonFault([...this.path], 'must not appear twice');
      if (!this.takes(':')) this.fail('a colon is missing');
      const value = this.readValue(depth + 1);
      if (key === '__proto__') {
        // A plain assignment would set the object's prototype.
        Object.defineProperty(object, key, {
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
    const array: JsonValue[] = [];
    if (this.takes(']')) return array;
    do {
      this.path.push(array.length);
      array.push(this.readValue(depth + 1));
      this.path.pop();
    } while (this.takes(','));
    if (!this.takes(']')) this.fail('a comma or closing bracket is missing');
    return array;
  }

  private readString(): string {
    let decoded = '';
    let start = ++this.at;
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (Number.isNaN(code)) this.fail('a string is not closed');
      if (code === 0x22) {
        decoded += this.text.slice(start, this.at++);
        return decoded;
      }
      if (code < 0x20) this.fail('a control character in a string is not escaped');
      if (code === 0x5c) {
        decoded += this.text.slice(start, this.at) + this.readEscape();
        start = this.at;
      } else {
        this.at++;
      }
    }
  }

  private readEscape(): string {
    const letter = this.text[this.at + 1] ?? '';
    if (letter === 'u') {
      const hex = this.text.slice(this.at + 2, this.at + 6);
      if (!HEX4.test(hex)) this.fail('an escape in a string is not valid');
      this.at += 6;
      return String.fromCharCode(Number.parseInt(hex, 16));
    }
    const decoded = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
    if (decoded === undefined) this.fail('an escape in a string is not valid');
    this.at += 2;
    return decoded;
  }

  private readNumber(): number {
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.text);
    if (!match)
      this.fail(this.at < this.text.length ? 'a value is not valid' : 'it ends too early');
    this.at = NUMBER.lastIndex;
    const value = Number(match[0]);
    const [, whole = '', fraction = '', exponent = '0'] = match;
    if (
      (fraction !== '' || match[3] !== undefined) &&
      Number.isInteger(value) &&
      !isWholeLiteral(whole, fraction, Number(exponent))
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
