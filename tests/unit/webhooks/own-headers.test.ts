import {
  hideEchoes,
  judgeHeaders,
  judgeKept,
  withOwnHeaders,
} from '../../../server/src/webhooks/rules/request-headers';

const codesOf = (headers: Record<string, string>) =>
  judgeHeaders(headers).map(({ name, wrong }) => [name, wrong.code]);
const many = (count: number, value = 'x') =>
  Object.fromEntries(Array.from({ length: count }, (_one, at) => [`X-${at}`, value]));

describe('headers that a webhook may have', () => {
  it.each([
    [{ Authorization: 'Bearer abc', 'x-api-key': '1', "X!#$%&'*+.^_`|~": 'é' }],
    [{ 'User-Agent': 'Shop', Accept: '*/*', Cookie: 'a=b; c="d"' }],
    [{ 'X-Long': 'v'.repeat(4096) }],
    [many(20)],
    [{}],
  ])('include %j', (headers) => expect(judgeHeaders(headers)).toEqual([]));

  it.each([
    'Host',
    'HOST',
    'content-type',
    'Content-Length',
    'Content-Anything',
    'X-Service-Signature',
    'x-service-new',
    'Webhook-Id',
    'webhook-',
    'Transfer-Encoding',
    'Connection',
    'Proxy-Authorization',
    'Expect',
    'TE',
  ])('do not include %s, which the post itself has', (name) => {
    expect(codesOf({ [name]: 'x' })).toEqual([[name, 'header_reserved']]);
  });

  it.each(['', ' ', 'a b', 'X:', 'X\n', 'Ümlaut', '(x)', 'X-'.repeat(65), ':authority'])(
    'have no name such as %j',
    (name) => expect(codesOf({ [name]: 'x' })[0]?.[1]).toBe('header_name')
  );

  it('have no name that an object cannot have', () => {
    const given = JSON.parse('{"__proto__":"x"}') as Record<string, string>;
    expect(codesOf(given)).toEqual([['__proto__', 'header_name']]);
  });

  it.each([
    '',
    '  ',
    'a\nb',
    'a\r\nX-Other: b',
    'a\u0000',
    '\t',
    '\u0085',
    '日本',
    'v'.repeat(4097),
  ])('have no value such as %j', (value) =>
    expect(codesOf({ 'X-A': value })).toEqual([['X-A', 'header_value']])
  );

  it('are at most 20, each there once, and not too much together', () => {
    expect(codesOf(many(21))).toEqual([[null, 'too_many']]);
    expect(codesOf({ 'X-A': '1', 'x-a': '2' })).toEqual([['x-a', 'named_twice']]);
    expect(codesOf(many(3, 'v'.repeat(3000)))).toEqual([[null, 'headers_large']]);
  });

  it('are each named that is wrong', () => {
    expect(codesOf({ Host: 'a', 'X-A': '', 'X-B': 'b' })).toEqual([
      ['Host', 'header_reserved'],
      ['X-A', 'header_value'],
    ]);
  });
});

describe('a value that is kept', () => {
  it('is one that is there, whatever the case of its name', () => {
    expect(judgeKept({ authorization: '***', 'X-New': 'a' }, ['Authorization'])).toBeNull();
    expect(judgeKept({ 'X-New': ' *** ' }, ['Authorization'])).toMatchObject({
      code: 'header_unknown',
      values: { name: 'X-New' },
    });
  });
});

describe('what is posted', () => {
  it('has the webhook’s headers unless a hook gave one of the name', () => {
    expect(
      withOwnHeaders({ 'x-a': 'hook', 'X-B': 'hook' }, { 'X-A': 'own', Authorization: 'own' })
    ).toEqual({ 'x-a': 'hook', 'X-B': 'hook', Authorization: 'own' });
  });
});

describe('what is answered', () => {
  const hide = hideEchoes({ Authorization: 'Bearer abc-"123"', 'X-Env': 'live' });

  it.each([
    ['you sent Bearer abc-"123"!', 'you sent ***!'],
    [JSON.stringify({ token: 'abc-"123"' }), '{"token":"***"}'],
    ['it is live', 'it is live'],
    ['', ''],
  ])('of %j shows %j', (said, shown) => expect(hide(said)).toBe(shown));
});
