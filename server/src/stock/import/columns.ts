import { ITEM_TEXT_COLUMNS } from '../../../../shared/contracts/imports';
import { MAX_COLUMNS, tooManyColumns } from '../../imports/columns';
import { decimalOf } from '../../imports/numbers';
import { createItemInput } from '../inputs';

/** Reads the columns of a CSV file of items. */

/** Where a column's values go. */
export type ItemColumn =
  | { kind: 'text'; key: (typeof ITEM_TEXT_COLUMNS)[number] }
  | { kind: 'low_at' }
  /** What a new item begins with, at a location by its code; null: the default one. */
  | { kind: 'quantity'; location: string | null };

export type ItemHeader = { ok: true; columns: ItemColumn[] } | { ok: false; message: string };

const columnOf = (heading: string): ItemColumn | null => {
  const name = heading
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_');
  const text = ITEM_TEXT_COLUMNS.find((one) => one === name);
  if (text) return { kind: 'text', key: text };
  if (name === 'low_at') return { kind: 'low_at' };
  if (name === 'quantity') return { kind: 'quantity', location: null };
  const at = /^quantity\.(.+)$/i.exec(heading.trim());
  return at?.[1] ? { kind: 'quantity', location: at[1].trim() } : null;
};

const NAMED = 20;

const some = (headings: readonly string[]): string =>
  headings.length <= NAMED
    ? headings.join(', ')
    : `${headings.slice(0, NAMED).join(', ')} and ${headings.length - NAMED} more`;

/** Headings may be spelt `Low at`; `quantity.<code>` is the opening at that location. */
export const readItemHeader = (headings: readonly string[]): ItemHeader => {
  if (headings.length > MAX_COLUMNS) return { ok: false, message: tooManyColumns(headings) };
  const columns = headings.map(columnOf);
  const unknown = headings.filter((_heading, index) => columns[index] === null);
  const possible = [...ITEM_TEXT_COLUMNS, 'low_at', 'quantity', 'quantity.<location code>'].join(
    ', '
  );
  if (unknown.length > 0) {
    return { ok: false, message: `unknown columns: ${some(unknown)}. Possible: ${possible}` };
  }
  const seen = new Set<string>();
  const twice = headings.filter((_heading, index) => {
    const column = JSON.stringify(columns[index]);
    const isKnown = seen.has(column);
    seen.add(column);
    return isKnown;
  });
  if (twice.length > 0) return { ok: false, message: `columns given twice: ${some(twice)}` };
  if (!columns.some((column) => column?.kind === 'text' && column.key === 'sku')) {
    return { ok: false, message: 'there is no column "sku"' };
  }
  return { ok: true, columns: columns as ItemColumn[] };
};

/** A row of the file as items are made of it; what it leaves empty is absent. */
export interface ItemRowInput {
  sku: string;
  gtin?: string;
  name?: string;
  low_at?: number;
  opening: { location?: string; quantity: number }[];
}

/** What spreadsheets make of a long number: its last digits are lost. */
const SHORTENED = /^(?:\d+(?:[.,]\d+)?e[+-]?\d+|0x[\da-f]+)$/i;

export type ReadItemRow = { ok: true; input: ItemRowInput } | { ok: false; message: string };

export const readItemRow = (
  columns: readonly ItemColumn[],
  cells: readonly string[]
): ReadItemRow => {
  if (cells.length > columns.length) {
    return { ok: false, message: `has ${cells.length} cells for ${columns.length} columns` };
  }
  const input: Record<string, unknown> = {};
  const opening: { location?: string; quantity: number }[] = [];
  columns.forEach((column, index) => {
    const cell = (cells[index] ?? '').trim();
    if (cell === '') return;
    if (column.kind === 'text') input[column.key] = cell;
    else if (column.kind === 'low_at') input.low_at = decimalOf(cell);
    else {
      opening.push({
        ...(column.location !== null && { location: column.location }),
        quantity: decimalOf(cell),
      });
    }
  });
  if (input.sku === undefined) return { ok: false, message: 'sku: is missing' };
  if (SHORTENED.test(String(input.gtin))) {
    return { ok: false, message: `gtin: ${String(input.gtin)} must be given with all its digits` };
  }
  const result = createItemInput.safeParse({ ...input, opening });
  if (result.success) return { ok: true, input: { ...input, opening } as ItemRowInput };
  const issues = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  return { ok: false, message: issues.join('; ') };
};
