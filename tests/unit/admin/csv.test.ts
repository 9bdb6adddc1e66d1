import { toCsv } from '../../../admin/src/utils/csv';

const line = (cell: string | number | null): string => toCsv(['h'], [[cell]]).split('\r\n')[1];

test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '  =1', '＝1+1', '=HYPERLINK("http://x")'])(
  'no spreadsheet takes %j for a formula',
  (text) => {
    expect(line(text)).toMatch(/^"'/);
  }
);

test('numbers stay numbers, negative ones too', () => {
  expect(line(-5)).toBe('-5');
  expect(line(0)).toBe('0');
});

test('quotes, separators and line breaks stay inside their cell', () => {
  expect(line('a "b", c')).toBe('"a ""b"", c"');
  expect(toCsv(['h'], [['a\nb']])).toBe('\uFEFFh\r\n"a\nb"\r\n');
  expect(line('plain')).toBe('plain');
  expect(line(null)).toBe('');
});
