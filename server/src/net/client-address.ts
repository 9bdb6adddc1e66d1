import ipaddr from 'ipaddr.js';
import type { Context } from 'koa';
import { isRecord } from '../runtime/text';

/** The addresses that a request's failures are counted by. */
export interface ClientAddress {
  /** The client's address as the host reports it: behind a trusted proxy, from the proxy's header. */
  client: string;
  /** The address of the connection itself if it differs: the last proxy, or a client that claims to be one. */
  socket: string | null;
  /** The number of proxies is configured, so that clients cannot forge the header. */
  proxiesCounted: boolean;
}

/** Key for counting failures: the IPv4 address or the IPv6 /64, as one subscriber has 2^64 addresses. */
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
    'config/server trusts a proxy (proxy.koa) without proxy.maxIpsCount: anyone can set ' +
    'X-Forwarded-For, and failed authentications are counted by that address. Set ' +
    'proxy.maxIpsCount to the number of proxies before this site, such as 1.'
  );
};
