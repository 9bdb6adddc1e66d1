import dns from 'node:dns';
import { isIP } from 'node:net';
import { type NameFiles, systemNameFiles } from './name-files';
import type { ResolvedAddress, ResolveHost } from './resolved-address';

/** One question to a name server waits so long, and is put so often. */
const QUESTION_MS = 1000;
const TRIES = 2;
/** How long a name waits for its turn with the system's resolver. */
const TURN_MS = 500;
/** How long the answer of one family waits for that of the other. */
const OTHER_FAMILY_MS = 300;

type Ask = (name: string) => Promise<ResolvedAddress[]>;

export interface SystemResolverOptions {
  files?: NameFiles;
  /** Asks the name servers; c-ares, which holds no thread, by default. */
  ask?: Ask;
  /** The system's own resolver, for what the name servers do not know. */
  lookup?: Ask;
}

const asAddress = (address: string): ResolvedAddress => ({ address, family: isIP(address) });

const delay = (milliseconds: number): Promise<void> =>
  new Promise((done) => {
    setTimeout(done, milliseconds).unref();
  });

/** The addresses of both families, IPv4 first unless the site's Node was told otherwise. */
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
const nameServers = (files: NameFiles): Ask => {
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
 * `getaddrinfo` knows names that no name server does (mDNS, LDAP, a VPN's), and holds one of libuv's
 * few threads until it answers. One at a time: files and everybody else's lookups need the others.
 * Where a name that hangs holds it, a name that no server knew is told as such.
 */
const oneAtATime = (lookup: Ask) => {
  let running: Promise<unknown> | null = null;
  return async (name: string, unknown: unknown): Promise<ResolvedAddress[]> => {
    const until = Date.now() + TURN_MS;
    while (running && Date.now() < until) {
      await Promise.race([running, delay(until - Date.now())]);
    }
    if (running) throw unknown;
    const mine = lookup(name);
    running = mine.catch(() => undefined).finally(() => (running = null));
    return mine;
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
 * Every address of a name: the hosts file, then the name servers, then the system's own resolver.
 * A name whose DNS hangs holds nothing that another name needs.
 */
export const createSystemResolver = (options: SystemResolverOptions = {}): ResolveHost => {
  const files = options.files ?? systemNameFiles();
  const ask = options.ask ?? nameServers(files);
  const lookup = oneAtATime(
    options.lookup ?? ((name) => dns.promises.lookup(name, { all: true, verbatim: true }))
  );

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
    return lookup(host, reason);
  };
};
