export type Cell = string | number | null;

/**
 * A cell that no spreadsheet takes for a formula. Text that begins like one, a tab or a line break
 * included, gets an apostrophe in front; numbers stay numbers, negative ones too.
 */
const cellText = (value: Cell): string => {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const safe = /^\s*[=+\-@\t\r\n|%＝＋－＠]/u.test(value) ? `'${value}` : value;
  return /[",;\r\n\t]/.test(safe) || safe.startsWith("'")
    ? `"${safe.replaceAll('"', '""')}"`
    : safe;
};

/** RFC 4180, with a byte order mark so that spreadsheets read it as UTF-8. */
export const toCsv = (header: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  `\uFEFF${[header, ...rows].map((row) => row.map(cellText).join(',')).join('\r\n')}\r\n`;

/** Hands a text, or what the server answered, to the browser as a file. */
export const download = (
  name: string,
  text: string | Blob,
  type = 'text/csv;charset=utf-8'
): void => {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
};
