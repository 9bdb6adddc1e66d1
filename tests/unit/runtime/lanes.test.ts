import { type Laned, Lanes, UNBEGUN } from '../../../server/src/runtime/threads';

interface Work extends Laned {
  id: number;
}
interface Answer {
  ok: boolean;
}

const sleep = (milliseconds: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/** Lanes whose work ends when the test says so. */
const startLanes = (atOnce: number) => {
  const begun: number[] = [];
  const ends = new Map<number, (answer: Answer) => void>();
  const stale = new Set<number>();
  const work = ({ id }: Work) =>
    new Promise<Answer>((resolve) => {
      begun.push(id);
      ends.set(id, resolve);
    });
  const lanes = new Lanes<Work, Answer>(atOnce, work, ({ id }) => stale.has(id));
  let last = 0;
  return {
    begun,
    stale,
    give: (lane: number, { atOnce: most = 2, waitMs = 10_000 } = {}) => {
      last += 1;
      return lanes.run({ id: last, lane, atOnce: most, waitMs });
    },
    /** Ends a piece of work, and waits until others have begun. */
    async end(id: number, ok = true) {
      ends.get(id)?.({ ok });
      await sleep(5);
    },
  };
};

describe('lanes', () => {
  it('begin as much of each as it may, and no more together than may be under way', async () => {
    const { begun, end, give } = startLanes(3);
    for (const lane of [1, 1, 1, 2, 2, 3]) void give(lane);
    expect(begun).toEqual([1, 2, 4]);
    await end(4);
    expect(begun).toEqual([1, 2, 4, 5]);
    await end(1);
    expect(begun).toEqual([1, 2, 4, 5, 3]);
    await end(2);
    expect(begun).toEqual([1, 2, 4, 5, 3, 6]);
  });

  it('go by what each piece says of its lane, which may have less than before', async () => {
    const { begun, end, give } = startLanes(10);
    void give(1, { atOnce: 3 });
    void give(1, { atOnce: 3 });
    void give(1, { atOnce: 1 });
    expect(begun).toEqual([1, 2]);
    await end(1);
    expect(begun).toEqual([1, 2]);
    await end(2);
    expect(begun).toEqual([1, 2, 3]);
  });

  it('give back what has waited too long, and begin none of it', async () => {
    const { begun, end, give } = startLanes(1);
    void give(1);
    const late = give(2, { waitMs: 20 });
    const later = give(3, { waitMs: 40 });
    const patient = give(4, { waitMs: 10_000 });
    expect(await Promise.all([late, later])).toEqual([UNBEGUN, UNBEGUN]);
    await end(1);
    expect(begun).toEqual([1, 4]);
    await end(4);
    expect(await patient).toEqual({ ok: true });
  });

  it('give back each as soon as it has waited too long, whichever came first', async () => {
    const { give } = startLanes(1);
    void give(1);
    const given: string[] = [];
    const back = (name: string, waitMs: number) => give(2, { waitMs }).then(() => given.push(name));
    const long = back('long', 2000);
    await sleep(100);
    const [longer, short] = [back('longer', 2000), back('short', 20)];
    await Promise.race([long, short]);
    expect(given).toEqual(['short']);
    await long;
    // The one that came a moment later is not held for as long again.
    await Promise.race([longer, sleep(1000)]);
    expect(given).toEqual(['short', 'long', 'longer']);
  });

  it('give back what waits behind a piece that ended ill, and leave other lanes alone', async () => {
    const { begun, end, give } = startLanes(2);
    const first = give(1, { atOnce: 1 });
    const [second, third] = [give(1, { atOnce: 1 }), give(1, { atOnce: 1 })];
    void give(2, { atOnce: 1 });
    void give(2, { atOnce: 1 });
    await end(1, false);
    expect(await Promise.all([first, second, third])).toEqual([{ ok: false }, UNBEGUN, UNBEGUN]);
    await end(4);
    expect(begun).toEqual([1, 4, 5]);
  });

  it('begin nothing that has become stale while it waited', async () => {
    const { begun, end, give, stale } = startLanes(1);
    void give(1);
    const [second, third] = [give(1), give(1)];
    stale.add(2);
    await end(1);
    expect(await second).toBe(UNBEGUN);
    expect(begun).toEqual([1, 3]);
    await end(3);
    expect(await third).toEqual({ ok: true });
  });
});
