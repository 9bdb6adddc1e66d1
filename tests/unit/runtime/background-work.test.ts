import { BackgroundWork } from '../../../server/src/runtime/event-loop';

/** Passes that end when they are told to, by their number. */
const open = () => {
  const ends: ((error?: Error) => void)[] = [];
  const failures: unknown[] = [];
  const work = new BackgroundWork({
    detached: (pass) => pass(),
    pass: () =>
      new Promise<void>((resolve, reject) => {
        ends.push((error) => (error ? reject(error) : resolve()));
      }),
    failed: (error) => failures.push(error),
  });
  return { work, ends, failures };
};

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('background work', () => {
  it('makes one more pass for all that woke it during a pass', async () => {
    const { work, ends } = open();
    work.wake();
    work.wake();
    work.wake();
    expect(ends).toHaveLength(1);
    ends[0]?.();
    await settled();
    expect(ends).toHaveLength(2);
    ends[1]?.();
    await settled();
    expect(ends).toHaveLength(2);
    await work.stop();
  });

  it('makes another pass if it was woken during one that failed', async () => {
    const { work, ends, failures } = open();
    work.wake();
    work.wake();
    const error = new Error('away');
    ends[0]?.(error);
    await settled();
    expect(failures).toEqual([error]);
    expect(ends).toHaveLength(2);
    ends[1]?.();
    await work.stop();
  });

  it('leaves the rest of a pass that failed until it is woken again', async () => {
    const { work, ends, failures } = open();
    work.wake();
    ends[0]?.(new Error('away'));
    await settled();
    expect([ends.length, failures.length]).toEqual([1, 1]);
    work.wake();
    expect(ends).toHaveLength(2);
    ends[1]?.();
    await work.stop();
  });

  it('loses no wake at whatever moment of the end of a pass it comes', async () => {
    for (let turns = 0; turns < 10; turns += 1) {
      const { work, ends } = open();
      work.wake();
      ends[0]?.();
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      work.wake();
      await settled();
      expect([turns, ends.length]).toEqual([turns, 2]);
      ends[1]?.();
      await work.stop();
    }
  });

  it('begins no pass once it is stopped, and resolves when the last one has ended', async () => {
    const { work, ends } = open();
    work.wake();
    work.wake();
    let isStopped = false;
    const stop = work.stop().then(() => {
      isStopped = true;
    });
    await settled();
    expect(isStopped).toBe(false);
    ends[0]?.();
    await stop;
    work.wake();
    await settled();
    expect(ends).toHaveLength(1);
  });
});
