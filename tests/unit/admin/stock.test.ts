import { choicesOf, guess, problemsOf } from '../../../admin/src/pages/imports/columns';
import { scaleOf } from '../../../admin/src/pages/stock/chart-scale';
import { lineProblems, quantityProblems, withItems } from '../../../admin/src/pages/stock/lines';
import { emptyDraft, targetOf } from '../../../admin/src/pages/mapping/draft';
import { readAll, renameColumns } from '../../../admin/src/utils/csv-reader';

const cup = { id: 1, sku: 'CUP', name: null };
const mug = { id: 2, sku: 'MUG', name: 'Mug' };

describe('a CSV file that the browser reads', () => {
  test('has quotation marks, line breaks and any of three marks between its cells', () => {
    expect(readAll('\uFEFFa;b\r\n"1;\n""x""";2\n\n;\n')).toEqual([
      ['a', 'b'],
      ['1;\n"x"', '2'],
      ['', ''],
    ]);
    expect(readAll('a\tb\n1\t2')).toEqual([
      ['a', 'b'],
      ['1', '2'],
    ]);
    expect(readAll('')).toEqual([]);
  });

  const renamed = async (text: string, names: (string | null)[]) =>
    (await renameColumns(new Blob([text]), names)).text();

  test('gets other headings, and the rest of it stays as it was, to the byte', async () => {
    const rest = '1,"a ""b"""\r\n\r\n2,é\r\n';
    expect(await renamed(`\uFEFFx,y\r\n${rest}`, ['sku', 'name'])).toBe(`sku,name\n${rest}`);
  });

  test('is refused where it is not UTF-8', async () => {
    const latin = new Blob([new Uint8Array([0x61, 0x0a, 0xe9, 0x0a])]);
    await expect(renameColumns(latin, ['name'])).rejects.toMatchObject({ name: 'TypeError' });
  });

  test('loses the columns that are left out, and keeps its lines', async () => {
    const text = 'x;"y\nz";w\n1;"a\nb";c\n\n2;d;e;f\n';
    expect(await renamed(text, ['sku', null, 'na;me'])).toBe('sku;"na;me"\n\n1;c\n\n2;e;f\n');
  });
});

describe('the columns of a file', () => {
  test('are guessed from their headings', () => {
    expect(guess('items', ' Low-At ')).toBe('low_at');
    expect(guess('items', 'EAN')).toBe('gtin');
    expect(guess('items', 'quantity.North')).toBe('quantity.North');
    expect(guess('items', 'fields.size')).toBeNull();
    expect(guess('contacts', 'E-Mail')).toBe('email');
    expect(guess('contacts', 'fields.size')).toBe('fields.size');
    expect(guess('contacts', 'size')).toBeNull();
  });

  test('may be what the site has', () => {
    expect(choicesOf('items', 'x', ['north'])).toEqual(
      expect.arrayContaining(['sku', 'quantity', 'quantity.north'])
    );
    expect(choicesOf('contacts', 'Size', [])).toContain('fields.Size');
    expect(choicesOf('contacts', ' ', []).filter((one) => one.startsWith('fields.'))).toEqual([]);
  });

  test('need the one that says which record it is, once', () => {
    expect(problemsOf('items', ['sku', null])).toEqual({});
    expect(problemsOf('items', ['name'])).toEqual({ required: 'sku' });
    expect(problemsOf('contacts', ['email', 'tags', 'tags'])).toEqual({ twice: 'tags' });
  });
});

describe('the lines of a count', () => {
  const lines = [
    { item: cup, quantity: ' ' },
    { item: mug, quantity: '3' },
  ];

  test('have an item once', () => {
    expect(withItems(lines, [mug, { ...mug, id: 3 }]).map(({ item }) => item.id)).toEqual([
      1, 2, 3,
    ]);
  });

  test('are told what is wrong with them by their place among those that were sent', () => {
    expect(lineProblems(lines, 'counts', { 'counts.0.item': 'is archived' })).toEqual([
      undefined,
      'is archived',
    ]);
    expect(quantityProblems(lines, 'counts', 4, 'no')).toEqual({ 'counts.0.quantity': 'no' });
    expect(quantityProblems(lines, 'counts', 3, 'no')).toEqual({});
  });
});

describe('what an unknown value means', () => {
  const times = { first_at: '2030-01-01T00:00:00Z', last_at: '2030-01-01T00:00:00Z' };
  const waits = { records: 1, by_kind: { sale: 1, refund: 0, inventory: 0 }, pieces: 1 };
  const unknown = { kind: 'gtin' as const, value: '400', ...waits, ...times };

  test('is nothing until somebody says it', () => {
    const draft = emptyDraft(unknown);
    expect(targetOf(draft)).toBeNull();
    expect(targetOf({ ...draft, means: 'item' })).toBeNull();
    expect(targetOf({ ...draft, means: 'create' })).toBeNull();
    expect(targetOf({ ...draft, means: 'location' })).toBeNull();
  });

  test('is an item, a new one with the value as its barcode, or nothing', () => {
    const draft = emptyDraft(unknown);
    expect(targetOf({ ...draft, means: 'item', item: mug })).toEqual({ item: 2 });
    expect(targetOf({ ...draft, means: 'item', typed: ' MUG ' })).toEqual({ item: 'MUG' });
    expect(targetOf({ ...draft, means: 'create', sku: 'NEW' })).toEqual({
      create: { sku: 'NEW', gtin: '400', name: null },
    });
    expect(targetOf({ ...draft, means: 'ignore' })).toEqual({ ignore: true });
  });
});

describe('the line of a level', () => {
  const at = (second: number) => new Date(second * 1000).toISOString();

  test('keeps its height until the next point, and goes on until now', () => {
    const { line, xOf, yOf } = scaleOf(
      [
        { at: at(0), quantity: 40 },
        { at: at(50), quantity: 10 },
      ],
      100_000
    );
    const round = (value: number) => Math.round(value * 10) / 10;
    expect(line).toBe(
      `M${round(xOf(0))} ${round(yOf(40))} H${round(xOf(50_000))} V${round(yOf(10))} H${round(xOf(100_000))}`
    );
    expect(yOf(10)).toBeGreaterThan(yOf(40));
  });

  test('has lines across at round numbers, with zero among them and all of it between', () => {
    for (const [low, high] of [
      [0, 0],
      [-7, 49],
      [980, 1020],
      [-3, -1],
    ] as const) {
      const { ticks } = scaleOf(
        [
          { at: at(0), quantity: low },
          { at: at(1), quantity: high },
        ],
        2000
      );
      expect(ticks).toContain(0);
      expect(ticks.length).toBeLessThanOrEqual(7);
      expect(Math.min(...ticks)).toBeLessThanOrEqual(low);
      expect(Math.max(...ticks)).toBeGreaterThanOrEqual(high);
    }
  });
});
