import { isIP, type LookupFunction } from 'node:net';
import { type AddressJudgement, type CidrList, isLocalName, judgeAddress } from './address';
import { createHostResolver } from './resolve-host';
import type { ResolvedAddress, ResolveHost } from './resolved-address';
import type { RefusalCode } from '../../../shared/contracts/refusals';

/** What the guard thinks of a URL; `reason` is a sentence that is safe to show the owner. */
export type GuardVerdict =
  | { verdict: 'allowed' }
  /** Not a URL that can be posted to at all. */
  | { verdict: 'invalid'; reason: string; code: RefusalCode }
  /** It leads, or might lead, to an address that is not public. */
  | { verdict: 'refused'; reason: string; code: RefusalCode }
  /** The name has no address now. Saving accepts that, delivery fails with `dns`. */
  | { verdict: 'unresolvable'; reason: string };

/** A URL judged by everything but DNS. */
export type UrlInspection =
  | { verdict: 'allowed'; url: URL; localAllowed: boolean }
  | { verdict: 'invalid' | 'refused'; reason: string; code: RefusalCode };

export interface AddressGuard {
  /** For saving: the whole judgement, DNS included. Never rejects. */
  checkUrl(url: string): Promise<GuardVerdict>;
  /** For delivering: all but DNS, which one of `lookups` judges at connect time. Never rejects. */
  inspectUrl(url: string): Promise<UrlInspection>;
  /** For agents. `open` belongs to requests whose inspection said `localAllowed`. */
  lookups: { guarded: LookupFunction; open: LookupFunction };
}

export interface AddressGuardOptions {
  /**
   * Environment, option and hook in one answer, asked again for each URL. A throw counts as no.
   */
  isLocalAllowed: () => boolean | Promise<boolean>;
  allowedCidrs?: CidrList;
  /** For one name; 5,000 by default. */
  dnsTimeoutMs?: number;
  /** The system's resolver by default. */
  resolve?: ResolveHost;
}

/** The error a lookup gives for a refused address. */
export class BlockedAddressError extends Error {
  readonly code = 'ERR_BLOCKED_ADDRESS';
  constructor() {
    super(BLOCKED_NAME);
    this.name = 'BlockedAddressError';
  }
}

const HOW_TO_ALLOW = 'The option webhooks.allowPrivateNetworks can allow them.';
// Neither text tells the address found: a resolver inside a network knows names that the person
// who typed the URL may not.
const BLOCKED_NAME = `The host name leads to an address of this server or of a private network, which is refused. ${HOW_TO_ALLOW}`;
const UNRESOLVABLE = 'The host name could not be resolved.';

/**
 * The one guard for saving, testing and delivering (docs/contract-webhooks.md#private-addresses). A name is refused when any of its addresses is: the connection might
 * take that one.
 */
export function createAddressGuard(options: AddressGuardOptions): AddressGuard {
  const { allowedCidrs = [] } = options;
  const resolve = createHostResolver({
    timeoutMs: options.dnsTimeoutMs ?? 5000,
    resolve: options.resolve,
  });

  const isLocalAllowed = async (): Promise<boolean> => {
    try {
      return (await options.isLocalAllowed()) === true;
    } catch {
      return false;
    }
  };
  const areAllPublic = (addresses: ResolvedAddress[]): boolean =>
    addresses.every(({ address }) => judgeAddress(address, allowedCidrs).ok);

  /** Whether the list allows loopback; then its names are judged by the addresses they have. */
  const loopbackListed = ['127.0.0.1', '::1'].some((ip) => judgeAddress(ip, allowedCidrs).ok);

  /** All that can be said of a host without asking DNS. */
  const judgeHost = ({ hostname }: URL): AddressJudgement => {
    if (isLiteral(hostname)) return judgeAddress(hostname, allowedCidrs);
    return isLocalName(hostname) && !loopbackListed ? { ok: false, reason: 'loopback' } : ALLOWED;
  };

  const inspectUrl = async (text: string): Promise<UrlInspection> => {
    const url = parseUrl(text);
    if (!(url instanceof URL)) return { verdict: 'invalid', ...url };
    const localAllowed = await isLocalAllowed();
    if (!localAllowed) {
      const judgement = judgeHost(url);
      if (!judgement.ok) {
        return { verdict: 'refused', reason: refusedHost(judgement.reason), code: 'url_private' };
      }
    }
    return { verdict: 'allowed', url, localAllowed };
  };

  const checkUrl = async (text: string): Promise<GuardVerdict> => {
    const inspection = await inspectUrl(text);
    if (inspection.verdict !== 'allowed') return inspection;
    if (inspection.localAllowed || isLiteral(inspection.url.hostname))
      return { verdict: 'allowed' };
    try {
      return areAllPublic(await resolve(inspection.url.hostname))
        ? { verdict: 'allowed' }
        : { verdict: 'refused', reason: BLOCKED_NAME, code: 'url_private' };
    } catch {
      return { verdict: 'unresolvable', reason: UNRESOLVABLE };
    }
  };

  const open = createLookup(resolve);
  const guarded = createLookup(async (host) => {
    const addresses = await resolve(host);
    if (!areAllPublic(addresses)) throw new BlockedAddressError();
    return addresses;
  });

  return { checkUrl, inspectUrl, lookups: { guarded, open } };
}

/** The URL, or a sentence that says what is wrong with it. */
function parseUrl(text: unknown): URL | { reason: string; code: RefusalCode } {
  if (typeof text !== 'string' || !URL.canParse(text)) {
    return { reason: 'The address is not a valid URL.', code: 'url_invalid' };
  }
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return { reason: 'The address must start with https:// or http://.', code: 'url_scheme' };
  }
  // Credentials in a URL end up in logs, and `https://good.example@10.0.0.1/` misleads a reader.
  if (url.username !== '' || url.password !== '') {
    return {
      reason: 'The address must not contain a user name or password.',
      code: 'url_credentials',
    };
  }
  return url.hostname === '' ? { reason: 'The address has no host.', code: 'url_invalid' } : url;
}

/** Node connects to a literal without asking any lookup. The URL parser has unified the spelling. */
function isLiteral(hostname: string): boolean {
  return hostname.startsWith('[') || isIP(hostname) !== 0;
}

const ALLOWED: AddressJudgement = { ok: true };

const refusedHost = (reason: string): string =>
  `Addresses of this server or of a private network are refused (${reason}). ${HOW_TO_ALLOW}`;

/** A resolver in the shape that sockets call, with one answer or all, of one family or both. */
function createLookup(resolve: ResolveHost): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const family =
          options.family === 'IPv4' ? 4 : options.family === 'IPv6' ? 6 : options.family;
        const usable = family ? addresses.filter((found) => found.family === family) : addresses;
        const [first] = usable;
        if (!first) callback(noSuchFamily(), '');
        else if (options.all) callback(null, usable);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, '')
    );
  };
}

const noSuchFamily = (): NodeJS.ErrnoException =>
  Object.assign(new Error(UNRESOLVABLE), { code: 'ERR_NAME_NOT_RESOLVED' });
