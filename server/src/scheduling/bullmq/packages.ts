import type * as BullMQ from 'bullmq';
import type * as IORedis from 'ioredis';
import { loadOptional } from '../../runtime/optional-package';

/** The optional packages that the engine `bullmq` is made of. */
export interface BullmqPackages {
  Queue: typeof BullMQ.Queue;
  Worker: typeof BullMQ.Worker;
  Redis: typeof IORedis.Redis;
}

/**
 * Loads the packages, which a site installs only for this engine.
 * @throws Error that says what to install; the host then refuses to boot.
 */
export const loadBullmq = async (): Promise<BullmqPackages> => {
  const names = ['bullmq', 'ioredis'] as const;
  const [bullmq, ioredis] = await loadOptional('scheduler.engine is "bullmq"', names);
  const { Queue, Worker } = bullmq as typeof BullMQ;
  const { Redis } = ioredis as typeof IORedis;
  return { Queue, Worker, Redis };
};
