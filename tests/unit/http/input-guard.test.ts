import fc from 'fast-check';
import { findInputIssues, isPossibleId, MAX_DEPTH } from '../../../server/src/http/validation';

const nested = (depth: number, inner: unknown): unknown => {
  let value = inner;
  for (let level = 0; level < depth; level += 1) value = { a: value };
  return value;
};

describe('the guard of input', () => {
  test.each<[string, unknown, string[]]>([
    ['NUL in a field', { name: 'a\0b' }, ['name']],
    ['a lone surrogate', { name: 'a\ud800b' }, ['name']],
    ['NUL far inside', { fields: { list: ['x', { y: '\0' }] } }, ['fields', 'list', '1', 'y']],
    ['NUL in the name of a field', { fields: { 'a\0': 1 } }, ['fields', 'a\ufffd']],
    ['a body that is text', 'a\0', []],
    ['too deep', { fields: nested(MAX_DEPTH + 1, 1) }, ['fields']],
  ])('names the field: %s', (_name, input, path) => {
    expect(findInputIssues(input).map((issue) => issue.path)).toEqual([path]);
  });

  test('names several, in their order, and at most twenty', () => {
    expect(findInputIssues({ a: '\0', b: 'x', c: '\0' }).map(({ path }) => path[0])).toEqual([
      'a',
      'c',
    ]);
    expect(findInputIssues(Array.from({ length: 100 }, () => '\0'))).toHaveLength(20);
  });

  test('lets whatever JSON without such text pass', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const has = JSON.stringify(value).includes('\\u0000');
        expect(findInputIssues(value).length > 0).toBe(has);
      })
    );
  });

  test('takes time in proportion to what was sent, however deep', () => {
    const wide = Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`k${at}`, 'x']));
    const many = Array.from({ length: 250_000 }, () => 'x');
    const before = process.cpuUsage();
    expect(findInputIssues({ deep: nested(200_000, 1) })).toHaveLength(1);
    expect(findInputIssues({ wide, many })).toEqual([]);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(1000);
  });

  test.each(['1', '2147483647', 'abc', '0190aaaa-0000-7000-8000-000000000000', '0'])(
    '%s could be an id',
    (id) => expect(isPossibleId(id)).toBe(true)
  );
  test.each(['2147483648', '99999999999999999999', 'a\0', '\ud800', '9'.repeat(400)])(
    '%j could not',
    (id) => expect(isPossibleId(id)).toBe(false)
  );
});
