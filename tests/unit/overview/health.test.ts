import { bucketStarts, firstIdSince } from '../../../server/src/overview/health';
import { mappedTypes } from '../../../server/src/overview/mapped-types';
import { parseOptions } from '../../../server/src/config/schema';

const HOUR = 3_600_000;

test('the chart covers the last 24 hours in twelve bars', () => {
  const now = Date.UTC(2026, 0, 2);
  const starts = bucketStarts(now);
  expect(starts).toHaveLength(12);
  expect(starts[0]).toBe(now - 24 * HOUR);
  expect(starts[11]).toBe(now - 2 * HOUR);
});

describe('the first delivery since a time', () => {
  /** Rows made at `id * 10`; some ids were deleted. */
  const rows = [5, 6, 9, 10, 11, 40, 41];
  let probes = 0;
  const createdAt = async (id: number): Promise<number | null> => {
    probes += 1;
    const next = rows.find((row) => row >= id);
    return next === undefined ? null : next * 10;
  };

  test.each([
    [0, 5],
    [60, 6],
    [61, 7],
    [400, 12],
    [410, 41],
    [411, 42],
  ])('at %i it begins with id %i or a gap before its row', async (time, expected) => {
    expect(await firstIdSince(createdAt, time, 5, 41)).toBe(expected);
  });

  test('is found in about twenty look-ups among a million', async () => {
    probes = 0;
    await firstIdSince(
      async (id) => {
        probes += 1;
        return id;
      },
      765_432,
      1,
      1_000_000
    );
    expect(probes).toBeLessThanOrEqual(21);
  });
});

test('mapped types say which fields are computed', () => {
  const options = parseOptions({
    sources: {
      contact: { contentType: 'api::lead.lead', fields: { email: 'mail', name: () => 'x' } },
    },
    stock: { contentType: 'api::product.product', sku: 'code', quantity: 'stock' },
  });
  expect(mappedTypes(options)).toEqual([
    {
      purpose: 'source',
      label: 'contact',
      content_type: 'api::lead.lead',
      fields: [
        { name: 'email', attribute: 'mail' },
        { name: 'name', attribute: null },
      ],
    },
    {
      purpose: 'stock',
      label: 'item',
      content_type: 'api::product.product',
      fields: [
        { name: 'sku', attribute: 'code' },
        { name: 'quantity', attribute: 'stock' },
      ],
    },
  ]);
});

test('what is mapped to a part that the site does without is not said', () => {
  const mapped = {
    sources: { contact: { contentType: 'api::lead.lead' } },
    forms: [{ contentType: 'api::inquiry.inquiry', title: 'Inquiry' }],
    stock: { contentType: 'api::product.product', sku: 'code' },
  };
  const purposes = (features: object) =>
    mappedTypes(parseOptions({ ...mapped, features })).map(({ purpose }) => purpose);
  expect(purposes({})).toEqual(['source', 'form', 'stock']);
  expect(purposes({ crm: false })).toEqual(['stock']);
  expect(purposes({ pos: false })).toEqual(['source', 'form']);
});
