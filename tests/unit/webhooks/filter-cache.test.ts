import { FilterCache, matches, storedFilter } from '../../../server/src/webhooks/rules/data-filter';

describe('the cache of filters', () => {
  it('makes each once, as long as it keeps it', () => {
    const make = jest.fn((filter: { n: number }) => filter.n);
    const cache = new FilterCache(make, 1500);
    for (let event = 0; event < 3; event += 1) {
      for (let n = 0; n < 1500; n += 1) expect(cache.get(`{"n":${n}}`, { n })).toBe(n);
    }
    expect(make).toHaveBeenCalledTimes(1500);
  });

  it('forgets the one that was asked the longest ago, and no other', () => {
    const make = jest.fn((text: string) => text.toUpperCase());
    const cache = new FilterCache(make, 3);
    const ask = (...texts: string[]) => texts.map((text) => cache.get(text, text));
    ask('a', 'b', 'c', 'a');
    ask('d');
    make.mockClear();
    expect(ask('a', 'c', 'd')).toEqual(['A', 'C', 'D']);
    expect(make).not.toHaveBeenCalled();
    ask('b');
    expect(make.mock.calls).toEqual([['b']]);
  });

  it('keeps nothing that cannot be made', () => {
    const make = jest.fn(() => {
      throw new Error('no filter');
    });
    const cache = new FilterCache(make, 3);
    expect(() => cache.get('a', 'a')).toThrow('no filter');
    expect(() => cache.get('a', 'a')).toThrow('no filter');
    expect(make).toHaveBeenCalledTimes(2);
  });
});

describe('a stored filter', () => {
  it('is asked for by what its row holds, and made text of by no event', () => {
    const text = '{"required":["vip"]}';
    // Compiled here.
    expect(matches(storedFilter(text)!, { vip: 1 })).toBe(true);
    const read = storedFilter(text)!;
    const stringify = jest.spyOn(JSON, 'stringify');
    try {
      expect(matches(read, { vip: 1 })).toBe(true);
      expect(matches(read, {})).toBe(false);
      expect(stringify).not.toHaveBeenCalled();
    } finally {
      stringify.mockRestore();
    }
  });

  it('is another one once its row holds another text', () => {
    expect(matches(storedFilter('{"required":["a"]}')!, { a: 1 })).toBe(true);
    expect(matches(storedFilter('{"required":["b"]}')!, { a: 1 })).toBe(false);
  });
});
