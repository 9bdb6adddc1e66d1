/** How a value is entered; `other` has parts of its own and is only shown. */
export const ROW_TYPES = ['text', 'number', 'boolean'] as const;
export type RowType = (typeof ROW_TYPES)[number] | 'other';

/** One value of an object, as a row of a form. */
export interface ValueRow {
  key: number;
  name: string;
  type: RowType;
  value: unknown;
}

export type Bag = Record<string, unknown>;

/** The values of an object; none for an empty list, which stands for an empty object too. Null: it has another shape. */
export const bagOf = (value: unknown): Bag | null => {
  if (value === null || value === undefined || value === '') return {};
  if (Array.isArray(value)) return value.length === 0 ? {} : null;
  return typeof value === 'object' ? (value as Bag) : null;
};

const typeOf = (value: unknown): RowType => {
  if (value === null || typeof value === 'string') return 'text';
  if (typeof value === 'number') return 'number';
  return typeof value === 'boolean' ? 'boolean' : 'other';
};

let last = 0;

export const newRow = (name = '', value: unknown = ''): ValueRow => ({
  key: (last += 1),
  name,
  type: typeOf(value),
  value,
});

export const rowsOf = (bag: Bag): ValueRow[] =>
  Object.entries(bag).map(([name, value]) => newRow(name, value));

/** The object that rows stand for. Rows without a name are left out, and so is the second one of two with one name. */
export const valuesOf = (rows: readonly ValueRow[]): Bag => {
  const bag: Bag = {};
  for (const { name, value } of rows) {
    if (name.trim() !== '' && !Object.hasOwn(bag, name.trim())) bag[name.trim()] = value;
  }
  return bag;
};

/** True if another row before this one has its name. */
export const isRepeated = (rows: readonly ValueRow[], row: ValueRow): boolean =>
  row.name.trim() !== '' &&
  rows.find(({ name }) => name.trim() === row.name.trim())?.key !== row.key;

/** The row with a value of another type, which keeps what it can of the old one. */
export const retyped = (row: ValueRow, type: RowType): ValueRow => {
  const text = row.value === null ? '' : String(row.value);
  const number = text.trim() === '' ? NaN : Number(text);
  const values = {
    text,
    number: Number.isFinite(number) ? number : null,
    boolean: text === 'true',
    other: row.value,
  };
  return { ...row, type, value: values[type] };
};

/** Equal, whatever the order of their keys: MySQL has its own. */
export const sameBag = (a: Bag, b: Bag): boolean => {
  const inOrder = (bag: Bag) =>
    JSON.stringify(Object.entries(bag).sort(([x], [y]) => (x < y ? -1 : 1)));
  return inOrder(a) === inOrder(b);
};
