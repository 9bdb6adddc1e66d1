import {
  firstOutcome,
  fullOf,
  nextLook,
  roomOf,
} from '../../../server/src/webhooks/rules/recovery';

describe('how the first attempt after a recovery ended', () => {
  const waiting = { status: 'pending', isDue: true } as const;

  it('is not known before there was one', () => {
    expect(firstOutcome(3, { ...waiting, tries: 3 }, [])).toBeNull();
    // Somebody sends it by hand: it is finished, and held.
    expect(firstOutcome(3, { status: 'failed', tries: 3, isDue: true }, [])).toBeNull();
  });

  it('is known by what the delivery has become', () => {
    expect(firstOutcome(3, { status: 'sent', tries: 4, isDue: false }, [])).toBe('sent');
    expect(firstOutcome(3, { ...waiting, tries: 4 }, [])).toBe('failed');
    expect(firstOutcome(3, { status: 'failed', tries: 4, isDue: false }, [])).toBe('failed');
  });

  it('is that of the first, where it had several since', () => {
    const sent = { status: 'sent', tries: 5, isDue: false } as const;
    expect(firstOutcome(3, sent, [false, false, false, false, true])).toBe('failed');
    // Sent, and sent once more by hand.
    expect(firstOutcome(3, sent, [false, false, false, true, false])).toBe('sent');
  });

  it('is a failure where it ended without one, or is gone', () => {
    expect(firstOutcome(3, { status: 'failed', tries: 3, isDue: false }, [])).toBe('failed');
    expect(firstOutcome(3, undefined, [])).toBe('failed');
  });
});

describe('the room of a recovery', () => {
  it('is a hundred, all of one webhook', () => {
    expect(roomOf([7], new Map())).toEqual(new Map([[7, 100]]));
    expect(roomOf([7], new Map([[7, 60]]))).toEqual(new Map([[7, 40]]));
    expect(roomOf([7], new Map([[7, 100]]))).toEqual(new Map());
  });

  it('is shared by webhooks, and one that is slow keeps no other waiting', () => {
    expect(roomOf([1, 2, 3, 4], new Map([[2, 25]]))).toEqual(
      new Map([
        [1, 25],
        [3, 25],
        [4, 25],
      ])
    );
  });

  it('is never more than a hundred in all, whatever is untried of others', () => {
    expect(roomOf([1, 2], new Map([[9, 90]]))).toEqual(new Map([[1, 10]]));
    const many = Array.from({ length: 300 }, (_one, index) => index + 1);
    expect(roomOf(many, new Map()).size).toBe(100);
    expect(roomOf([1], new Map([[9, 100]]))).toEqual(new Map());
  });
});

describe('what a recovery has queued that cannot be sent now', () => {
  it('takes no room from what can', () => {
    expect(roomOf([1, 2], new Map(), new Map([[9, 100]]))).toEqual(
      new Map([
        [1, 50],
        [2, 50],
      ])
    );
    expect(roomOf([1], new Map([[1, 20]]), new Map([[1, 300]]))).toEqual(new Map([[1, 80]]));
  });

  it('is a thousand of one webhook at most', () => {
    expect(roomOf([1, 2], new Map(), new Map([[1, 990]]))).toEqual(
      new Map([
        [1, 10],
        [2, 50],
      ])
    );
    expect(roomOf([1], new Map(), new Map([[1, 1000]]))).toEqual(new Map());
  });

  it('has no place among those that are served where nothing is added', () => {
    const stuck = new Map([
      [1, 1000],
      [2, 999],
      [3, 1001],
    ]);
    expect(fullOf(stuck)).toEqual([1, 3]);
  });
});

describe('when a recovery is looked at again', () => {
  it('is soon while it moves, and less and less often while it does not', () => {
    expect(nextLook(10_000, 10_000)).toBe(10_100);
    expect(nextLook(10_000, 8000)).toBe(10_500);
    expect(nextLook(1_000_000, 0)).toBe(1_005_000);
  });
});
