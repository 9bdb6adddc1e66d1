import { bucketStarts } from '../../../server/src/overview/health';
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

test('it ends with the hour that has begun, for figures are kept by the hour', () => {
  const starts = bucketStarts(Date.UTC(2026, 0, 2, 10, 20));
  expect(starts[11]).toBe(Date.UTC(2026, 0, 2, 9));
  expect(starts[0]).toBe(Date.UTC(2026, 0, 1, 11));
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
