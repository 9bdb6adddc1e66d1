import fc from 'fast-check';
import { bytesInStatement, bytesOf, inParts } from '../../../server/src/database/connection';

describe('parts of a batch', () => {
  it('hold every item once, in order, within both limits but for a lone large one', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(50)),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 60 }),
        (items, count, bytes) => {
          const parts = inParts(items, { count, bytes }, (item) => item);
          expect(parts.flat()).toEqual(items);
          for (const part of parts) {
            expect(part.length).toBeGreaterThan(0);
            expect(part.length).toBeLessThanOrEqual(count);
            const sum = part.reduce((total, item) => total + item, 0);
            if (part.length > 1) expect(sum).toBeLessThanOrEqual(bytes);
          }
        }
      )
    );
  });
});

it('counts bytes, not characters, and what the driver escapes twice', () => {
  expect(bytesOf({ a: 'ß', b: 1, c: null })).toBe(2 + 8 + 8);
  expect(bytesInStatement('{"a":"ß\n"}')).toBe(11 + 5);
});
