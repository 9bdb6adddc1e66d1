import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { type ClientAddress, socketLimit } from '../net/client-address';

/** Failed Basic authentications a minute and address, past which a failing request is a 429. */
export const FAILED_ATTEMPTS_PER_MINUTE = 30;

const limiterOf = (limit: number) => new RateLimiterMemory({ points: limit, duration: 60 });

const secondsLeft = async (limiter: RateLimiterMemory, key: string): Promise<number | null> => {
  try {
    await limiter.consume(key);
    return null;
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    return Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
  }
};

/**
 * Only failures are charged, so requests that authenticate pass however many others share their
 * address. Kept in this process's memory: it slows a guesser down and keeps the log readable; what
 * makes guessing hopeless is the length of the passwords.
 */
export class FailedAttempts {
  private readonly clients: RateLimiterMemory;
  private readonly sockets = new Map<number, RateLimiterMemory>();

  constructor(private readonly points = FAILED_ATTEMPTS_PER_MINUTE) {
    this.clients = limiterOf(points);
  }

  /**
   * Counts one failure, by the client's address and by the connection's own.
   * @returns null, or the whole seconds until this address may fail again.
   */
  async charge(address: ClientAddress): Promise<number | null> {
    const { client, socket } = address;
    const waits = [await secondsLeft(this.clients, client)];
    if (socket !== null) {
      waits.push(await secondsLeft(this.socketsOf(socketLimit(this.points, address)), socket));
    }
    const refused = waits.filter((wait) => wait !== null);
    return refused.length > 0 ? Math.max(...refused) : null;
  }

  private socketsOf(limit: number): RateLimiterMemory {
    const limiter = this.sockets.get(limit) ?? limiterOf(limit);
    this.sockets.set(limit, limiter);
    return limiter;
  }
}
