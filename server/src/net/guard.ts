import { isIP, type LookupFunction } from 'node:net';
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import type { RefusalCode } from '../../../shared/contracts/refusals';
import { type CidrList, isLocalName, judgeAddress, urlOf } from './address';
import {
  CodedError,
  createHostResolver,
  type ResolvedAddress,
  type ResolveHost,
  unresolvable,
} from './resolver';

/** `invalid`: not a URL to post to. `refused`: may lead to a non-public address. `reason` may be shown to the owner. */
interface Refusal {
  verdict: 'invalid' | 'refused';
  reason: string;
  code: RefusalCode;
}

/** `unresolvable`: the name has no address now. Saving accepts that, delivery fails with `dns`. */
type GuardVerdict = { verdict: 'allowed' | 'unresolvable' } | Refusal;

/** A URL judged by everything but DNS. */
type UrlInspection = { verdict: 'allowed'; url: URL; localAllowed: boolean } | Refusal;

export interface AddressGuardOptions {
  /** Combines environment, option and hook; called for each URL. A throw means no, and so does a missing function. */
  isLocalAllowed?: () => boolean | Promise<boolean>;
  allowedCidrs?: CidrList;
  /** For one name; 5,000 by default. */
  dnsTimeoutMs?: number;
  /** The system's resolver by default. */
  resolve?: ResolveHost;
}

const HOW_TO_ALLOW = 'The option webhooks.allowPrivateNetworks can allow them.';
// Neither text tells the address found: a resolver inside a network knows names that the person
// who typed the URL may not.
const BLOCKED_NAME = `The host name leads to an address of this server or of a private network, which is refused. ${HOW_TO_ALLOW}`;

/** The guard of docs/contract-webhooks.md#private-addresses. A name is refused if any of its addresses is. */
export function createAddressGuard(options: AddressGuardOptions) {
  const { allowedCidrs = [] } = options;
  const resolve = createHostResolver({
    timeoutMs: options.dnsTimeoutMs ?? 5000,
    resolve: options.resolve,
  });

  const areAllPublic = (addresses: ResolvedAddress[]): boolean =>
    addresses.every(({ address }) => judgeAddress(address, allowedCidrs) === null);

  /** If the list allows loopback, its names are judged by their addresses. */
  const loopbackListed = ['127.0.0.1', '::1'].some((ip) => judgeAddress(ip, allowedCidrs) === null);

  /**
   * For deliveries: checks all but DNS, which one of `lookups` judges at connect time. Never rejects.
   * @param isOpen whether private addresses are allowed; determined by default
   */
  const inspectUrl = async (text: string, isOpen?: boolean): Promise<UrlInspection> => {
    const url = parseUrl(text);
    if (!(url instanceof URL)) return { verdict: 'invalid', ...url };
    let localAllowed = false;
    try {
      localAllowed = (isOpen ?? (await options.isLocalAllowed?.())) === true;
    } catch {
      // Counts as no.
    }
    const allowed = { verdict: 'allowed', url, localAllowed } as const;
    if (localAllowed) return allowed;
    // All checks of a host without DNS.
    const { hostname } = url;
    const ofName = !loopbackListed && isLocalName(hostname) ? 'loopback' : null;
    const reason = isLiteral(hostname) ? judgeAddress(hostname, allowedCidrs) : ofName;
    if (reason === null) return allowed;
    return {
      verdict: 'refused',
      reason: `Addresses of this server or of a private network are refused (${reason}). ${HOW_TO_ALLOW}`,
      code: 'url_private',
    };
  };

  /** For saving: the whole judgement, DNS included. Never rejects. */
  const checkUrl = async (text: string): Promise<GuardVerdict> => {
    const inspection = await inspectUrl(text);
    if (inspection.verdict !== 'allowed') return inspection;
    const { localAllowed, url } = inspection;
    if (localAllowed || isLiteral(url.hostname)) return { verdict: 'allowed' };
    try {
      return areAllPublic(await resolve(url.hostname))
        ? { verdict: 'allowed' }
        : { verdict: 'refused', reason: BLOCKED_NAME, code: 'url_private' };
    } catch {
      return { verdict: 'unresolvable' };
    }
  };

  const open = createLookup(resolve);
  const guarded = createLookup(async (host) => {
    const addresses = await resolve(host);
    if (!areAllPublic(addresses)) throw new CodedError('ERR_BLOCKED_ADDRESS', BLOCKED_NAME);
    return addresses;
  });

  /** For agents. `open` belongs to requests whose inspection said `localAllowed`. */
  const lookups = { guarded, open };
  return { checkUrl, inspectUrl, lookups };
}

export type AddressGuard = ReturnType<typeof createAddressGuard>;

/** The URL, or a sentence about what is wrong with it. */
function parseUrl(text: unknown): URL | { reason: string; code: RefusalCode } {
  const url = typeof text === 'string' ? urlOf(text) : null;
  if (!url) return { reason: 'The address is not a valid URL.', code: 'url_invalid' };
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

/** A resolver in the shape that sockets call, with one answer or all, of one family or both. */
function createLookup(resolve: ResolveHost): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const family =
          options.family === 'IPv4' ? 4 : options.family === 'IPv6' ? 6 : options.family;
        const usable = family ? addresses.filter((found) => found.family === family) : addresses;
        const [first] = usable;
        if (!first) callback(unresolvable(), '');
        else if (options.all) callback(null, usable);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, '')
    );
  };
}

/** `unknown`: the host's default, and the system does not say whether anybody chose it. */
export type GivenNodeEnv = { given: string | null } | 'unknown';

const HOST_DEFAULT = 'development';

/** The `NODE_ENV` of environment or `.env`: before plugins load, the host sets `development` if there is none. */
export function givenNodeEnv(sources = systemSources): GivenNodeEnv {
  const { current, atStart, envFile } = sources;
  if (current !== HOST_DEFAULT) return { given: current || null };
  if (envFile().NODE_ENV === HOST_DEFAULT) return { given: HOST_DEFAULT };
  const started = atStart();
  if (started === null) return 'unknown';
  return { given: started.NODE_ENV === HOST_DEFAULT ? HOST_DEFAULT : null };
}

const readOrNull = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};

const systemSources = {
  get current(): string | undefined {
    return process.env.NODE_ENV;
  },
  /** The environment that the process was started with; null if the system does not tell. */
  atStart: (): NodeJS.Dict<string> | null => {
    // `name=value`, each ended by NUL: what Linux keeps of a process's first environment.
    const text = readOrNull('/proc/self/environ');
    return text === null ? null : { NODE_ENV: /(?:^|\0)NODE_ENV=([^\0]*)/.exec(text)?.[1] };
  },
  /** The site's `.env`, which the host reads; empty if there is none. */
  envFile: (): NodeJS.Dict<string> => parseEnv(readOrNull(process.env.ENV_PATH || '.env') ?? ''),
};

export type NodeEnvSources = typeof systemSources;

export interface PrivateAddressPolicy {
  open: boolean;
  why: string;
}

export interface PrivateAddressFacts {
  option: boolean | readonly string[];
  nodeEnv: GivenNodeEnv;
  /** The site runs under `strapi develop`. */
  develop: boolean;
}

/** Setting one of these means that the site runs on a developer's machine. */
const LOCAL_ENVIRONMENTS = new Set(['development', 'local']);
const OPTION = 'webhooks.allowPrivateNetworks';

/** Decides if private addresses are open (docs/contract-webhooks.md#private-addresses); unset is no development. */
export function judgePrivateAddresses(facts: PrivateAddressFacts): PrivateAddressPolicy {
  const { option, nodeEnv, develop } = facts;
  if (option === true) return { open: true, why: `${OPTION} is true` };
  if (develop) return { open: true, why: 'the site runs under strapi develop' };
  const given = nodeEnv === 'unknown' ? null : nodeEnv.given;
  if (given !== null && LOCAL_ENVIRONMENTS.has(given)) {
    return { open: true, why: `NODE_ENV is set to ${given}` };
  }
  const environment =
    nodeEnv === 'unknown'
      ? 'this system does not tell whether anybody set NODE_ENV'
      : `NODE_ENV is ${given === null ? 'not set' : `set to ${given}`}`;
  if (option !== false && option.length > 0) {
    return { open: false, why: `${environment}; ${OPTION} allows ${option.join(', ')}` };
  }
  return { open: false, why: `${environment}; ${OPTION} can allow some` };
}

const HOOK = 'service_crm_webhook_allow_local';

/** The boot log line; `hookSays` is the current result of the hook's handlers, null without handlers. */
export const describePrivateAddresses = (
  { open, why }: PrivateAddressPolicy,
  hookSays: boolean | null
): string => {
  const reasons =
    hookSays === null ? why : `${why}; ${HOOK}, asked each time, says ${hookSays ? 'yes' : 'no'}`;
  return `private addresses are ${(hookSays ?? open) ? 'open' : 'refused'} (${reasons})`;
};
