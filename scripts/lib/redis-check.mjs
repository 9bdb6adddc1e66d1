import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const PACKAGES = ['bullmq', 'ioredis'];
const TIMEOUT_MS = 3000;

const isInstalled = (name) => {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
};

/** Without what it may hold of a password. */
const placeOf = (url) => {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || 6379}`;
};

/** Why the Redis at an address cannot be used; undefined if it answers. */
const obstacle = async (url) => {
  const { Redis } = await import('ioredis');
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let why;
  // Its error about the connection says more than the errors of its commands.
  client.on('error', (error) => (why ??= error.code || error.message));
  try {
    await client.connect();
    await client.ping();
    return undefined;
  } catch (error) {
    return why ?? error.message;
  } finally {
    // One that has ended would begin a timer.
    if (client.status !== 'end') client.disconnect();
  }
};

/**
 * Throws with a message for a person where the engine `bullmq` could not run here: its packages are
 * not installed, or no Redis answers.
 * @param {string} url  a `redis://` or `rediss://` address
 */
export const requireRedis = async (url) => {
  const missing = PACKAGES.filter((name) => !isInstalled(name));
  if (missing.length > 0) {
    throw new Error(
      `--engine bullmq needs packages that are not installed: ${missing.join(', ')}. ` +
        `Run: npm install --no-save ${missing.join(' ')}`
    );
  }
  const why = await obstacle(url);
  if (why) {
    throw new Error(
      `--engine bullmq needs a Redis, and ${placeOf(url)} does not answer as one (${why}). ` +
        'Start one (redis-server), or name another: ' +
        'REDIS_URL=redis://host:6379 npm start -- --engine bullmq'
    );
  }
};
