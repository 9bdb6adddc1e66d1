import type { ResolvedAddress, ResolveHost } from './resolved-address';
import { createSystemResolver } from './resolver';

/** The name has no address now. */
export class UnresolvableError extends Error {
  readonly code = 'ERR_NAME_NOT_RESOLVED';
  constructor() {
    super('The host name could not be resolved.');
    this.name = 'UnresolvableError';
  }
}

/**
 * Wraps a resolver so that an answer is bounded in time and simultaneous questions for one name
 * share a lookup: however many deliveries go to a name whose DNS hangs, it is asked about once.
 * Nothing is cached beyond the lookup.
 *
 * @throws UnresolvableError for no answer in time, an error or an empty answer
 */
export function createHostResolver(options: {
  timeoutMs: number;
  resolve?: ResolveHost;
}): ResolveHost {
  const { timeoutMs, resolve = createSystemResolver() } = options;
  const underWay = new Map<string, Promise<ResolvedAddress[]>>();

  const resolveShared = (host: string): Promise<ResolvedAddress[]> => {
    const running = underWay.get(host);
    if (running) return running;
    const started = Promise.resolve()
      .then(() => resolve(host))
      .finally(() => underWay.delete(host));
    underWay.set(host, started);
    return started;
  };

  return (host) =>
    new Promise((done, fail) => {
      const timer = setTimeout(() => fail(new UnresolvableError()), timeoutMs);
      // A name that hangs must not hold up the site's stop.
      timer.unref();
      resolveShared(host)
        .then(
          (addresses) => (addresses.length > 0 ? done(addresses) : fail(new UnresolvableError())),
          () => fail(new UnresolvableError())
        )
        .finally(() => clearTimeout(timer));
    });
}
