import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { isIPv6 } from 'node:net';

const MINUTE = 60;

/** What a limiter said about one request. */
export interface LimitVerdict {
  allowed: boolean;
  /** `RateLimit-Policy`, `RateLimit`, and `Retry-After` where it is refused. */
  headers: Record<string, string>;
}

export interface RateLimits {
  /** Charges a connection, once its signature was found right: a key alone must burn nothing. */
  chargeConnection(connection: number): Promise<LimitVerdict>;
  /** Charges a failed authentication to its address. */
  chargeFailure(address: string): Promise<LimitVerdict>;
  /** Charges a ping to its key and address together: nobody burns it for somebody else. */
  chargePing(connection: number, address: string): Promise<LimitVerdict>;
}

/** An IPv6 customer has a /64 at least; counting single addresses would count nothing. */
export const networkOf = (address: string): string => {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.toLowerCase().split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  const groups = [...left, ...Array<string>(zeros).fill('0'), ...right];
  return groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
};

const verdictOf = (
  name: string,
  quota: number,
  result: RateLimiterRes,
  allowed: boolean
): LimitVerdict => {
  const seconds = Math.max(1, Math.ceil(result.msBeforeNext / 1000));
  return {
    allowed,
    headers: {
      'RateLimit-Policy': `"${name}";q=${quota};w=${MINUTE}`,
      RateLimit: `"${name}";r=${Math.max(0, result.remainingPoints)};t=${seconds}`,
      ...(!allowed && { 'Retry-After': String(seconds) }),
    },
  };
};

const createCharge = (name: string, quota: number) => {
  const limiter = new RateLimiterMemory({ points: quota, duration: MINUTE, keyPrefix: name });
  return async (key: string): Promise<LimitVerdict> => {
    try {
      return verdictOf(name, quota, await limiter.consume(key), true);
    } catch (refused) {
      return verdictOf(name, quota, refused as RateLimiterRes, false);
    }
  };
};

/** Limits of this process; several nodes count each for themselves. */
export const createRateLimits = (options: {
  ratePerMinute: number;
  failedAuthPerMinute: number;
}): RateLimits => {
  const connection = createCharge('connection', options.ratePerMinute);
  const failure = createCharge('authentication', options.failedAuthPerMinute);
  const ping = createCharge('ping', options.ratePerMinute);
  return {
    chargeConnection: (id) => connection(String(id)),
    chargeFailure: (address) => failure(networkOf(address)),
    chargePing: (id, address) => ping(`${id}/${networkOf(address)}`),
  };
};
