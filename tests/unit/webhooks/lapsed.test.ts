import { createLapsedSweep } from '../../../server/src/webhooks/deliveries/store';

const NOW = 1_000_000;

const create = () => {
  const clock = { now: NOW };
  const asked: unknown[] = [];
  const sweep = createLapsedSweep({
    now: () => clock.now,
    async releaseLapsed(webhook, { from, until }) {
      asked.push([webhook, from, until]);
      return 0;
    },
  });
  return { clock, asked, sweep };
};

describe('what a process held that died', () => {
  it('is looked for only where a webhook has more to do than it can', async () => {
    const { asked, sweep } = create();
    await sweep(
      new Map([
        [1, NOW - 20_000],
        [2, NOW - 5000],
        [3, NOW + 5000],
        [4, NOW - 60_000],
      ])
    );
    expect(asked).toEqual([
      [4, NOW - 30_000, NOW - 250],
      [1, NOW - 30_000, NOW - 250],
    ]);
  });

  it('is looked for now and then, each time in what has ended since', async () => {
    const { clock, asked, sweep } = create();
    const due = new Map([[1, 0]]);
    await sweep(due);
    clock.now += 600;
    await sweep(due);
    expect(asked).toHaveLength(1);
    clock.now += 4000;
    await sweep(due);
    expect(asked[1]).toEqual([1, NOW - 2250, NOW + 4350]);
    // The clock has gone back.
    clock.now = NOW - 60_000;
    await sweep(due);
    expect(asked[2]).toEqual([1, NOW - 90_000, NOW - 60_250]);
  });
});
