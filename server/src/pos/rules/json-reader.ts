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

/** Steps to a number that a record's rules ask about; what its sender adds may lie deeper. */
const ROUNDED_STEPS = 4;

/** How large a document may be. */
export interface JsonLimits {
  /** Nested objects and arrays, the document itself being the first. */
  depth: number;
  /** Values of all kinds. */
  nodes: number;
}

/**
 * A reader of its own, because `JSON.parse` takes the last of two equal keys, rounds numbers
 * silently, has no limit of depth and cannot stop on its way. It does not recurse.
 */
export class JsonReader {
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
