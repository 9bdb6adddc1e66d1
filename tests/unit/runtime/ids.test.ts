import fc from 'fast-check';
import { uuidV7 } from '../../../server/src/runtime/ids';

const anyTime = fc.integer({ min: 0, max: 2 ** 48 - 1 });

describe('a delivery id', () => {
  it('is a UUID of version 7 whose first 48 bits are its time', () => {
    fc.assert(
      fc.property(anyTime, fc.uint8Array({ minLength: 10, maxLength: 10 }), (at, random) => {
        const id = uuidV7(at, () => Buffer.from(random));
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
