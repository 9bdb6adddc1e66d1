import {
  describePrivateAddresses,
  givenNodeEnv,
  judgePrivateAddresses,
  type NodeEnvSources,
  type PrivateAddressFacts,
} from '../../../server/src/net/guard';

const given = (sources: Partial<NodeEnvSources>) =>
  givenNodeEnv({ current: 'development', atStart: () => ({}), envFile: () => ({}), ...sources });

describe('the NODE_ENV that somebody set', () => {
  test.each<[string, Partial<NodeEnvSources>, string | null]>([
    ['nothing: the host wrote its default', {}, null],
    ['the environment', { atStart: () => ({ NODE_ENV: 'development' }) }, 'development'],
    ["the site's .env", { envFile: () => ({ NODE_ENV: 'development' }) }, 'development'],
    ['another value cannot be a default', { current: 'local' }, 'local'],
    ['production', { current: 'production' }, 'production'],
    ['an empty one is none', { current: '' }, null],
    ['an empty one at the start is none', { atStart: () => ({ NODE_ENV: '' }) }, null],
  ])('%s', (_name, sources, expected) => {
    expect(given(sources)).toEqual({ given: expected });
  });

  test('is unknown where the system does not tell', () => {
    expect(given({ atStart: () => null })).toBe('unknown');
    expect(given({ atStart: () => null, envFile: () => ({ NODE_ENV: 'development' }) })).toEqual({
      given: 'development',
    });
  });

  test('is read from the system by default', () => {
    // jest sets NODE_ENV to `test`, which is nobody's default.
    expect(givenNodeEnv()).toEqual({ given: process.env.NODE_ENV });
  });
});

describe('private addresses', () => {
  const judge = (facts: Partial<PrivateAddressFacts>) =>
    judgePrivateAddresses({ option: false, nodeEnv: { given: null }, develop: false, ...facts });

  test.each<[Partial<PrivateAddressFacts>, boolean, RegExp]>([
    [{}, false, /NODE_ENV is not set.*webhooks\.allowPrivateNetworks/],
    [{ nodeEnv: 'unknown' }, false, /does not tell.*webhooks\.allowPrivateNetworks/],
    [{ nodeEnv: { given: 'production' } }, false, /production.*webhooks\.allowPrivateNetworks/],
    [{ nodeEnv: { given: 'Development' } }, false, /Development.*webhooks\.allowPrivateNetworks/],
    [{ nodeEnv: { given: 'development' } }, true, /NODE_ENV is set to development/],
    [{ nodeEnv: { given: 'local' } }, true, /NODE_ENV is set to local/],
    [{ develop: true }, true, /strapi develop/],
    [{ option: true }, true, /webhooks\.allowPrivateNetworks is true/],
    [{ option: ['10.0.0.0/8'] }, false, /webhooks\.allowPrivateNetworks allows 10\.0\.0\.0\/8/],
    [{ option: [] }, false, /webhooks\.allowPrivateNetworks/],
  ])('%j: open %s', (facts, open, why) => {
    const policy = judge(facts);
    expect(policy.open).toBe(open);
    expect(policy.why).toMatch(why);
    const line = describePrivateAddresses(policy, null);
    expect(line).toMatch(
      open ? /^private addresses are open \(/ : /^private addresses are refused/
    );
    expect(line).not.toContain('\n');
  });

  test('are as the hook says where somebody answers it', () => {
    const refused = judge({});
    expect(describePrivateAddresses(refused, true)).toMatch(
      /^private addresses are open \(.*yes\)$/
    );
    expect(describePrivateAddresses(refused, false)).toMatch(/^private addresses are refused \(/);
    expect(describePrivateAddresses(judge({ develop: true }), false)).toMatch(/are refused \(/);
  });
});
