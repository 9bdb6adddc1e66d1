import type * as BullMQ from 'bullmq';
import type * as IORedis from 'ioredis';
import { errorText } from '../../runtime/error-text';

/** The optional peer packages that the engine `bullmq` is made of. */
export interface BullmqPackages {
  Queue: typeof BullMQ.Queue;
  Worker: typeof BullMQ.Worker;
  Redis: typeof IORedis.Redis;
}

const isMissing = (error: unknown): boolean =>
  ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(
    String((error as { code?: unknown } | null)?.code)
  );

/**
 * Loads the packages, which a site installs only for this engine.
 * @throws Error that says what to install; the host then refuses to boot.
 */
export const loadBullmq = async (): Promise<BullmqPackages> => {
  try {
    const [{ Queue, Worker }, { Redis }] = await Promise.all([import('bullmq'), import('ioredis')]);
    return { Queue, Worker, Redis };
  } catch (error) {
    const why = isMissing(error)
      ? 'are not installed'
      : `could not be loaded (${errorText(error)})`;
    throw new Error(
      `The plugin switchboard: scheduler.engine is "bullmq", and its packages ${why}. Run: npm install bullmq ioredis`,
      { cause: error }
    );
  }
};
