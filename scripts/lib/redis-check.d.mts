/** Types of `redis-check.mjs` for the tests. */
export const requireRedis: (url: string) => Promise<void>;
