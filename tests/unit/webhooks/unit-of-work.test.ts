import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from '../../../server/src/app';
import { type Changes, UnitOfWork, UnitsOfWork } from '../../../server/src/webhooks/unit-of-work';

const app = {
  db: {
    inTransaction: () => true,
    async unitOfWork<T>(work: () => Promise<T>, publish: () => Promise<void>): Promise<T> {
      const result = await work();
      await publish();
      return result;
    },
  },
} as unknown as App;

class Write extends UnitOfWork<string, true> {
  readonly published: string[] = [];

  protected async publishSome(type: string, changes: Changes<true>): Promise<void> {
    for (const [id] of changes) this.published.push(`${type} ${id}`);
  }
}

describe('a unit of work', () => {
  const writes = new UnitsOfWork<Write>();

  /** A write that notes its change only after a while, as one does that first reads. */
  const slowWrite = (id: string, after = async (): Promise<void> => {}) =>
    writes.tracked?.include(async () => {
      await sleep(5);
      writes.tracked?.changesOf('contact').set(id, true);
      await after();
    });

  const run = async (work: () => void | Promise<void>): Promise<string[]> => {
    const write = new Write(app);
    await writes.enter(write, [], () => write.run(async () => work()));
    return write.published;
  };

  test('publishes what a write changes that was begun in it, and that nobody waits for', async () => {
    const published = await run(() => {
      void slowWrite('1');
      void slowWrite('2');
    });
    expect(published).toEqual(['contact 1', 'contact 2']);
  });

  test('waits for what those begin in turn', async () => {
    const published = await run(() => {
      void slowWrite('1', async () => void slowWrite('2'));
    });
    expect(published).toEqual(['contact 1', 'contact 2']);
  });

  test('is no worse off for one of them that fails', async () => {
    const refused = async (): Promise<never> => {
      throw new Error('refused');
    };
    let reason: unknown;
    const published = await run(() => {
      slowWrite('1', refused)?.catch((error: unknown) => (reason = error));
      void slowWrite('2');
    });
    expect(published).toEqual(['contact 1', 'contact 2']);
    expect(reason).toEqual(new Error('refused'));
  });
});
