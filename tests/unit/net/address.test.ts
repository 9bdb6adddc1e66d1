import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { judgeAddress, parseCidrList } from '../../../server/src/net/address';

const hex = (bytes: number[]): string => new ipaddr.IPv6(bytes).toNormalizedString();

/** Every IPv6 shape that leads to an IPv4 address. */
const EMBEDDINGS: Record<string, (ipv4: number[]) => string> = {
  mapped: (ipv4) => `::ffff:${ipv4.join('.')}`,
  'mapped in hex': (ipv4) => hex([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...ipv4]),
  nat64: (ipv4) => hex([0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, ...ipv4]),
  '6to4': (ipv4) => hex([0x20, 0x02, ...ipv4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
  'teredo client': (ipv4) =>
    hex([0x20, 1, 0, 0, 8, 8, 8, 8, 0, 0, 0, 0, ...ipv4.map((byte) => byte ^ 0xff)]),
  'teredo server': (ipv4) =>
    hex([0x20, 1, 0, 0, ...ipv4, 0, 0, 0, 0, ...[8, 8, 8, 8].map((byte) => byte ^ 0xff)]),
};

/** Spellings of one IPv4 address that URL parsers, or lenient resolvers, read as that address. */
const SPELLINGS: ((ipv4: number[]) => string)[] = [
  (ipv4) => ipv4.join('.'),
  (ipv4) => `${ipv4.join('.')}.`,
  (ipv4) => String(toNumber(ipv4)),
  (ipv4) => `0x${toNumber(ipv4).toString(16)}`,
  (ipv4) => `0${toNumber(ipv4).toString(8)}`,
  (ipv4) => ipv4.map((byte) => `0x${byte.toString(16)}`).join('.'),
  (ipv4) => ipv4.map((byte) => `0${byte.toString(8)}`).join('.'),
  ([a, b, c, d]) => `${a}.${b}.${c * 256 + d}`,
  ([a, b, c, d]) => `${a}.${(b * 256 + c) * 256 + d}`,
];
const toNumber = ([a, b, c, d]: number[]): number => ((a * 256 + b) * 256 + c) * 256 + d;

const REFUSED_RANGES = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '100:0:0:1::/64',
  '2001:2::/48',
  '2001:10::/28',
  '2001:20::/28',
  '2001:100::/24',
  '2001:db8::/32',
  '3fff::/20',
  '4000::/2',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
];

/** Any address of a range, its two ends more often than chance would have them. */
function addressIn(cidr: string): fc.Arbitrary<number[]> {
  const [base, bits] = ipaddr.parseCIDR(cidr);
  const fixed = base.toByteArray();
  const size = fixed.length;
  const fill = fc.oneof(
    fc.constant(Array<number>(size).fill(0)),
    fc.constant(Array<number>(size).fill(255)),
    fc.array(fc.nat(255), { minLength: size, maxLength: size })
  );
  return fill.map((free) =>
    fixed.map((byte, index) => {
      const mask = 0xff >> Math.min(8, Math.max(0, bits - index * 8));
      return (byte & ~mask & 0xff) | (free[index] & mask);
    })
  );
}

const isIPv4Range = (cidr: string): boolean => !cidr.includes(':');
const refusedIPv4 = fc.oneof(...REFUSED_RANGES.filter(isIPv4Range).map(addressIn));
const publicIPv4 = fc
  .array(fc.nat(255), { minLength: 4, maxLength: 4 })
  .filter(
    (bytes) => new ipaddr.IPv4(bytes).range() === 'unicast' && toNumber(bytes) !== 0xa83f8110
  );

describe('judgeAddress', () => {
  test.each(REFUSED_RANGES)('refuses all of %s', (cidr) => {
    fc.assert(
      fc.property(addressIn(cidr), (bytes) => {
        expect(judgeAddress(ipaddr.fromByteArray(bytes).toString())).not.toBeNull();
      })
    );
  });

  test('refuses a private IPv4 address in every spelling', () => {
    fc.assert(
      fc.property(refusedIPv4, fc.constantFrom(...SPELLINGS), (ipv4, spell) => {
        expect(judgeAddress(spell(ipv4))).not.toBeNull();
      })
    );
  });

  test.each(Object.keys(EMBEDDINGS))('refuses a private IPv4 address inside IPv6: %s', (name) => {
    fc.assert(
      fc.property(refusedIPv4, fc.boolean(), (ipv4, brackets) => {
        const ipv6 = EMBEDDINGS[name](ipv4);
        expect(judgeAddress(brackets ? `[${ipv6}]` : ipv6)).not.toBeNull();
      })
    );
  });

  test('lets public IPv4 pass, plain and inside IPv6', () => {
    const shapes = [(ipv4: number[]) => ipv4.join('.'), ...Object.values(EMBEDDINGS)];
    fc.assert(
      fc.property(publicIPv4, fc.constantFrom(...shapes), (ipv4, shape) => {
        expect(judgeAddress(shape(ipv4))).toBeNull();
      })
    );
  });

  test.each([
    '8.8.8.8',
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.1',
    '168.63.129.15',
    '168.63.129.17',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2606:4700:4700::1111',
    '[2a00:1450:4001:81b::200e]',
    '2001:200::1',
    '2001:4860:4860::8888',
    '2620:4f:8000::1',
    '3ffe:ffff::1',
    '3fff:1000::1',
  ])('lets %s pass, beside or beyond a refused range', (ip) => {
    expect(judgeAddress(ip)).toBeNull();
  });

  test.each([
    '',
    ' ',
    'localhost',
    'example.com',
    '::ffff:999.1.1.1',
    '1.2.3.4.5',
    '256.256.256.256',
    '08.8.8.8',
    '8.8.8.8:80',
    '8.8.8.8/32',
    '8.8.8.8#@10.0.0.1',
    'user@8.8.8.8',
    '[8.8.8.8]',
    '[2606:4700::1',
    '2606:4700::1]',
    '2606:4700::1::',
    '12345::',
    '8.8.8.8%eth0',
    '2606:4700::1%eth0',
    'fe80::1%1',
    '[fe80::1%25eth0]',
    '::1%lo',
    '８.８.８.８',
  ])('refuses %j, which it cannot read or which belongs to one link', (ip) => {
    expect(judgeAddress(ip)).not.toBeNull();
  });

  test('never throws, and says why whenever it refuses', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4Extended(), fc.ipV6()), (text) => {
        const judgement = judgeAddress(text);
        expect(judgement === null || judgement.length > 0).toBe(true);
      })
    );
  });

  test('passes what the list of ranges allows, in IPv6 clothes too, and no neighbour', () => {
    const allowed = parseCidrList(['10.1.0.0/16', 'fd00:1::/32', '::ffff:192.168.7.0/120']);
    for (const ip of [
      '10.1.2.3',
      '::ffff:10.1.2.3',
      '[fd00:1::5]',
      'fd00:1::5%eth0',
      '0xa010203',
    ]) {
      expect(judgeAddress(ip, allowed)).toBeNull();
    }
    expect(judgeAddress('192.168.7.9', allowed)).toBeNull();
    expect(judgeAddress('::ffff:192.168.7.9', allowed)).toBeNull();
    for (const ip of ['10.2.0.0', '10.0.255.255', 'fd00:2::1', '192.168.8.1', '127.0.0.1', '::1']) {
      expect(judgeAddress(ip, allowed)).not.toBeNull();
    }
  });
});

describe('parseCidrList', () => {
  test('takes both families, whole spaces and single addresses', () => {
    expect(parseCidrList([])).toEqual([]);
    expect(parseCidrList(['0.0.0.0/0', '::/0', '10.0.0.1/32', '::1/128'])).toHaveLength(4);
  });

  test.each([
    '10.0.0.0',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8.0',
    '10.0.0.0/8/8',
    ' 10.0.0.0/8',
    '10/8',
    '0x0a000000/8',
    '10.0.0.5/8',
    '192.168.1.128/24',
    'fd00::/129',
    'fd00::1/64',
    'fe80::%eth0/10',
    'localhost/8',
    '',
  ])('names the malformed CIDR %j', (cidr) => {
    expect(() => parseCidrList(['10.0.0.0/8', cidr])).toThrow(`"${cidr}"`);
  });
});
