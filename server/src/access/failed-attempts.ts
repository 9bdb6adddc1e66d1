import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { ClientAddress } from '../net/client-address';

/** Failed Basic authentications a minute and address, past which a failing request is a 429. */
const FAILED_ATTEMPTS_PER_MINUTE = 30;

/** How many times as many failures the connection of a counted proxy may have: its clients share it. */
const SHARED_BY = 10;

/** Failed authentications of the last minute, in this process: it slows guessing, which long secrets make hopeless. */
export class FailedAttempts {
  private readonly limiter: RateLimiterMemory;

  /** @param limit failures a minute and address */
  constructor(limit = FAILED_ATTEMPTS_PER_MINUTE) {
    this.limiter = new RateLimiterMemory({ points: limit * SHARED_BY, duration: 60 });
  }

  /**
   * Counts one failure, by the client's address and by the connection's: unless proxies are counted, clients can forge
   * the address in the header. Returns the whole seconds until this address may fail again, or null.
   */
  async charge({ client, socket, proxiesCounted }: ClientAddress): Promise<number | null> {
    const waits = [await this.secondsLeft(`client ${client}`, SHARED_BY)];
    if (socket !== null) {
      waits.push(await this.secondsLeft(`socket ${socket}`, proxiesCounted ? 1 : SHARED_BY));
    }
    const refused = waits.filter((wait) => wait !== null);
    return refused.length > 0 ? Math.max(...refused) : null;
  }

  private async secondsLeft(key: string, cost: number): Promise<number | null> {
    try {
      await this.limiter.consume(key, cost);
      return null;
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      return Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
    }
  }
}
