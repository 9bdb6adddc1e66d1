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
   * Charges a connection for one request, once its signature was found right: a key alone must burn
   * nothing.
   */
  chargeConnection(connection: number): Promise<LimitVerdict>;
  /**
   * Charges what a request counts for besides, once that is known. Where that does not fit, the
   * request costs nothing, the first times in a minute; to read more of them costs one each.
   */
  chargeRest(connection: number, cost: number): Promise<LimitVerdict>;
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

/** Requests a minute that did not fit, and cost nothing. */
const FREE_MISFITS = 3;

const createCharge = (name: string, quota: number) => {
  const limiter = new RateLimiterMemory({ points: quota, duration: MINUTE, keyPrefix: name });
  const misfits = new RateLimiterMemory({
    points: FREE_MISFITS,
    duration: MINUTE,
    keyPrefix: `${name}-misfits`,
  });
  const isFree = (key: string): Promise<boolean> =>
    misfits.consume(key).then(
      () => true,
      () => false
    );
  return {
    async one(key: string): Promise<LimitVerdict> {
      try {
        return verdictOf(name, quota, await limiter.consume(key), true);
      } catch (refused) {
        return verdictOf(name, quota, refused as RateLimiterRes, false);
      }
    },
    async rest(key: string, asked: number): Promise<LimitVerdict> {
      // What costs more than there ever is passes where nothing else was sent.
      const cost = Math.min(asked, quota - 1);
      try {
        return verdictOf(name, quota, await limiter.consume(key, cost), true);
      } catch {
        // What is left is for smaller requests.
        const back = cost + ((await isFree(key)) ? 1 : 0);
        return verdictOf(name, quota, await limiter.reward(key, back), false);
      }
    },
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
    chargeConnection: (id) => connection.one(String(id)),
    chargeRest: (id, cost) => connection.rest(String(id), cost),
    async chargeFailure(address) {
      const { client, socket } = address;
      const verdict = await failure.one(client);
      if (socket === null) return verdict;
      const shared = await socketsOf(socketLimit(perAddress, address)).one(socket);
      return verdict.allowed ? shared : verdict;
    },
    chargePing: (id, { client }) => ping.one(`${id}/${client}`),
  };
};
