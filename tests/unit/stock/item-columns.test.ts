import { csvLine } from '../../../server/src/runtime/text';
import { readItemHeader, readItemRow } from '../../../server/src/stock/import';

describe('a file of items', () => {
  it('has headings as people spell them, and openings by location', () => {
    expect(readItemHeader(['SKU', ' Low at', 'quantity', 'quantity.North 2'])).toEqual([
      { key: 'sku' },
      { key: 'low_at' },
      { key: 'quantity' },
      { key: 'quantity', location: 'North 2' },
    ]);
  });

  it.each([
    [['name'], /no column "sku"/],
    [['sku', 'price'], /unknown columns: price/],
    [['sku', 'SKU'], /given twice: SKU/],
    [
      ['sku', ...Array.from({ length: 200 }, (_none, index) => `quantity.l${index}`)],
      /201 columns, and at most 200/,
    ],
  ])('the header %j is refused', (headings, message) => {
    expect(() => readItemHeader(headings)).toThrow(message);
  });

  const refusal = (message: unknown) => ({ issue: { line: 2, sku: null, message } });

  it('leaves out what a row leaves empty, and names what is wrong', () => {
    const columns = readItemHeader(['sku', 'name', 'low_at', 'quantity.north']);
    const read = (...cells: string[]) => readItemRow(columns, cells, 2);
    expect(read('A', '', '', '3')).toEqual({
      row: { sku: 'A', opening: [{ location: 'north', quantity: 3 }] },
    });
    expect(read('', 'x')).toEqual(refusal('sku: is missing'));
    expect(read('A', 'x', '1.5')).toEqual(refusal(expect.stringMatching(/^low_at: /)));
    expect(read('A', '', '', 'x')).toEqual(refusal(expect.stringMatching(/^quantity\.north: /)));
    for (const number of ['0x10', '1e3', 'Infinity', '1_000']) {
      expect(read('A', 'x', number)).toHaveProperty('issue');
      expect(read('A', 'x', '', number)).toHaveProperty('issue');
    }
    expect(read('A', 'x', '1', '2', '3')).toEqual(refusal('has 5 cells for 4 columns'));
  });

  it.each(['4.00638E+12', '4,00638e12', '0x10'])('refuses the barcode %s', (gtin) => {
    const columns = readItemHeader(['sku', 'gtin']);
    expect(readItemRow(columns, ['A', gtin], 2)).toEqual(
      refusal(`gtin: ${gtin} must be given with all its digits`)
    );
    expect(readItemRow(columns, ['A', '4006381333931'], 2)).toHaveProperty('row');
  });

  it('is written back with quotation marks where they are needed', () => {
    expect(csvLine([4, 'a,b', 'say "x"', 'two\nlines', 'plain'])).toBe(
      '4,"a,b","say ""x""","two\nlines",plain\r\n'
    );
  });
});
