import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { type ClientAddress, socketLimit } from '../../net/client-address';

const MINUTE = 60;

/** What a limiter said about one request. */
export interface LimitVerdict {
  allowed: boolean;
  /** `RateLimit-Policy`, `RateLimit`, and `Retry-After` where it is refused. */
  headers: Record<string, string>;
}

export interface RateLimits {
  /**
   * Charges a connection, once its signature was found right: a key alone must burn nothing.
   * @param cost  what the request counts for; one that does not fit costs nothing
   */
  chargeConnection(connection: number, cost?: number): Promise<LimitVerdict>;
  /** Charges a failed authentication to the client's address and to the connection's own. */
  chargeFailure(address: ClientAddress): Promise<LimitVerdict>;
  /** Charges a ping to its key and address together: nobody burns it for somebody else. */
  chargePing(connection: number, address: ClientAddress): Promise<LimitVerdict>;
}

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
  return async (key: string, asked = 1): Promise<LimitVerdict> => {
    // What costs more than there ever is passes where nothing else was sent.
    const cost = Math.min(asked, quota);
    try {
      return verdictOf(name, quota, await limiter.consume(key, cost), true);
    } catch (refused) {
      if (cost === 1) return verdictOf(name, quota, refused as RateLimiterRes, false);
      // What is left is for smaller requests.
      return verdictOf(name, quota, await limiter.reward(key, cost), false);
    }
  };
};

/** Limits of this process; several nodes count each for themselves. */
export const createRateLimits = (options: {
  ratePerMinute: number;
  failedAuthPerMinute: number;
}): RateLimits => {
  const connection = createCharge('connection', options.ratePerMinute);
  const perAddress = options.failedAuthPerMinute;
  const failure = createCharge('authentication', perAddress);
  const sockets = new Map<number, ReturnType<typeof createCharge>>();
  const socketsOf = (limit: number) => {
    const charge = sockets.get(limit) ?? createCharge('authentication', limit);
    sockets.set(limit, charge);
    return charge;
  };
  const ping = createCharge('ping', options.ratePerMinute);
  return {
    chargeConnection: (id, cost) => connection(String(id), cost),
    async chargeFailure(address) {
      const { client, socket } = address;
      const verdict = await failure(client);
      if (socket === null) return verdict;
      const shared = await socketsOf(socketLimit(perAddress, address))(socket);
      return verdict.allowed ? shared : verdict;
    },
    chargePing: (id, { client }) => ping(`${id}/${client}`),
  };
};
