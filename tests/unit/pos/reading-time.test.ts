import fc from 'fast-check';
import { RECORD_KINDS } from '../../../server/src/pos/rules/records';
import { readRecord } from '../../../server/src/pos/rules/validate';
import { strictJsonSteps } from '../../../server/src/pos/rules/strict-json';
import { inOneGo } from '../../../server/src/runtime/event-loop';

const parseStrictJson = (bytes: Uint8Array, depth: number) =>
  inOneGo(strictJsonSteps(bytes, depth, Infinity));

/** Bytes; the default of `pos.maxBodyBytes`. */
const LIMIT = 262_144;

/** The pattern again and again, with something before and after, as long as a body may be. */
const filled = (before: string, pattern: string, after: string, size = LIMIT): string => {
  const room = size - before.length - after.length;
  return before + pattern.repeat(Math.floor(room / pattern.length)) + after;
};

const numbered = (pattern: (index: number) => string, size = LIMIT): string => {
  let text = '';
  for (let index = 0; text.length < size - 40; index += 1) text += pattern(index);
  return text.slice(0, -1);
};

const sale = (more: string): string =>
  `{"external_id":"a","occurred_at":"2025-03-01T14:05:00+01:00","currency":"GBP","total":1,"line_items":[{"sku":"A","quantity":1}],${more}}`;
const head = sale('"meta":{"x":').slice(0, -1);

const BODIES: Record<string, string> = {
  'zeros in a fraction': filled(`${head}1.`, '0', '1}}'),
  'zeros and ones in a fraction': filled(`${head}1.`, '01', '}}'),
  'zeros at a fraction’s end': filled(`${head}1.1`, '0', '}}'),
  'zeros in a whole number': filled(`${head}1`, '0', '1.5}}'),
  'a long exponent': filled(`${head}1e`, '1', '}}'),
  'zeros in an exponent': filled(`${head}1.5e`, '0', '1}}'),
  'many numbers': filled(`${head}[`, '1,', '1]}}'),
  'many fractions': filled(`${head}[`, '1.0e0,', '1]}}'),
  'many rounded fractions': filled(`${head}[`, '1.00000000000000000001,', '1]}}'),
  'fractions that round, deep under long odd keys': filled(
    `${head}${`{"${'é '.repeat(200)}":`.repeat(12)}[`,
    '1e-400,',
    `1]${'}'.repeat(12)}}}`,
    LIMIT - 4000
  ),
  'escaped letters': filled(`${head}"`, '\\u0041', '"}}'),
  'escaped quotes': filled(`${head}"`, '\\"', '"}}'),
  'a long string': filled(`${head}"`, 'a', '"}}'),
  'wide characters': filled(`${head}"`, 'é', '"}}', LIMIT / 2),
  spaces: filled(`${head}`, ' ', '1}}'),
  'spaces and no end': filled(head, ' ', ''),
  'objects as deep as allowed': filled(`${head}[`, '[[[[[[[[[[[[]]]]]]]]]]]],', '1]}}'),
  'far too deep': filled('', '[', ''),
  'many keys': `${head}{${numbered((index) => `"${index.toString(36)}":0,`)}}}}`.slice(
    0,
    LIMIT + 200
  ),
  'keys that are numbers': `${head}{${numbered((index) => `"${index * 7919}":0,`)}}}}`,
  'a long key, twice': filled(`{"`, 'k', '":1,"kk":2}'),
  'empty strings': filled(`${head}[`, '"",', '1]}}'),
  'lines that are none': filled(
    '{"external_id":"a","occurred_at":"2025-03-01T14:05:00+01:00","currency":"GBP","total":1,"line_items":[',
    '1,',
    '1]}'
  ),
  'long occurred_at': filled('{"external_id":"a","occurred_at":"', '2025-03-01T14:05:00', '"}'),
  'long external_id': filled(
    '{"external_id":"',
    'a',
    '","occurred_at":"2025-03-01T14:05:00+01:00"}'
  ),
  'long currency': filled(
    '{"external_id":"a","occurred_at":"2025-03-01T14:05:00+01:00","currency":"',
    'A',
    '","total":1,"line_items":[]}'
  ),
};

/** Whatever else runs on this machine: of some tries, the shortest, in time of the processor. */
const fastest = (enoughMs: number, work: () => unknown): number => {
  let best = Infinity;
  for (let run = 0; run < 6 && best > enoughMs; run += 1) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1000);
  }
  return best;
};

const BOUND_MS = 50;
/** What a busy machine and the test's own sandbox may add; what was quadratic took a hundred times. */
const SLOWNESS = 10;

const reads = (bytes: Buffer) => (): unknown =>
  RECORD_KINDS.map((kind) => readRecord(kind, bytes, 0));

describe('any body within the limit is read in less than 50 ms', () => {
  it.each(Object.entries(BODIES))('%s', (_name, body) => {
    const bytes = Buffer.from(body);
    expect(bytes.length).toBeLessThanOrEqual(LIMIT + 400);
    const bound = BOUND_MS * RECORD_KINDS.length;
    expect(fastest(bound, reads(bytes))).toBeLessThan(bound * SLOWNESS);
  });

  it('whatever it repeats: digits, zeros, exponents, escapes, brackets, keys', () => {
    const piece = fc.constantFrom(
      ...['0', '1', '-', '.', 'e', 'E', '+', '0.0', '1e', '00', '[', ']', '{', '}', ':', ',', ' '],
      ...['"', '\\', '\\u00e9', '\\"', '\n', 'a', 'é', '"k":']
    );
    const pattern = fc.array(piece, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
    const start = fc.constantFrom('', '[', '{"a":', '"', '[0.', '[1', '[1.5e');
    fc.assert(
      fc.property(start, pattern, pattern, (before, repeated, after) => {
        const bytes = Buffer.from(filled(before, repeated, after, LIMIT / 2));
        const ms = fastest(BOUND_MS, () => parseStrictJson(bytes, 16));
        expect(ms).toBeLessThan(BOUND_MS * SLOWNESS);
      }),
      { numRuns: 50 }
    );
  });

  it('a body of 8 MiB takes longer by what it is longer', () => {
    const timeOf = (megabytes: number, enoughMs: number): number => {
      const unit = '1.0e0,"\\u0041\\n",[],{"a":0},1.00000000,';
      const bytes = Buffer.from(filled(`${head}[`, unit, '1]}}', megabytes * 1_048_576));
      return fastest(enoughMs, () => parseStrictJson(bytes, 16));
    };
    const bound = 8 * SLOWNESS * timeOf(1, 0);
    expect(timeOf(8, bound)).toBeLessThan(bound);
  }, 60_000);
});
