import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Cidr = [Address, number];

/** CIDR ranges that were checked by `parseCidrList`. */
export type CidrList = readonly Cidr[];

const ranges = (table: Record<string, string[]>): Record<string, Cidr[]> =>
  Object.fromEntries(
    Object.entries(table).map(([reason, list]) => [reason, list.map((it) => ipaddr.parseCIDR(it))])
  );

/**
 * IPv4 ranges that are not globally reachable unicast, by IANA's registry. All of 192.0.0.0/24: its two reachable
 * anycast addresses lead to the own gateway. 168.63.129.16 is public, but inside Azure it is a service of the host.
 */
const REFUSED_IPV4 = ranges({
  'this network': ['0.0.0.0/8'],
  'private network': ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
  'shared address space': ['100.64.0.0/10'],
  loopback: ['127.0.0.0/8'],
  'cloud metadata': ['168.63.129.16/32'],
  'link-local': ['169.254.0.0/16'],
  'protocol assignments': ['192.0.0.0/24'],
  documentation: ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'],
  '6to4 relay': ['192.88.99.0/24'],
  benchmarking: ['198.18.0.0/15'],
  multicast: ['224.0.0.0/4'],
  reserved: ['240.0.0.0/4'],
});

/**
 * Ranges named only for their reason: all IPv6 outside 2000::/3 is refused anyway. 2001::/23 is refused as a whole
 * (Teredo is unwrapped before): its reachable parts are anycast infrastructure and identifiers such as ORCHID.
 */
const REFUSED_IPV6 = ranges({
  unspecified: ['::/128'],
  loopback: ['::1/128'],
  'IPv4-compatible': ['::/96'],
  'IPv4-translated': ['::ffff:0:0:0/96'],
  'local NAT64': ['64:ff9b:1::/48'],
  'discard-only': ['100::/64'],
  'dummy prefix': ['100:0:0:1::/64'],
  ORCHID: ['2001:10::/28', '2001:20::/28'],
  'protocol assignments': ['2001::/23'],
  documentation: ['2001:db8::/32', '3fff::/20'],
  'segment routing': ['5f00::/16'],
  'private network': ['fc00::/7'],
  'link-local': ['fe80::/10'],
  'site-local': ['fec0::/10'],
  multicast: ['ff00::/8'],
});

const GLOBAL_UNICAST_IPV6 = ipaddr.parseCIDR('2000::/3');
const MAPPED = ipaddr.parseCIDR('::ffff:0:0/96');
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96');
const SIX_TO_FOUR = ipaddr.parseCIDR('2002::/16');
const TEREDO = ipaddr.parseCIDR('2001::/32');

/** Parses a URL, or null. Not `URL.canParse`: in Node 20 it sometimes refuses letters such as ü after many calls. */
export const urlOf = (text: string): URL | null => {
  try {
    return new URL(text);
  } catch {
    return null;
  }
};

/** `ipaddr.match` throws when the families differ. */
function within(address: Address, [base, bits]: Cidr): boolean {
  return address.kind() === base.kind() && address.match(base, bits);
}

/** Parses any address spelling a URL host may have (short, decimal, octal, hex IPv4; IPv6 with brackets), or null. */
function parseAddress(text: string): Address | null {
  if (isIP(text) !== 0) return ipaddr.parse(text);
  // Only what the WHATWG URL parser could take for a number: it is the parser that the HTTP client
  // uses, so its reading is the one that counts (`010.1` is 8.0.0.1 to it).
  const hostname = /^[0-9a-fx.]+$/i.test(text) ? urlOf(`http://${text}/`)?.hostname : undefined;
  return hostname !== undefined && isIP(hostname) === 4 ? ipaddr.parse(hostname) : null;
}

/** The IPv4 addresses that an IPv6 address leads to; empty if it carries none. */
function embeddedIPv4(address: ipaddr.IPv6): ipaddr.IPv4[] {
  const bytes = address.toByteArray();
  if (within(address, MAPPED) || within(address, NAT64)) return [new ipaddr.IPv4(bytes.slice(12))];
  if (within(address, SIX_TO_FOUR)) return [new ipaddr.IPv4(bytes.slice(2, 6))];
  if (within(address, TEREDO)) {
    // The relay's server in clear, the client's address with every bit inverted.
    const client = bytes.slice(12).map((byte) => byte ^ 0xff);
    return [new ipaddr.IPv4(bytes.slice(4, 8)), new ipaddr.IPv4(client)];
  }
  return [];
}

function judge(address: Address, allowed: CidrList): string | null {
  if (allowed.some((cidr) => within(address, cidr))) return null;
  if (address.kind() === 'ipv4') return ipaddr.subnetMatch(address, REFUSED_IPV4, '') || null;
  const inner = embeddedIPv4(address as ipaddr.IPv6);
  if (inner.length > 0) {
    return inner.map((ipv4) => judge(ipv4, allowed)).find((reason) => reason !== null) ?? null;
  }
  const isUnicast = within(address, GLOBAL_UNICAST_IPV6);
  return ipaddr.subnetMatch(address, REFUSED_IPV6, isUnicast ? '' : 'reserved') || null;
}

/**
 * Judges one IP address as a target (docs/contract-webhooks.md#private-addresses). Only globally reachable unicast
 * passes; embedded IPv4 (mapped, NAT64, 6to4, Teredo) is extracted and judged. Unreadable addresses are refused, and
 * those with a zone id too unless the list allows them.
 * @param ip an address in any spelling, with or without brackets
 * @param allowed ranges the site allows besides the public ones
 * @returns why it is refused, as a short phrase that is safe to show; null if it passes
 */
export function judgeAddress(ip: string, allowed: CidrList = []): string | null {
  const bare = /^\[.*\]$/.test(ip) ? ip.slice(1, -1) : ip;
  const [text = '', zone] = bare.split('%', 2);
  const address = parseAddress(text);
  if (!address || (bare !== ip && address.kind() === 'ipv4')) return 'not an address';
  if (zone !== undefined && !allowed.some((cidr) => within(address, cidr))) return 'link-local';
  return judge(address, allowed);
}

/** Names of this machine (RFC 6761, 6.3; hosts files of Debian and Red Hat), whatever a resolver says today. */
const LOCAL_NAMES =
  /^(?:.+\.)?(?:localhost|localhost[46]?\.localdomain[46]?|localhost[46]|ip6-(?:localhost|loopback|localnet|allnodes|allrouters|mcastprefix)|loopback)$/;

/** True if a host, as the WHATWG URL parser normalizes it, names this machine itself, whatever DNS says. */
export function isLocalName(hostname: string): boolean {
  return LOCAL_NAMES.test(hostname.replace(/(?<!\.)\.+$/, ''));
}

function parseCidr(text: string): Cidr {
  const malformed = (why: string) => new Error(`"${String(text)}" is not a CIDR: ${why}`);
  const [, base = '', length = ''] = /^([^/%]+)\/(\d{1,3})$/.exec(String(text)) ?? [];
  if (isIP(base) === 0) throw malformed('expected an address and a length, such as 10.0.0.0/8');
  const address = ipaddr.parse(base);
  const bits = Number(length);
  const bytes = address.toByteArray();
  if (bits > bytes.length * 8) throw malformed(`the length is at most ${bytes.length * 8}`);
  const family = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6;
  const network = family.networkAddressFromCIDR(`${base}/${bits}`);
  if (network.toString() !== address.toString()) {
    throw malformed(`the address has bits set beyond the length ${bits}`);
  }
  // Mapped addresses are judged as the IPv4 they carry, so such a range is kept as IPv4 too.
  if (within(address, MAPPED) && bits >= 96) return [new ipaddr.IPv4(bytes.slice(12)), bits - 96];
  return [address, bits];
}

/**
 * Checks a list in `webhooks.allowPrivateNetworks` (docs/private-addresses.md); throws an Error naming the first bad
 * CIDR. Host bits are refused, not rounded: `10.0.0.5/8` more likely means one host than 16 million.
 */
export const parseCidrList = (list: readonly string[]): CidrList => list.map(parseCidr);
