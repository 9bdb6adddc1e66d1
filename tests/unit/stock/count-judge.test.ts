import type { Tx } from '../../../server/src/database/db';
import { CountJudge } from '../../../server/src/stock/counts';
import { placeKey } from '../../../server/src/stock/ledger';

const MUG = { place: { item: 1, location: 1 } };
const CUP = { place: { item: 2, location: 1 } };
const UNKNOWN = { place: null };

// The database is not asked by what is tested here.
const judgeAfter = (live: [typeof MUG, number][], test: [typeof MUG, number][] = []) => {
  const timesOf = (counts: [typeof MUG, number][]) =>
    new Map(counts.map(([{ place }, at]) => [placeKey(place), at]));
  return new CountJudge({} as Tx, new Map(), { live: timesOf(live), test: timesOf(test) });
};

describe('counts that are judged one after the other', () => {
  it('make older ones stale, and none of the very same time', () => {
    const judge = judgeAfter([[MUG, 50]]);
    expect(judge.judge(49, 'live', [MUG])).toEqual({ accepted: false, stale: [MUG] });
    expect(judge.judge(50, 'live', [MUG])).toEqual({ accepted: true, stale: [] });
    expect(judge.judge(60, 'live', [MUG])).toEqual({ accepted: true, stale: [] });
    expect(judge.judge(55, 'live', [MUG])).toEqual({ accepted: false, stale: [MUG] });
    expect(judge.judge(55, 'live', [MUG, MUG])).toEqual({ accepted: false, stale: [MUG, MUG] });
  });

  it('are accepted where one line is fresh, and then make older ones stale of that line too', () => {
    const judge = judgeAfter([[MUG, 50]]);
    expect(judge.judge(40, 'live', [MUG, CUP])).toEqual({ accepted: true, stale: [MUG] });
    expect(judge.judge(30, 'live', [CUP])).toEqual({ accepted: false, stale: [CUP] });
    // The stale line has not put its own time in place of the newer one.
    expect(judge.judge(45, 'live', [MUG])).toEqual({ accepted: false, stale: [MUG] });
  });

  it('that were refused make nothing stale', () => {
    const judge = judgeAfter([[MUG, 50]]);
    judge.judge(40, 'live', [MUG]);
    expect(judge.judge(50, 'live', [MUG])).toEqual({ accepted: true, stale: [] });
  });

  it('are refused only if every line is older', () => {
    const known: [typeof MUG, number][] = [
      [MUG, 101],
      [CUP, 100],
    ];
    expect(judgeAfter(known).judge(100, 'live', [UNKNOWN, CUP])).toEqual({
      accepted: true,
      stale: [],
    });
    expect(judgeAfter(known).judge(100, 'live', [MUG, UNKNOWN])).toEqual({
      accepted: true,
      stale: [MUG],
    });
    expect(judgeAfter(known).judge(100, 'live', [MUG, MUG])).toEqual({
      accepted: false,
      stale: [MUG, MUG],
    });
  });

  it('of what nobody can have counted yet are fresh', () => {
    const judge = judgeAfter([]);
    expect(judge.judge(10, 'live', [UNKNOWN])).toEqual({ accepted: true, stale: [] });
    expect(judge.judge(5, 'live', [UNKNOWN])).toEqual({ accepted: true, stale: [] });
  });

  it('of test mode go by live ones too, and make none of those stale', () => {
    const judge = judgeAfter([[MUG, 50]], [[CUP, 50]]);
    expect(judge.judge(40, 'test', [MUG])).toEqual({ accepted: false, stale: [MUG] });
    expect(judge.judge(40, 'test', [CUP])).toEqual({ accepted: false, stale: [CUP] });
    expect(judge.judge(40, 'live', [CUP])).toEqual({ accepted: true, stale: [] });
    expect(judge.judge(70, 'test', [MUG])).toEqual({ accepted: true, stale: [] });
    expect(judge.judge(60, 'live', [MUG])).toEqual({ accepted: true, stale: [] });
    expect(judge.judge(65, 'test', [MUG])).toEqual({ accepted: false, stale: [MUG] });
  });
});
