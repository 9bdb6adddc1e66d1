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

  it('show the rest as it was sent', () => {
    const headers = { 'X-Service-Signature': 'sha256=00', 'Content-Type': 'application/json' };
    expect(redactHeaders(headers)).toEqual(headers);
  });
});
