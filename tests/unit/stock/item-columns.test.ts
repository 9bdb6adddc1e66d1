import { csvLine } from '../../../server/src/runtime/text';
import { readItemHeader, readItemRow } from '../../../server/src/stock/import';

const columnsOf = (headings: string[]) => {
  const header = readItemHeader(headings);
  if (!header.ok) throw new Error(header.message);
  return header.columns;
};

describe('a file of items', () => {
  it('has headings as people spell them, and openings by location', () => {
    expect(columnsOf(['SKU', ' Low at', 'quantity', 'quantity.North 2'])).toEqual([
      { kind: 'text', key: 'sku' },
      { kind: 'low_at' },
      { kind: 'quantity', location: null },
      { kind: 'quantity', location: 'North 2' },
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
    expect(readItemHeader(headings)).toEqual({
      ok: false,
      message: expect.stringMatching(message),
    });
  });

  it('leaves out what a row leaves empty, and names what is wrong', () => {
    const columns = columnsOf(['sku', 'name', 'low_at', 'quantity.north']);
    expect(readItemRow(columns, ['A', '', '', '3'])).toEqual({
      ok: true,
      input: { sku: 'A', opening: [{ location: 'north', quantity: 3 }] },
    });
    expect(readItemRow(columns, ['', 'x'])).toMatchObject({ message: 'sku: is missing' });
    expect(readItemRow(columns, ['A', 'x', '1.5'])).toMatchObject({
      message: expect.stringMatching(/^low_at: /),
    });
    for (const number of ['0x10', '1e3', 'Infinity', '1_000']) {
      expect(readItemRow(columns, ['A', 'x', number])).toMatchObject({ ok: false });
      expect(readItemRow(columns, ['A', 'x', '', number])).toMatchObject({ ok: false });
    }
    expect(readItemRow(columns, ['A', 'x', '1', '2', '3'])).toMatchObject({
      message: 'has 5 cells for 4 columns',
    });
  });

  it.each(['4.00638E+12', '4,00638e12', '0x10'])('refuses the barcode %s', (gtin) => {
    const columns = columnsOf(['sku', 'gtin']);
    expect(readItemRow(columns, ['A', gtin])).toEqual({
      ok: false,
      message: `gtin: ${gtin} must be given with all its digits`,
    });
    expect(readItemRow(columns, ['A', '4006381333931'])).toMatchObject({ ok: true });
  });

  it('is written back with quotation marks where they are needed', () => {
    expect(csvLine([4, 'a,b', 'say "x"', 'two\nlines', 'plain'])).toBe(
      '4,"a,b","say ""x""","two\nlines",plain\r\n'
    );
  });
});
