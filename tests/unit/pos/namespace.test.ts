import { addressKey } from '../../../server/src/net/client-address';
import { isInNamespace } from '../../../server/src/pos/intake/wire';
import { withoutTrailingSlashes } from '../../../server/src/http/bounded-body';

describe('the namespace of tills', () => {
  it.each([
    ['/api/service-pos/v1/sale', true],
    ['/API/Service-POS/V1/Sale/', true],
    ['/api/service%2Dpos/v1/sale', true],
    ['/api//service-pos/v1/sale', true],
    ['/api/service-pos/v1', true],
    ['/api/service-pos/v10/sale', false],
    ['/api/service-pos', false],
    ['/api/fw-crm/v1/contacts', false],
    ['/api/%E0%A4%A', false],
    ['/x/api/service-pos/v1/sale', false],
  ])('%s: %s', (path, expected) => {
    expect(isInNamespace(path, '/api')).toBe(expected);
  });

  it('follows the prefix that a site gives its API', () => {
    expect(isInNamespace('/v2/service-pos/v1/sale', '/v2')).toBe(true);
    expect(isInNamespace('/api/service-pos/v1/sale', '/v2')).toBe(false);
  });
});

describe('slashes at the end of a path', () => {
  it.each([
    ['/a/b', '/a/b'],
    ['/a//b///', '/a//b'],
    ['///', ''],
    ['', ''],
  ])('%s: %s', (path, expected) => expect(withoutTrailingSlashes(path)).toBe(expected));

  it('are found in one look, however many others there are', () => {
    const path = `${'/'.repeat(500_000)}x`;
    const before = process.cpuUsage();
    expect(withoutTrailingSlashes(path)).toBe(path);
    const { user, system } = process.cpuUsage(before);
    // From each slash anew, half a million slashes took minutes.
    expect((user + system) / 1000).toBeLessThan(1_000);
  });
});

describe('whom a failed authentication is charged to', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:aaaa::1', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::9', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ])('%s is charged as %s', (address, network) => {
    expect(addressKey(address)).toBe(network);
  });
});
