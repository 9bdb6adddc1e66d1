import { heldTooLong, type HeldThen } from '../../soak/lib/held';

const held = (at: number, owner: string, until: number): HeldThen => ({
  at,
  leases: new Map([['one', { owner, until }]]),
});

const tooLong = (finishedAt: number, ...snapshots: HeldThen[]) =>
  heldTooLong(snapshots, new Map([['one', finishedAt]]), 15_000).map(({ ms }) => ms);

describe('what was held at a kill', () => {
  it('is late where it was finished late, or never', () => {
    const then = held(1000, 'killed', 9000);
    expect(tooLong(16_000, then)).toEqual([]);
    expect(tooLong(16_001, then)).toEqual([15_001]);
    expect(heldTooLong([then], new Map(), 15_000)).toHaveLength(1);
  });

  it('is not late where somebody else took it in time', () => {
    expect(tooLong(40_000, held(1000, 'killed', 9000), held(12_000, 'other', 20_000))).toEqual([
      28_000,
    ]);
    expect(tooLong(40_000, held(1000, 'killed', 9000), held(20_000, 'other', 28_000))).toEqual([
      39_000, 20_000,
    ]);
  });

  it('is not meant where its holder lived on', () => {
    expect(tooLong(30_000, held(1000, 'alive', 9000), held(6000, 'alive', 13_000))).toEqual([
      24_000,
    ]);
  });
});
