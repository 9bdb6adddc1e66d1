import ipaddr from 'ipaddr.js';
import type { Context } from 'koa';
import { isRecord } from '../runtime/text';

/** The addresses that a request's failures are counted by. */
export interface ClientAddress {
  /** The client's address as the host tells it: behind a trusted proxy, what the proxy's header says. */
  client: string;
  /** The address of the connection itself if it differs: the last proxy, or a client that claims to be one. */
  socket: string | null;
  /** The site says how many proxies there are, so that a client cannot write the header itself. */
  proxiesCounted: boolean;
}

/**
 * The key for counting failures: an IPv4 address, or an IPv6 /64, which is what one subscriber has
 * (counting single addresses would give each of them 2^64 counters).
 */
export const addressKey = (ip: string | undefined): string => {
  if (!ip || !ipaddr.isValid(ip)) return 'unknown';
  const address = ipaddr.process(ip);
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  return `${address.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
};

export const clientAddress = (ctx: Context): ClientAddress => {
  const client = addressKey(ctx.request.ip);
  const socket = addressKey(ctx.req?.socket?.remoteAddress ?? ctx.request.ip);
  const { maxIpsCount = 0 } = (ctx.app ?? {}) as { maxIpsCount?: number };
  return { client, socket: socket === client ? null : socket, proxiesCounted: maxIpsCount > 0 };
};

/** The fault of `config/server` for counting by address; null if there is none. */
export const proxyWarning = (proxy: unknown): string | null => {
  const { koa, maxIpsCount } = isRecord(proxy) ? proxy : {};
  if (koa !== true || (typeof maxIpsCount === 'number' && maxIpsCount > 0)) return null;
  return (
    'config/server trusts a proxy (proxy.koa) without proxy.maxIpsCount: whoever sends ' +
    'X-Forwarded-For chooses the address that failed authentications are counted by. Set ' +
    'proxy.maxIpsCount to the number of proxies before this site, such as 1.'
  );
};
