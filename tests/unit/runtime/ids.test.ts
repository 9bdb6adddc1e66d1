import fc from 'fast-check';
import { randomDocumentId, uuidV7 } from '../../../server/src/runtime/ids';

const anyTime = fc.integer({ min: 0, max: 2 ** 48 - 1 });

describe('a delivery id', () => {
  it('is a UUID of version 7 whose first 48 bits are its time', () => {
    fc.assert(
      fc.property(anyTime, fc.stringMatching(/^[0-9a-f]{19}$/), (at, random) => {
        const id = uuidV7(at, random);
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(at);
      })
    );
  });

  it('sorts as text in the order of time', () => {
    fc.assert(
      fc.property(anyTime, anyTime, (one, other) => {
        fc.pre(one !== other);
        expect(uuidV7(one) < uuidV7(other)).toBe(one < other);
      })
    );
  });

  it('is another one each time within one millisecond', () => {
    const ids = new Set(Array.from({ length: 10_000 }, () => uuidV7(1_700_000_000_000)));
    expect(ids.size).toBe(10_000);
  });
});

describe('a document id', () => {
  const ids = Array.from({ length: 20_000 }, randomDocumentId);

  it('has the form of the host: a letter, then 23 letters and digits', () => {
    for (const id of ids) expect(id).toMatch(/^[a-z][a-z0-9]{23}$/);
  });

  it('is another one each time, and each place has every letter and digit', () => {
    expect(new Set(ids).size).toBe(ids.length);
    for (let at = 0; at < 24; at += 1) {
      expect(new Set(ids.map((id) => id[at])).size).toBe(at === 0 ? 26 : 36);
    }
  });
});
