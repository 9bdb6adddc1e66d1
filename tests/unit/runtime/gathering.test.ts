import { createGathering } from '../../../server/src/runtime/event-loop';

describe('gathering', () => {
  it('works together on what comes in one turn, and on what comes while others are worked on', async () => {
    const batches: number[][] = [];
    let letGo = (): void => {};
    const gone = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const gather = createGathering<number>(async (batch) => {
      batches.push([...batch]);
      if (batches.length === 1) await gone;
    });
    const first = [gather(1), gather(2)];
    await new Promise((resolve) => setTimeout(resolve, 5));
    const later = [gather(3)];
    await new Promise((resolve) => setTimeout(resolve, 5));
    later.push(gather(4));
    letGo();
    await Promise.all([...first, ...later]);
    expect(batches).toEqual([
      [1, 2],
      [3, 4],
    ]);
    await gather(5);
    expect(batches.at(-1)).toEqual([5]);
  });

  it('tells whoever is of a batch that failed, and goes on', async () => {
    let failures = 1;
    const gather = createGathering<number>(async () => {
      failures -= 1;
      if (failures >= 0) throw new Error('away');
    });
    const answers = await Promise.allSettled([gather(1), gather(2)]);
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(gather(3)).resolves.toBeUndefined();
  });

  it('works on no more together than its limit, and gives each its output', async () => {
    const batches: number[][] = [];
    const gather = createGathering<number, number>(
      async (inputs) => {
        batches.push([...inputs]);
        return inputs.map((value) => value * 2);
      },
      { limit: 3 }
    );
    expect(await Promise.all([1, 2, 3, 4].map(gather))).toEqual([2, 4, 6, 8]);
    expect(await gather(5)).toBe(10);
    expect(batches).toEqual([[1, 2, 3], [4], [5]]);
  });

  it('one that fails does not fail its neighbours, and a batch that throws ends nobody’s waiting for ever', async () => {
    let broken = false;
    const gather = createGathering<number, number>(
      async (inputs) => {
        if (broken) throw new Error('gone');
        if (inputs.includes(2)) throw new Error('two');
        return inputs;
      },
      { isShared: (error) => (error as Error).message === 'gone' }
    );
    const results = await Promise.allSettled([1, 2, 3].map(gather));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    broken = true;
    await expect(Promise.all([gather(1), gather(2)])).rejects.toThrow('gone');
    broken = false;
    expect(await gather(1)).toBe(1);
  });
});
