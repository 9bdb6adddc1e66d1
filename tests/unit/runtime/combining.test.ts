import { createCombining } from '../../../server/src/database/leases';

const open = (underWay: number, together: number) => {
  const batches: number[][] = [];
  const ends: ((error?: Error) => void)[] = [];
  const ask = createCombining<number, number>(
    (batch) =>
      new Promise((resolve, reject) => {
        batches.push([...batch]);
        ends.push((error) => (error ? reject(error) : resolve(batch.map((one) => one * 10))));
      }),
    { underWay, together }
  );
  return { batches, ends, ask };
};

describe('what is combined', () => {
  it('is begun at once, and together with what came while as much was under way as may be', async () => {
    const { batches, ends, ask } = open(2, 3);
    const answers = [1, 2, 3, 4, 5, 6].map(ask);
    expect(batches).toEqual([[1], [2]]);
    ends[0]?.();
    expect(await answers[0]).toBe(10);
    expect(batches).toEqual([[1], [2], [3, 4, 5]]);
    ends[1]?.();
    expect(await answers[1]).toBe(20);
    expect(batches.at(-1)).toEqual([6]);
    ends[2]?.();
    ends[3]?.();
    expect(await Promise.all(answers)).toEqual([10, 20, 30, 40, 50, 60]);
  });

  it('fails with what it was worked on together with, and no other does', async () => {
    const { ends, ask } = open(1, 2);
    const [first, ...others] = [1, 2, 3, 4].map((one) => ask(one).catch((error: Error) => error));
    ends[0]?.();
    expect(await first).toBe(10);
    ends[1]?.(new Error('the database is away'));
    expect(await Promise.all(others.slice(0, 2))).toEqual(
      Array(2).fill(new Error('the database is away'))
    );
    ends[2]?.();
    expect(await others[2]).toBe(40);
  });
});
