import { ineffective } from '../../../server/src/config';
import { parseOptions } from '../../../server/src/config/schema';

describe('a wrong option is named', () => {
  it.each<[string, Record<string, unknown>, RegExp]>([
    ['a misspelt option', { webhooks: { concurency: 3 } }, /switchboard\.webhooks\.concurency/],
    ['an unknown group', { webhook: {} }, /switchboard\.webhook:/],
    ['a wrong type', { webhooks: { timeoutMs: 'soon' } }, /switchboard\.webhooks\.timeoutMs/],
    [
      'a malformed network',
      { webhooks: { allowPrivateNetworks: ['10.0.0.0/33'] } },
      /switchboard\.webhooks\.allowPrivateNetworks[\s\S]*10\.0\.0\.0\/33/,
    ],
    [
      'a mapping of something that is no CRM object',
      { sources: { invoice: { contentType: 'api::product.product' } } },
      /switchboard\.sources/,
    ],
  ])('%s', (_name, options, message) => {
    expect(() => parseOptions(options)).toThrow(message);
  });
});

it('the client undici is named once at boot, with what takes its place', () => {
  const linesFor = (client: string) => {
    const given = { webhooks: { client } };
    const get = (key: string) => (key === 'plugin::switchboard' ? given : undefined);
    return ineffective({ config: { get } } as never);
  };
  expect(linesFor('undici')).toEqual([expect.stringMatching(/undici.*"node" takes its place/)]);
  expect(linesFor('node')).toEqual([]);
});
