import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { isIP } from 'node:net';
import dns from 'node:dns';
import { setTimeout as sleep } from 'node:timers/promises';

/** An error whose code the HTTP client makes a cause of failure of. */
export class CodedError extends Error {
  constructor(
    readonly code: string,
    message: string
  ) {
    super(message);
    this.name = 'CodedError';
  }
}

/** How names are resolved, as far as code of the site can choose it, for its own thread only. */
export const namesOf = () => ({ servers: dns.getServers(), order: dns.getDefaultResultOrder() });

export type NameSettings = ReturnType<typeof namesOf>;

/** Takes over what another thread has. */
export const setNames = ({ servers, order }: NameSettings): void => {
  dns.setServers(servers);
  dns.setDefaultResultOrder(order);
};

/** Names of a hosts file, in lower case, with their addresses in the file's order. */
export const parseHosts = (text: string): ReadonlyMap<string, string[]> => {
  const names = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...listed] = line.replace(/#.*$/, '').trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of listed) {
      const key = name.toLowerCase();
      names.set(key, [...(names.get(key) ?? []), address]);
    }
  }
  return names;
};

/** The search list of a resolv.conf: the last `search` or `domain` line counts. */
export const parseSearch = (text: string): string[] => {
  let search: string[] = [];
  for (const line of text.split('\n')) {
    const match = /^\s*(?:search|domain)\s+([^#;]*)/.exec(line);
    if (match?.[1]) search = match[1].trim().split(/\s+/);
  }
  return search.map((domain) => domain.replace(/^\.|\.$/g, '')).filter((domain) => domain !== '');
};

const HOSTS =
  process.platform === 'win32'
    ? path.join(process.env.SystemRoot ?? 'C:\\Windows', 'System32', 'drivers', 'etc', 'hosts')
    : '/etc/hosts';

/** The parsed contents of a file, read again when it has changed; of an empty text if there is none. */
const watchFile = <T>(file: string, parse: (text: string) => T) => {
  const empty = { value: parse(''), version: -1 };
  let known = empty;
  return (): { value: T; version: number } => {
    try {
      // Synchronous on purpose: a lookup must not wait for a thread that another name's DNS holds.
      const version = statSync(file).mtimeMs;
      if (version !== known.version) known = { value: parse(readFileSync(file, 'utf8')), version };
    } catch {
      known = empty;
    }
    return known;
  };
};

/** The machine's settings for names besides DNS. */
const systemNameFiles = () => {
  const hosts = watchFile(HOSTS, parseHosts);
  const resolvConf = watchFile('/etc/resolv.conf', parseSearch);
  return {
    hosts: () => hosts().value,
    search: () => resolvConf().value,
    /** Changes when the name servers may have. */
    version: () => resolvConf().version,
  };
};

type NameFiles = ReturnType<typeof systemNameFiles>;

export interface ResolvedAddress {
  address: string;
  family: number;
}

export type ResolveHost = (name: string) => Promise<ResolvedAddress[]>;

/** One question to a name server waits so long, and is put so often. */
const QUESTION_MS = 1000;
const TRIES = 2;
/** How long a name waits for its turn with the system's resolver. */
const TURN_MS = 500;
/** How long the answer of one family waits for that of the other. */
const OTHER_FAMILY_MS = 300;

const asAddress = (address: string): ResolvedAddress => ({ address, family: isIP(address) });

/** A name that hangs must not hold up the site's stop. */
const delay = (milliseconds: number, signal?: AbortSignal): Promise<void> =>
  sleep(milliseconds, undefined, { ref: false, signal });

/** The addresses of both families, IPv4 first unless Node is configured otherwise. */
const askBoth = async (resolver: dns.promises.Resolver, name: string) => {
  const found = { 4: [] as string[], 6: [] as string[] };
  const questions = [
    resolver.resolve4(name).then((list) => (found[4] = list)),
    resolver.resolve6(name).then((list) => (found[6] = list)),
  ];
  // With one family's addresses at hand, a server that never answers about the other is not waited for.
  const whenOne = Promise.any(questions).then(() => delay(OTHER_FAMILY_MS));
  const settled = Promise.allSettled(questions);
  await Promise.race([settled, whenOne.catch(() => settled)]);
  const order = dns.getDefaultResultOrder() === 'ipv6first' ? [6, 4] : [4, 6];
  const addresses = order.flatMap((family) => found[family as 4 | 6]).map(asAddress);
  if (addresses.length > 0) return addresses;
  const [first] = await settled;
  throw first?.status === 'rejected' ? first.reason : new Error('no address');
};

/** c-ares, with the name servers of the site's `dns.setServers`, else those of the system. */
const nameServers = (files: NameFiles): ResolveHost => {
  const atStart = dns.getServers().join();
  let resolver: dns.promises.Resolver | undefined;
  let key = '';
  return (name) => {
    const servers = dns.getServers();
    const now = `${servers.join()} ${files.version()}`;
    if (!resolver || key !== now) {
      resolver = new dns.promises.Resolver({ timeout: QUESTION_MS, tries: TRIES });
      if (servers.join() !== atStart) resolver.setServers(servers);
      key = now;
    }
    return askBoth(resolver, name);
  };
};

/**
 * `getaddrinfo` knows names that name servers do not (mDNS, LDAP, VPN) but blocks one of libuv's few threads, so one
 * call runs at a time. While a hanging name occupies it, names unknown to the name servers are reported as unknown.
 */
const oneAtATime = (lookup: ResolveHost) => {
  let running: Promise<unknown> | null = null;
  return async (name: string, unknown: unknown): Promise<ResolvedAddress[]> => {
    const until = Date.now() + TURN_MS;
    while (running && Date.now() < until) await Promise.race([running, delay(until - Date.now())]);
    if (running) throw unknown;
    const answer = lookup(name);
    running = answer.catch(() => undefined).finally(() => (running = null));
    return answer;
  };
};

/** The names to ask about, in order: with the search list, as the system's resolver would. */
export const candidates = (host: string, search: readonly string[]): string[] => {
  if (host.endsWith('.')) return [host.replace(/(?<!\.)\.+$/, '')];
  const longer = search.map((domain) => `${host}.${domain}`);
  return host.includes('.') ? [host, ...longer] : [...longer, host];
};

const isUnknown = (error: unknown): boolean =>
  ['ENOTFOUND', 'ENODATA'].includes(String((error as { code?: unknown } | null)?.code));

/**
 * Resolves a name: hosts file, then name servers, then the system. A name whose DNS hangs blocks no other name.
 * @param options.ask asks the name servers; c-ares by default, which holds no thread
 * @param options.lookup the system's resolver, for names that the name servers do not know
 */
export const createSystemResolver = ({
  files = systemNameFiles(),
  ask = nameServers(files),
  lookup = (name) => dns.promises.lookup(name, { all: true, verbatim: true }),
}: { files?: NameFiles; ask?: ResolveHost; lookup?: ResolveHost } = {}): ResolveHost => {
  const lookupInTurn = oneAtATime(lookup);

  return async (host) => {
    const plain = host.toLowerCase().replace(/\.$/, '');
    const listed = files.hosts().get(plain);
    if (listed) return listed.map(asAddress);
    // RFC 6761, 6.3: such names mean this machine and are no matter of name servers.
    if (plain === 'localhost' || plain.endsWith('.localhost')) {
      return ['127.0.0.1', '::1'].map(asAddress);
    }
    let reason: unknown;
    for (const name of candidates(host, files.search())) {
      try {
        return await ask(name);
      } catch (error) {
        reason = error;
        if (!isUnknown(error)) break;
      }
    }
    return lookupInTurn(host, reason);
  };
};

/** The name has no address now. */
export const unresolvable = (): CodedError =>
  new CodedError('ERR_NAME_NOT_RESOLVED', 'The host name could not be resolved.');

/**
 * Bounds a resolver in time and shares one lookup between concurrent requests for a name, so a hanging DNS is asked
 * once. Nothing is cached after the lookup.
 * @throws `unresolvable` for no answer in time, an error or an empty answer
 */
export function createHostResolver({
  timeoutMs,
  resolve = createSystemResolver(),
}: {
  timeoutMs: number;
  resolve?: ResolveHost;
}): ResolveHost {
  const underWay = new Map<string, Promise<ResolvedAddress[]>>();
  const begin = (host: string): Promise<ResolvedAddress[]> => {
    const started = Promise.resolve()
      .then(() => resolve(host))
      .catch(() => [])
      .finally(() => underWay.delete(host));
    underWay.set(host, started);
    return started;
  };

  return async (host) => {
    const ended = new AbortController();
    const late = delay(timeoutMs, ended.signal).catch(() => undefined);
    const addresses = await Promise.race([underWay.get(host) ?? begin(host), late]);
    ended.abort();
    if (!addresses?.length) throw unresolvable();
    return addresses;
  };
}
