import { FailedAttempts } from '../../../server/src/access/failed-attempts';
import { addressKey, proxyWarning } from '../../../server/src/net/client-address';

const from = (client: string, socket: string | null = null, proxiesCounted = false) => ({
  client,
  socket,
  proxiesCounted,
});

describe('failed attempts', () => {
  it('are counted by address, and told how long to wait when there are too many', async () => {
    const attempts = new FailedAttempts(2);
    expect(await attempts.charge(from('203.0.113.5'))).toBeNull();
    expect(await attempts.charge(from('203.0.113.5'))).toBeNull();
    const wait = await attempts.charge(from('203.0.113.5'));
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(wait).toBeLessThanOrEqual(60);
    expect(await attempts.charge(from('203.0.113.6'))).toBeNull();
  });

  it('of one IPv6 subscriber share a counter, and IPv4 in IPv6 is IPv4', () => {
    expect(addressKey('2001:db8:1:2::1')).toBe(addressKey('2001:db8:1:2:ffff::9'));
    expect(addressKey('2001:db8:1:2::1')).not.toBe(addressKey('2001:db8:1:3::1'));
    expect(addressKey('::ffff:203.0.113.5')).toBe('203.0.113.5');
  });

  it('are counted even where the address cannot be told', () => {
    expect(addressKey(undefined)).toBe(addressKey('nonsense'));
  });

  it('are counted by the connection too where the client may write the header', async () => {
    const attempts = new FailedAttempts(2);
    const charge = (client: string, counted = false) =>
      attempts.charge(from(client, '192.0.2.1', counted));
    expect(await charge('203.0.113.1')).toBeNull();
    expect(await charge('203.0.113.2')).toBeNull();
    expect(await charge('203.0.113.3')).toBeGreaterThanOrEqual(1);
  });

  it('may be ten times as many over one connection behind proxies that are counted', async () => {
    const attempts = new FailedAttempts(2);
    for (let n = 0; n < 20; n += 1) {
      expect(await attempts.charge(from(`203.0.113.${n}`, '192.0.2.1', true))).toBeNull();
    }
    expect(await attempts.charge(from('203.0.113.99', '192.0.2.1', true))).not.toBeNull();
  });
});

describe('the warning about proxies', () => {
  it.each([undefined, false, { koa: false }, { koa: true, maxIpsCount: 1 }, { global: 'x' }])(
    'is not given for %j',
    (proxy) => expect(proxyWarning(proxy)).toBeNull()
  );
  it.each([{ koa: true }, { koa: true, maxIpsCount: 0 }])('names maxIpsCount for %j', (proxy) =>
    expect(proxyWarning(proxy)).toContain('maxIpsCount')
  );
});
