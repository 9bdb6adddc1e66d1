import type { RedisServer } from '../../support/redis';

export interface RedisWatch {
  /** The most memory that Redis used, in bytes. */
  mostBytes(): number;
  stop(): void;
}

const EVERY_MS = 500;

/** Asks Redis again and again how much memory it uses; one that is away uses none. */
export const watchRedis = (redis: RedisServer): RedisWatch => {
  let most = 0;
  const timer = setInterval(() => {
    redis
      .call('INFO', 'memory')
      .then((text) => {
        most = Math.max(most, Number(/used_memory:(\d+)/.exec(String(text))?.[1] ?? 0));
      })
      .catch(() => {});
  }, EVERY_MS);
  return { mostBytes: () => most, stop: () => clearInterval(timer) };
};
