import type * as Events from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Threads } from '../../../server/src/runtime/threads';

interface FakeWorker extends Events.EventEmitter {
  posted: { work: [number, string][] }[];
}

const mockWorkers: FakeWorker[] = [];

jest.mock('node:worker_threads', () => {
  const { EventEmitter: Emitter } = jest.requireActual<typeof Events>('node:events');
  class Worker extends Emitter {
    posted: unknown[] = [];
    constructor() {
      super();
      mockWorkers.push(this as unknown as FakeWorker);
    }
    postMessage(message: unknown): void {
      this.posted.push(message);
    }
    ref(): void {}
    unref(): void {}
    terminate(): void {
      this.emit('exit');
    }
  }
  return { Worker, parentPort: null };
});

describe('threads', () => {
  const start = () => {
    mockWorkers.length = 0;
    const options = { file: '', workerData: null, settings: () => ({}), died: () => {} };
    return new Threads<string, string>(1, options);
  };
  const [first, second] = [() => mockWorkers[0], () => mockWorkers[1]];

  it('answers null for what a thread had when it died, and gives the rest to the next one', async () => {
    const threads = start();
    const had = threads.run('had');
    await nextTurn();
    const waiting = threads.run('waiting');
    first()?.emit('exit');
    await expect(had).resolves.toBeNull();
    await nextTurn();
    expect(second()?.posted).toEqual([{ work: [[2, 'waiting']], settings: {} }]);
    second()?.emit('message', [[2, 'done']]);
    await expect(waiting).resolves.toBe('done');
  });

  it('hands over to an idle thread at once, and what follows in the same turn together', async () => {
    const threads = start();
    const all = ['first', 'second', 'third'].map((one) => threads.run(one));
    expect(first()?.posted).toEqual([{ work: [[1, 'first']], settings: {} }]);
    await nextTurn();
    expect(first()?.posted.slice(1)).toEqual([
      {
        work: [
          [2, 'second'],
          [3, 'third'],
        ],
      },
    ]);
    first()?.emit('message', [
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
    await expect(Promise.all(all)).resolves.toEqual(['a', 'b', 'c']);
  });

  it('answers null for what could not be handed over, and goes on', async () => {
    const threads = start();
    const worker = first()!;
    const post = jest.spyOn(worker as never as { postMessage(): void }, 'postMessage');
    post.mockImplementation(() => {
      throw new Error('no thread');
    });
    await expect(threads.run('lost')).resolves.toBeNull();
    post.mockRestore();
    const next = threads.run('next');
    expect(worker.posted).toEqual([{ work: [[2, 'next']], settings: {} }]);
    worker.emit('message', [[2, 'done']]);
    await expect(next).resolves.toBe('done');
  });

  it('starts no thread once they were ended', async () => {
    const threads = start();
    const all = [threads.run('had'), threads.run('waiting')];
    threads.end();
    await expect(Promise.all(all)).resolves.toEqual([null, null]);
    await expect(threads.run('late')).resolves.toBeNull();
    await nextTurn();
    expect(mockWorkers).toHaveLength(1);
    expect(first()?.posted).toHaveLength(1);
  });
});
