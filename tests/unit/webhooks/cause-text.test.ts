import { FAILURE_CAUSES } from '../../../server/src/net/http-client';
import { causeText } from '../../../server/src/webhooks/managing/assistant-tools';

describe('what a cause says in words', () => {
  it.each([
    ...FAILURE_CAUSES,
    'redirect',
    'secret_unavailable',
    'body_missing',
    'imported',
    'interrupted',
    'discarded',
    'webhook_deleted',
  ])('of %s is a sentence', (cause) => {
    expect(causeText(cause)).toMatch(/^[A-Z].{15,}\.$/);
  });

  it.each([
    ['http_401', /answered 401: it requires a login/],
    ['http_410', /answered 410: this address no longer exists/],
    ['http_418', /answered 418: only 200 to 299/],
    ['http_503', /answered 503: it failed while handling/],
  ])('of %s names the status', (cause, said) => {
    expect(causeText(cause)).toMatch(said);
  });

  it.each(['toString', 'http_', 'http_5000', ''])('of %j, which is none, is nothing', (cause) => {
    expect(causeText(cause)).toBeNull();
  });
});
