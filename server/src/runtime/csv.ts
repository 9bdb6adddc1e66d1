const cellOf = (value: string): string =>
  /[",\r\n]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value;

/** A line of a CSV file (RFC 4180), with its end. */
export const csvLine = (cells: readonly (string | number)[]): string =>
  `${cells.map((cell) => cellOf(String(cell))).join(',')}\r\n`;

/** A text as no spreadsheet takes it for a formula: one that begins like it gets an apostrophe in front. */
export const noFormula = (text: string): string => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
