import ipaddr from 'ipaddr.js';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

/** Failed Basic authentications a minute and address, past which a failing request is a 429. */
export const FAILED_ATTEMPTS_PER_MINUTE = 30;

/**
 * What failures are counted by: an IPv4 address, or an IPv6 /64, which is what one subscriber has
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

export interface FailedAttempts {
  /**
   * Counts one failure.
   * @returns null, or the whole seconds until this address may fail again.
   */
  charge(ip: string | undefined): Promise<number | null>;
}

/**
 * Only failures are charged, so requests that authenticate pass however many others share their
 * address. Kept in this process's memory: it slows a guesser down and keeps the log readable; what
 * makes guessing hopeless is the length of the passwords.
 */
export const createFailedAttempts = (points = FAILED_ATTEMPTS_PER_MINUTE): FailedAttempts => {
  const limiter = new RateLimiterMemory({ points, duration: 60 });
  return {
    async charge(ip) {
      try {
        await limiter.consume(addressKey(ip));
        return null;
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal;
        return Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
      }
    },
  };
};
