import fc from 'fast-check';

import { strictJsonSteps } from '../../../server/src/pos/rules/strict-json';
import { inOneGo, inTurns } from '../../../server/src/runtime/event-loop';

const parseStrictJson = (bytes: Uint8Array, depth: number) =>
  inOneGo(strictJsonSteps(bytes, depth, Infinity));

const parse = (text: string, depth = 16) => parseStrictJson(Buffer.from(text), depth);
const valueOf = (text: string) => {
  const result = parse(text);
  if (!result.ok) throw new Error(result.issue.message);
  return result.value;
};
const messageOf = (result: ReturnType<typeof parseStrictJson>) =>
  result.ok ? undefined : result.issue.message;

describe('parseStrictJson against JSON.parse', () => {
  it('agrees on every document that JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(0, 2, '\t'), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(valueOf(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 }
    );
  });

  it('agrees on what is no JSON, and never throws', () => {
    const pieces = fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        '"a"',
        '"',
        '\\',
        '\\u00',
        '"\\n"',
        '1',
        '-',
        '0',
        '.',
        'e',
      ],
      ...['true', 'nul', ' ', '\n', '\u00a0', '\u2028', '\ufeff', '/**/', "'a'", 'NaN', '"\t"', '+']
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        let valid = true;
        try {
          JSON.parse(text);
        } catch {
          valid = false;
        }
        const ours = parse(text);
        // Stricter in one thing only here: a key twice.
        if (messageOf(ours)?.endsWith('must not appear twice')) return;
        expect(ours.ok).toBe(valid);
      }),
      { numRuns: 1000 }
    );
  });

  it('never throws on arbitrary bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        expect(typeof parseStrictJson(bytes, 16).ok).toBe('boolean');
      }),
      { numRuns: 1000 }
    );
  });

  it('reads bytes that lie inside a larger buffer', () => {
    const large = Buffer.from('xx{"a":1}yy');
    expect(parseStrictJson(large.subarray(2, 9), 16)).toMatchObject({ ok: true, value: { a: 1 } });
  });
});

describe('what strict means', () => {
  it.each([
    ['nothing', Buffer.alloc(0), 'empty'],
    ['a byte order mark', Buffer.from('\ufeff{}'), 'byte order mark'],
    ['UTF-16', Buffer.from('{}', 'utf16le'), 'valid JSON'],
    ['a Latin-1 letter', Buffer.from([0x22, 0xe4, 0x22]), 'UTF-8'],
    ['an overlong slash', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), 'UTF-8'],
    ['an encoded surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 'UTF-8'],
    ['a cut sequence', Buffer.from([0x22, 0xf0, 0x9f, 0x99]), 'UTF-8'],
  ])('refuses %s', (_name, bytes, word) => {
    expect(messageOf(parseStrictJson(bytes, 16))).toContain(word);
  });

  it.each([
    ['{"a":1,"a":1}', 'a must not appear twice'],
    ['{"a":1,"\\u0061":2}', 'a must not appear twice'],
    ['{"\\u0061":1,"a":2}', 'a must not appear twice'],
    ['{"line_items":[{"sku":"x","sku":"y"}]}', 'line_items[0].sku must not appear twice'],
    ['{"meta":{"two words":1,"b":0,"two words":1}}', 'meta["two words"] must not appear twice'],
    ['{"__proto__":1,"__proto__":2}', '__proto__ must not appear twice'],
    ['{"":1,"":2}', '[""] must not appear twice'],
  ])('refuses a key twice: %s', (text, message) => {
    expect(messageOf(parse(text))).toBe(message);
  });

  it('takes the names of Object.prototype as keys like any other', () => {
    const text = '{"constructor":1,"toString":2,"hasOwnProperty":3,"valueOf":4}';
    expect(valueOf(text)).toEqual(JSON.parse(text));
  });

  it('allows the same key in two objects', () => {
    expect(parse('[{"a":1},{"a":2}]').ok).toBe(true);
  });

  it('keeps __proto__ as an own property and changes no prototype', () => {
    const value = valueOf('{"__proto__":{"polluted":true},"a":{"__proto__":null}}') as object;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.hasOwn(value, '__proto__')).toBe(true);
    expect((value as { polluted?: unknown }).polluted).toBeUndefined();
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('allows 16 levels and refuses 17', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(parse(nested(16)).ok).toBe(true);
    expect(messageOf(parse(nested(17)))).toContain('16 levels');
    expect(messageOf(parse('{"a":'.repeat(17) + '1' + '}'.repeat(17)))).toContain('16 levels');
  });

  it('counts values of all kinds while it reads, and stops at the limit', () => {
    const read = (text: string) => inOneGo(strictJsonSteps(Buffer.from(text), 16, 5));
    expect(read('{"a":[1,{},"x"]}').ok).toBe(true);
    // What follows the limit is never read: it is no JSON.
    const many = read('{"a":[1,{},"x",null,?');
    expect(many).toMatchObject({ issue: { message: 'body must not have more than 5 values' } });
  });

  it('lets others go first while it reads', async () => {
    const body = Buffer.from(`[${'[1,{"a":"b"}],'.repeat(10_000)}0]`);
    let turns = 0;
    const slice = { isOver: () => true, next: async () => void (turns += 1) };
    const read = await inTurns(strictJsonSteps(body, 16, Infinity), slice);
    expect(read.ok).toBe(true);
    expect(turns).toBeGreaterThan(50);
  });

  it.each(['[', '{"a":', '[{"a":'])('survives 200,000 levels of %s', (opening) => {
    expect(messageOf(parse(opening.repeat(200_000)))).toContain('16 levels');
  });

  it('survives a long string, a long number and many keys', () => {
    expect(parse(`"${'a'.repeat(262_000)}"`).ok).toBe(true);
    expect(parse('9'.repeat(262_000)).ok).toBe(true);
    const keys = Array.from({ length: 20_000 }, (_, index) => `"k${index}":0`);
    expect(parse(`{${keys.join(',')}}`).ok).toBe(true);
  });
});

describe('numbers', () => {
  it.each([
    ['1e3', 1000],
    ['5.0', 5],
    ['50e-1', 5],
    ['-0', 0],
    ['-0.0', 0],
    ['0e9', 0],
    ['100E-2', 1],
    ['1.50e1', 15],
    ['9007199254740991', 9007199254740991],
  ])('%s is the whole number %i', (text, number) => {
    const result = parse(`[${text}]`);
    expect(result).toMatchObject({ ok: true, value: [number] });
    expect(Object.is((valueOf(`[${text}]`) as number[])[0], number)).toBe(true);
    expect(result.ok && result.roundedToInteger.size).toBe(0);
  });

  it.each(['1.00000000000000000001', '9007199254740990.9', '1e-400'])(
    '%s only rounds to a whole number, and that is told',
    (text) => {
      const result = parse(`{"total":${text}}`);
      expect(result.ok && [...result.roundedToInteger]).toEqual(['total']);
    }
  );

  it.each(['01', '+1', '.5', '1.', '1e', '0x10', '1_000', 'NaN', 'Infinity', '--1'])(
    '%s is no number',
    (text) => {
      expect(parse(text).ok).toBe(false);
    }
  );
});

describe('strings', () => {
  it('reads every escape as JSON.parse does, lone surrogates and NUL included', () => {
    const text = String.raw`"\"\\\/\b\f\n\r\tA\u00e4\ud83d\ude42 \ud800 \u0000"`;
    expect(valueOf(text)).toBe(JSON.parse(text));
  });

  it.each([String.raw`"\x41"`, String.raw`"\u12"`, String.raw`"\u{41}"`, '"\u0000"', '"a\nb"'])(
    'refuses %j',
    (text) => {
      expect(parse(text).ok).toBe(false);
    }
  );
});
