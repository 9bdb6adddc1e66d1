import { keepFreeHeaders, redactHeaders } from '../../../server/src/webhooks/rules/request-headers';

describe('the headers that a request-args handler may decide about', () => {
  it('are kept: its own names, numbers as text', () => {
    expect(keepFreeHeaders({ Authorization: 'Bearer x', 'X-Shop': 7 })).toEqual({
      Authorization: 'Bearer x',
      'X-Shop': '7',
      'Content-Type': 'application/json',
    });
  });

  it.each([
    'X-Service-Signature',
    'x-service-timestamp',
    'X-SERVICE-ANYTHING',
    'webhook-id',
    'Webhook-Signature',
    ' webhook-timestamp ',
    'Host',
    'host',
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Expect',
    'Proxy-Authorization',
    'Content-Encoding',
    'Upgrade',
    'TE',
  ])('do not include %s, which signs or frames the request', (name) => {
    expect(keepFreeHeaders({ [name]: 'forged' })).toEqual({ 'Content-Type': 'application/json' });
  });

  it('do not include the content type: the body is the signed JSON', () => {
    expect(keepFreeHeaders({ 'content-TYPE': 'text/plain' })).toEqual({
      'Content-Type': 'application/json',
    });
  });

  it.each([undefined, null, 'text', 5])(
    'are the content type alone where it returned %p',
    (odd) => {
      expect(keepFreeHeaders(odd)['Content-Type']).toBe('application/json');
    }
  );

  it('leave out what has no value', () => {
    expect(keepFreeHeaders({ A: undefined, B: null })).toEqual({
      'Content-Type': 'application/json',
    });
  });
});

describe('headers in the log', () => {
  it.each(['Authorization', 'X-Api-Key', 'apikey', 'Cookie', 'X-Auth-Token', 'x-shared-secret'])(
    'never show the value of %s',
    (name) => {
      expect(redactHeaders({ [name]: 'hunter2' })).toEqual({ [name]: '***' });
    }
  );

  it.each([
    ['X-Auth', 'hunter2', '***'],
    ['X-Auth-User', 'hunter2', '***'],
    ['Proxy-Authorization', 'Basic aHVudGVyMg==', '***'],
    ['Set-Cookie', 'sid=hunter2; HttpOnly', '***'],
    ['X-Functions-Key', 'hunter2', '***'],
    ['X-Custom', 'Bearer hunter2', '***'],
    ['X-Custom', 'basic aHVudGVyMg==', '***'],
    ['X-Callback', 'https://a.example/?token=hunter2&n=1', 'https://a.example/?token=***&n=1'],
    ['Referer', 'https://me:hunter2@a.example/', 'https://***@a.example/'],
    [
      'Link',
      '<https://a.example/?page=2&api_key=hunter2>',
      '<https://a.example/?page=2&api_key=***>',
    ],
  ])('nor of %s: %s', (name, value, shown) => {
    expect(redactHeaders({ [name]: value })).toEqual({ [name]: shown });
  });

  it.each([
    ['X-Author', 'Ada'],
    ['Idempotency-Key', '17'],
    ['WWW-Authenticate', 'Basic realm="a"'],
    ['Access-Control-Allow-Credentials', 'true'],
    ['webhook-signature', 'v1,aGVsbG8='],
  ])('show %s, which is no credential', (name, value) => {
    expect(redactHeaders({ [name]: value })).toEqual({ [name]: value });
  });

  it('show no value of the webhook’s own headers, however their names are written', () => {
    const headers = { 'X-Shop': 'one', 'x-AREA': 'two', Accept: '*/*' };
    expect(redactHeaders(headers, ['x-shop', 'X-Area'])).toEqual({
      'X-Shop': '***',
      'x-AREA': '***',
      Accept: '*/*',
    });
  });

  it('show the rest as it was sent', () => {
    const headers = { 'X-Service-Signature': 'sha256=00', 'Content-Type': 'application/json' };
    expect(redactHeaders(headers)).toEqual(headers);
  });
});
