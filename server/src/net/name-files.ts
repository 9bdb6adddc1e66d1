import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { isIP } from 'node:net';

/** A file's text, read again when the file has changed; `''` where there is none. */
const watchFile = (file: string): (() => { text: string; version: number }) => {
  let known = { text: '', version: -1 };
  return () => {
    try {
      // Synchronous on purpose: a lookup must not wait for a thread that another name's DNS holds.
      const version = statSync(file).mtimeMs;
      if (version !== known.version) known = { text: readFileSync(file, 'utf8'), version };
    } catch {
      known = { text: '', version: -1 };
    }
    return known;
  };
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

/** What the machine says of names beside DNS. */
export interface NameFiles {
  hosts(): ReadonlyMap<string, string[]>;
  search(): string[];
  /** Changes when the name servers may have. */
  version(): number;
}

const cached = <T>(
  read: () => { text: string; version: number },
  parse: (text: string) => T
): (() => T) => {
  let version: number | undefined;
  let value: T;
  return () => {
    const now = read();
    if (version !== now.version) {
      value = parse(now.text);
      version = now.version;
    }
    return value;
  };
};

export const systemNameFiles = (): NameFiles => {
  const resolvConf = watchFile('/etc/resolv.conf');
  return {
    hosts: cached(watchFile(HOSTS), parseHosts),
    search: cached(resolvConf, parseSearch),
    version: () => resolvConf().version,
  };
};
