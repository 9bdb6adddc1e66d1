import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { parseCidrList } from '../../../server/src/net/address';
import { createAddressGuard, type AddressGuardOptions } from '../../../server/src/net/guard';

const PUBLIC = { address: '93.184.216.34', family: 4 };
const PUBLIC_V6 = { address: '2606:2800:220:1::1', family: 6 };
const PRIVATE = { address: '10.0.0.5', family: 4 };

function guardFor(options: Partial<AddressGuardOptions> = {}) {
  return createAddressGuard({
    isLocalAllowed: () => false,
    resolve: () => Promise.reject(new Error('no test should ask the network')),
    ...options,
  });
}

const ask = (lookup: LookupFunction, options: { all?: boolean; family?: number | 'IPv6' } = {}) =>
  new Promise<LookupAddress[] | string>((done, fail) =>
    lookup('hook.example', options, (error, found) => (error ? fail(error) : done(found)))
  );

describe('checkUrl', () => {
  test.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://0x7f.0.0.1:8080/hook',
    'http://127.0.0.1./',
    'http://１２７.０.０.１/',
    'http://127。0。0。1/',
    'http://%31%32%37.0.0.1/',
    'http://0/',
    'http://0.0.0.0/',
    'http://10.0.0.1/',
    'http://192.168.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://168.63.129.16/',
    'http://100.100.100.200/',
    'http://[::]/',
    'http://[::1]/',
    'http://[::127.0.0.1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:ffff:10.0.0.1]/',
    'http://[64:ff9b::10.0.0.1]/',
    'http://[2002:a00:1::]/',
    'http://[fd00:ec2::254]/',
    'http://[fe80::1]/',
    'https://[2001:db8::1]/',
  ])('refuses the address %s without asking DNS', async (url) => {
    expect(await guardFor().checkUrl(url)).toMatchObject({ verdict: 'refused' });
  });

  const LOCAL_NAMES = [
    'http://localhost/',
    'https://LocalHost:8443/a',
    'http://localhost./',
    'http://localhost../',
    'http://%6cocalhost/',
    'http://ｌｏｃａｌｈｏｓｔ/',
    'http://local\u00adhost/',
    'http://localhost。localdomain/',
    'http://a.localhost/',
    'http://a.b.localhost./',
    'http://localhost.localdomain/',
    'http://localhost4/',
    'http://localhost6.localdomain6/',
    'http://ip6-localhost/',
    'http://ip6-localhost./',
    'http://IP6-LOOPBACK/',
  ];

  test.each(LOCAL_NAMES)('refuses the name %s whatever DNS says', async (url) => {
    const guard = guardFor({ resolve: async () => [PUBLIC] });
    expect(await guard.checkUrl(url)).toMatchObject({
      verdict: 'refused',
      reason: expect.stringContaining('webhooks.allowPrivateNetworks'),
    });
    expect(await guard.inspectUrl(url)).toMatchObject({ verdict: 'refused' });
    const elsewhere = guardFor({ allowedCidrs: parseCidrList(['10.0.0.0/8']) });
    expect(await elsewhere.checkUrl(url)).toMatchObject({ verdict: 'refused' });
    const open = guardFor({ isLocalAllowed: () => true });
    expect(await open.checkUrl(url)).toEqual({ verdict: 'allowed' });
  });

  test('reads letters beyond ASCII the same however often it was asked', async () => {
    // Once it is optimized, `URL.canParse` of Node 20 takes a text of Latin-1 for UTF-8.
    const guard = guardFor({ resolve: async () => [PUBLIC] });
    const urls = ['https://m\u00fcller.example/', 'https://hook.example/k\u00e4ufe'];
    const verdicts = new Set<string>();
    for (let time = 0; time < 20_000; time += 1) {
      for (const url of urls) verdicts.add((await guard.inspectUrl(url)).verdict);
    }
    expect([...verdicts]).toEqual(['allowed']);
  });

  test('judges such a name by its addresses where the list has loopback', async () => {
    const verdict = async (address: string) => {
      const guard = guardFor({
        allowedCidrs: parseCidrList(['127.0.0.0/8']),
        resolve: async () => [{ address, family: 4 }],
      });
      return (await guard.checkUrl('http://localhost/')).verdict;
    };
    expect(await verdict('127.0.0.1')).toBe('allowed');
    expect(await verdict('10.0.0.1')).toBe('refused');
  });

  test.each(['http://localhost.example/', 'http://notlocalhost/', 'http://localhosts.example/'])(
    'asks DNS about %s',
    async (url) => {
      const guard = guardFor({ resolve: async () => [PUBLIC] });
      expect(await guard.checkUrl(url)).toEqual({ verdict: 'allowed' });
    }
  );

  test.each([
    'ftp://hook.example/',
    'file:///etc/passwd',
    'gopher://hook.example/',
    'unix:/var/run/docker.sock',
    'javascript:alert(1)',
    'http://user@hook.example/',
    'http://user:secret@hook.example/',
    'http://:secret@hook.example/',
    'https://hook.example@10.0.0.1/',
    'http://',
    'https:///',
    'http://hook.example:99999/',
    'http://[fe80::1%25eth0]/',
    'http://1.2.3.4.5/',
    '//hook.example/',
    'hook.example',
    '',
  ])('finds %j invalid', async (url) => {
    expect(await guardFor().checkUrl(url)).toMatchObject({ verdict: 'invalid' });
  });

  test.each([undefined, null, 7, {}, []])('finds %j invalid, and does not throw', async (url) => {
    expect(await guardFor().checkUrl(url as never)).toMatchObject({ verdict: 'invalid' });
  });

  test('allows public literals and names whose every address is public', async () => {
    const guard = guardFor({ resolve: async () => [PUBLIC, PUBLIC_V6] });
    for (const url of ['https://hook.example/a?b=c', 'http://8.8.8.8/', 'http://[2606:4700::1]/']) {
      expect(await guard.checkUrl(url)).toEqual({ verdict: 'allowed' });
    }
  });

  test('refuses a name if any one of its addresses is bad, and does not tell which', async () => {
    for (const addresses of [
      [PUBLIC, PRIVATE],
      [PRIVATE, PUBLIC],
      [PUBLIC_V6, PUBLIC, PRIVATE],
    ]) {
      const verdict = await guardFor({ resolve: async () => addresses }).checkUrl(
        'http://a.example'
      );
      expect(verdict).toMatchObject({ verdict: 'refused' });
      expect(JSON.stringify(verdict)).not.toContain(PRIVATE.address);
    }
  });

  test('refuses a name that leads to something that is no address', async () => {
    const guard = guardFor({ resolve: async () => [PUBLIC, { address: 'nonsense', family: 4 }] });
    expect(await guard.checkUrl('http://hook.example/')).toMatchObject({ verdict: 'refused' });
  });

  test('calls a name unresolvable that errs, has no address or does not answer in time', async () => {
    const resolvers = [
      () => Promise.reject(new Error('ENOTFOUND')),
      () => {
        throw new Error('a resolver that throws');
      },
      async () => [],
      () => new Promise<never>(() => undefined),
    ];
    for (const resolve of resolvers) {
      const guard = guardFor({ resolve, dnsTimeoutMs: 30 });
      const verdict = await guard.checkUrl('http://hook.example/');
      expect(verdict).toMatchObject({ verdict: 'unresolvable' });
    }
  });

  test('asks the policy for every URL; a throw means no', async () => {
    let local: boolean | Error = true;
    const isLocalAllowed = () => {
      if (local instanceof Error) throw local;
      return local;
    };
    const guard = guardFor({ isLocalAllowed, resolve: async () => [PRIVATE] });
    const urls = ['http://127.0.0.1/', 'http://hook.example/'];
    const verdicts = () =>
      Promise.all(urls.map(async (url) => (await guard.checkUrl(url)).verdict));

    expect(await verdicts()).toEqual(['allowed', 'allowed']);
    expect(await guard.checkUrl('file:///etc/passwd')).toMatchObject({ verdict: 'invalid' });
    local = false;
    expect(await verdicts()).toEqual(['refused', 'refused']);
    local = new Error('a hook that throws');
    expect(await verdicts()).toEqual(['refused', 'refused']);
    local = 'yes' as never;
    expect(await verdicts()).toEqual(['refused', 'refused']);
  });

  test('allows the ranges of the list, as literals and behind names, and nothing beside', async () => {
    const guard = guardFor({
      allowedCidrs: parseCidrList(['10.0.0.0/24']),
      resolve: async (host) => [
        host === 'in.example' ? PRIVATE : { address: '10.0.1.1', family: 4 },
      ],
    });
    const verdict = async (url: string) => (await guard.checkUrl(url)).verdict;
    expect(await verdict('http://10.0.0.9/')).toBe('allowed');
    expect(await verdict('http://in.example/')).toBe('allowed');
    expect(await verdict('http://10.0.1.1/')).toBe('refused');
    expect(await verdict('http://out.example/')).toBe('refused');
  });

  test('asks DNS once for simultaneous questions about one name, and again later', async () => {
    let asked = 0;
    const guard = guardFor({
      resolve: async () => {
        asked += 1;
        return [PUBLIC];
      },
    });
    const url = 'http://hook.example/';
    await Promise.all([guard.checkUrl(url), guard.checkUrl(url), guard.checkUrl(url)]);
    expect(asked).toBe(1);
    await guard.checkUrl(url);
    expect(asked).toBe(2);
  });
});

describe('the lookups for agents', () => {
  test('judge at connect time: a name that was good at save is refused when it has turned bad', async () => {
    let addresses = [PUBLIC];
    const guard = guardFor({ resolve: async () => addresses });
    expect(await guard.checkUrl('http://hook.example/')).toEqual({ verdict: 'allowed' });
    expect(await ask(guard.lookups.guarded)).toBe(PUBLIC.address);

    addresses = [PRIVATE];
    await expect(ask(guard.lookups.guarded)).rejects.toMatchObject({ code: 'ERR_BLOCKED_ADDRESS' });
  });

  test('refuse a mix of good and bad, whichever family or number is asked for', async () => {
    const { guarded } = guardFor({ resolve: async () => [PUBLIC_V6, PUBLIC, PRIVATE] }).lookups;
    for (const options of [
      { all: true },
      { all: false },
      { family: 6 },
      { all: true, family: 4 },
    ]) {
      await expect(ask(guarded, options)).rejects.toMatchObject({ code: 'ERR_BLOCKED_ADDRESS' });
    }
  });

  test('give one address or all, of the family asked for', async () => {
    const { guarded } = guardFor({ resolve: async () => [PUBLIC_V6, PUBLIC] }).lookups;
    expect(await ask(guarded, { all: true })).toEqual([PUBLIC_V6, PUBLIC]);
    expect(await ask(guarded, { all: true, family: 4 })).toEqual([PUBLIC]);
    expect(await ask(guarded, { family: 'IPv6' })).toBe(PUBLIC_V6.address);
    expect(await ask(guarded, { family: 4 })).toBe(PUBLIC.address);
  });

  test('give a code of their own where there is no address', async () => {
    const code = 'ERR_NAME_NOT_RESOLVED';
    const failing = guardFor().lookups;
    await expect(ask(failing.guarded)).rejects.toMatchObject({ code });
    await expect(ask(failing.open)).rejects.toMatchObject({ code });
    const onlyIPv4 = guardFor({ resolve: async () => [PUBLIC] }).lookups;
    await expect(ask(onlyIPv4.guarded, { family: 6 })).rejects.toMatchObject({ code });
  });
});
