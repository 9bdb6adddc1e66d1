import fc from 'fast-check';
import { formatCursor, parseCursor } from '../../../server/src/webhooks/deliveries/log-filter';

const time = fc.integer({ min: 0, max: 8_640_000_000_000_000 });
const place = fc.record({ at: time, id: fc.integer({ min: 0, max: 2_147_483_647 }) });
const searched = fc.record({
  end: place,
  total: fc.integer({ min: 0, max: 10_000 }),
  totalCapped: fc.boolean(),
});

describe('the cursor of the log', () => {
  it('says what was put into it, in letters that an address takes as they are', () => {
    fc.assert(
      fc.property(fc.record({ after: place, searched: fc.option(searched) }), (cursor) => {
        const text = formatCursor(cursor);
        expect(text).toMatch(/^[\w-]+$/);
        expect(parseCursor(text)).toEqual(cursor);
      })
    );
  });

  it('is read from nothing else, and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        const made = parseCursor(Buffer.from(text).toString('base64url'));
        if (made) expect(JSON.parse(text)).toEqual(expect.arrayContaining([made.after.at]));
      })
    );
    for (const numbers of [[], [1], [1, 2, 3], [-1, 2], [1, 2_147_483_648], [1.5, 2], [1, '2']]) {
      expect(parseCursor(Buffer.from(JSON.stringify(numbers)).toString('base64url'))).toBeNull();
    }
  });
});
