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
        if (made) expect(JSON.parse(text)).toMatchObject(made);
      })
    );
    const after = { at: 1, id: 2 };
    const places = [[1, 2], { at: 1 }, { ...after, at: -1 }, { ...after, at: 1.5 }];
    const ids = [
      { ...after, id: 2_147_483_648 },
      { ...after, id: '2' },
    ];
    for (const other of [
      ...[...places, ...ids].map((place) => ({ after: place, searched: null })),
      ...[[], [1, 2], { after }],
      { after, searched: { end: after, total: -1, totalCapped: false } },
      { after, searched: { end: after, total: 1 } },
    ]) {
      expect(parseCursor(Buffer.from(JSON.stringify(other)).toString('base64url'))).toBeNull();
    }
  });
});
