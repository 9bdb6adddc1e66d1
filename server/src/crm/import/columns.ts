import { CONTACT_NUMBER_COLUMNS, CONTACT_TEXT_COLUMNS } from '../../../../shared/contracts/imports';
import { columnName, decimalOf, type Header, readColumns } from '../../imports/read-csv';
import { INPUTS } from '../resources/schemas';

type Input = Record<string, unknown>;

/** The target of a column's values: a key of the contact, one of its bags, or its tags. */
export type Column =
  | { kind: 'text'; key: string }
  | { kind: 'number'; key: string }
  | { kind: 'bag'; key: 'fields' | 'address'; name: string }
  | { kind: 'tags' };

const columnOf = (heading: string): Column | null => {
  const name = columnName(heading);
  if (name === 'tags') return { kind: 'tags' };
  if ((CONTACT_TEXT_COLUMNS as readonly string[]).includes(name))
    return { kind: 'text', key: name };
  if ((CONTACT_NUMBER_COLUMNS as readonly string[]).includes(name))
    return { kind: 'number', key: name };
  const bag = /^(fields|address)\.(.+)$/i.exec(heading.trim());
  if (!bag?.[1] || !bag[2]) return null;
  return { kind: 'bag', key: bag[1].toLowerCase() as 'fields' | 'address', name: bag[2].trim() };
};

/** Headings may be spelt `First Name`; custom fields are `fields.<name>`. */
export const readHeader = (headings: readonly string[]): Header<Column> =>
  readColumns(headings, columnOf, {
    possible: [
      ...CONTACT_TEXT_COLUMNS,
      ...CONTACT_NUMBER_COLUMNS,
      'tags',
      'address.<name>',
      'fields.<name>',
    ],
    required: 'email',
  });

export interface ImportRow {
  line: number;
  email: string;
  /** As REST takes a contact, without what the file leaves empty. */
  input: Input;
  tags: string[];
}

type ReadRow = { ok: true; row: ImportRow } | { ok: false; email: string | null; message: string };

/** As many as REST takes. */
const MAX_TAGS = 1000;

const splitTags = (cell: string): string[] =>
  cell
    .split(/[;,|]/)
    .map((tag) => tag.trim())
    .filter(Boolean);

const collect = (columns: readonly Column[], cells: readonly string[]) => {
  const input: Input = {};
  const bags: Record<'fields' | 'address', [string, string][]> = { fields: [], address: [] };
  let tags: string[] = [];
  columns.forEach((column, index) => {
    const cell = (cells[index] ?? '').trim();
    if (cell === '') return;
    switch (column.kind) {
      case 'text':
        input[column.key] = cell;
        break;
      case 'number':
        input[column.key] = decimalOf(cell);
        break;
      case 'tags':
        tags = splitTags(cell);
        break;
      case 'bag':
        bags[column.key].push([column.name, cell]);
    }
  });
  for (const key of ['fields', 'address'] as const) {
    if (bags[key].length > 0) input[key] = Object.fromEntries(bags[key]);
  }
  return { input, tags: [...new Set(tags)] };
};

export const readRow = (
  columns: readonly Column[],
  cells: readonly string[],
  line: number
): ReadRow => {
  const { input, tags } = collect(columns, cells);
  const email = typeof input.email === 'string' ? input.email : null;
  if (cells.length > columns.length) {
    return { ok: false, email, message: `has ${cells.length} cells for ${columns.length} columns` };
  }
  if (!email) return { ok: false, email, message: 'email: is missing' };
  const result = INPUTS.contact.update.safeParse(input);
  if (!result.success) {
    const issues = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    return { ok: false, email, message: issues.join('; ') };
  }
  if (tags.length > MAX_TAGS) {
    return { ok: false, email, message: `tags: are more than ${MAX_TAGS}` };
  }
  for (const name of tags) {
    const [issue] = INPUTS.tag.create.safeParse({ name }).error?.issues ?? [];
    if (issue) return { ok: false, email, message: `tags: ${issue.message}` };
  }
  return { ok: true, row: { line, email, input: result.data, tags } };
};
