import { addressKey, createFailedAttempts } from '../../../server/src/access/failed-attempts';

describe('failed attempts', () => {
  it('are counted by address, and told how long to wait when there are too many', async () => {
    const attempts = createFailedAttempts(2);
    expect(await attempts.charge('203.0.113.5')).toBeNull();
    expect(await attempts.charge('203.0.113.5')).toBeNull();
    const wait = await attempts.charge('203.0.113.5');
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(wait).toBeLessThanOrEqual(60);
    expect(await attempts.charge('203.0.113.6')).toBeNull();
  });

  it('of one IPv6 subscriber share a counter, and IPv4 in IPv6 is IPv4', () => {
    expect(addressKey('2001:db8:1:2::1')).toBe(addressKey('2001:db8:1:2:ffff::9'));
    expect(addressKey('2001:db8:1:2::1')).not.toBe(addressKey('2001:db8:1:3::1'));
    expect(addressKey('::ffff:203.0.113.5')).toBe('203.0.113.5');
  });

  it('are counted even where the address cannot be told', () => {
    expect(addressKey(undefined)).toBe(addressKey('nonsense'));
  });
});
