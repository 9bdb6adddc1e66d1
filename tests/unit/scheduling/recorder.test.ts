import { Recorder } from '../../../server/src/scheduling/recorder';

/** A recorder whose recordings end when the test says so, on a clock that the test moves. */
const slowRecorder = () => {
  let time = 0;
  const ends: (() => void)[] = [];
  const done: boolean[] = [];
  const recorder = new Recorder<number>({
    name: 'work',
    record: () => new Promise<void>((resolve) => ends.push(resolve)),
    logFault: () => undefined,
    onDone: (wasFull) => void done.push(wasFull),
    now: () => time,
  });
  return {
    recorder,
    done,
    recordings: () => ends.length,
    pass: (milliseconds: number) => {
      time += milliseconds;
    },
    async endRecording() {
      for (let tick = 0; tick < 10 && ends.length === 0; tick += 1) await Promise.resolve();
      ends.shift()?.();
      for (let tick = 0; tick < 10; tick += 1) await Promise.resolve();
    },
  };
};

describe('a recorder', () => {
  it('is full while an outcome has waited for long, so that what is claimed outlives its recording', async () => {
    const { recorder, done, pass, endRecording } = slowRecorder();
    expect(recorder.isFull()).toBe(false);
    recorder.add(1);
    recorder.start();
    pass(1_900);
    expect(recorder.isFull()).toBe(false);
    pass(200);
    expect(recorder.isFull()).toBe(true);
    await endRecording();
    expect(recorder.isFull()).toBe(false);
    expect(done).toEqual([true]);
  });

  it('measures from the oldest that is not recorded', async () => {
    const { recorder, pass, endRecording } = slowRecorder();
    recorder.add(1);
    recorder.start();
    // The first batch is under way: this one waits for the next.
    await Promise.resolve();
    pass(1_000);
    recorder.add(2);
    pass(1_500);
    expect(recorder.isFull()).toBe(true);
    await endRecording();
    expect(recorder.isFull()).toBe(false);
    pass(600);
    expect(recorder.isFull()).toBe(true);
    await endRecording();
    expect(recorder.isFull()).toBe(false);
  });

  it.each([
    ['once there is enough for a recording', 200, false],
    ['where fifty wait and nothing is under way', 50, true],
  ])('gathers no longer %s', async (_when, enough, isLast) => {
    const { recorder, recordings, endRecording } = slowRecorder();
    const gathered = async (count: number): Promise<number> => {
      for (let one = 0; one < count; one += 1) recorder.add(one);
      recorder.start();
      if (isLast) recorder.expectNoMore();
      for (let tick = 0; tick < 10; tick += 1) await Promise.resolve();
      return recordings();
    };
    expect(await gathered(1)).toBe(1);
    await endRecording();
    expect(await gathered(enough - 1)).toBe(0);
    expect(await gathered(1)).toBe(1);
    await endRecording();
    expect(recorder.isBusy()).toBe(false);
  });

  it('gathers for a while after a recording, unless an outcome is awaited and nothing else comes', async () => {
    const { recorder, recordings, endRecording } = slowRecorder();
    const settled = async (): Promise<number> => {
      for (let tick = 0; tick < 10; tick += 1) await Promise.resolve();
      return recordings();
    };
    recorder.add(1);
    recorder.start();
    await endRecording();
    recorder.add(2);
    recorder.start();
    recorder.expectNoMore();
    expect(await settled()).toBe(0);
    recorder.add(3, true);
    expect(await settled()).toBe(0);
    recorder.expectNoMore();
    expect(await settled()).toBe(1);
    // What ends while that is recorded has no pause to end, and goes right after it.
    recorder.add(4, true);
    recorder.expectNoMore();
    await endRecording();
    expect(await settled()).toBe(1);
    await endRecording();
    recorder.add(5);
    recorder.start();
    expect(await settled()).toBe(0);
    recorder.hurry();
  });

  it('is full with a thousand outcomes', () => {
    const { recorder } = slowRecorder();
    for (let outcome = 0; outcome < 999; outcome += 1) recorder.add(outcome);
    expect(recorder.isFull()).toBe(false);
    recorder.add(999);
    expect(recorder.isFull()).toBe(true);
  });
});
