/** Reads CSV text as the server's importer does: RFC 4180, with a comma, a semicolon or a tab. */

const BOM = '\uFEFF';

/** Spreadsheets of some countries write semicolons, and some programs tabs. */
export const delimiterOf = (text: string): string => {
  const [line = ''] = text.replace(BOM, '').split(/\r?\n/, 1);
  const count = (mark: string): number => line.split(mark).length;
  return [',', ';', '\t'].reduce((best, mark) => (count(mark) > count(best) ? mark : best));
};

export interface CsvRecord {
  cells: string[];
  /** The beginning of the next record, in characters. */
  next: number;
}

/** The record that begins at a place; of an empty line, one empty cell. */
export const readRecord = (text: string, start: number, delimiter: string): CsvRecord => {
  const cells: string[] = [];
  let cell = '';
  let quoted = false;
  let at = start;
  for (; at < text.length; at += 1) {
    const mark = text[at];
    if (quoted) {
      if (mark !== '"') cell += mark;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else quoted = false;
    } else if (mark === '"' && cell === '') quoted = true;
    else if (mark === delimiter) {
      cells.push(cell);
      cell = '';
    } else if (mark === '\n' || mark === '\r') {
      at += mark === '\r' && text[at + 1] === '\n' ? 2 : 1;
      return { cells: [...cells, cell], next: at };
    } else cell += mark;
  }
  return { cells: [...cells, cell], next: at };
};

/** Every record of a text that is not too large to be held, without empty lines. */
export const readAll = (text: string): string[][] => {
  const delimiter = delimiterOf(text);
  const records: string[][] = [];
  let at = text.startsWith(BOM) ? 1 : 0;
  while (at < text.length) {
    const { cells, next } = readRecord(text, at, delimiter);
    if (cells.length > 1 || cells[0] !== '') records.push(cells);
    at = next;
  }
  return records;
};

const cellText = (value: string, delimiter: string): string =>
  /["\r\n]/.test(value) || value.includes(delimiter) ? `"${value.replaceAll('"', '""')}"` : value;

const lineOf = (cells: readonly string[], delimiter: string): string =>
  `${cells.map((cell) => cellText(cell, delimiter)).join(delimiter)}\n`;

/**
 * A file with other headings, and without the columns that have none: the server takes only names that it
 * knows. Lines keep their numbers, so that a fault is found in the original file.
 * @param names  by column; null leaves the column out
 * @throws TypeError if the file is not UTF-8: letters would be lost
 */
export const renameColumns = async (
  file: Blob,
  names: readonly (string | null)[]
): Promise<Blob> => {
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
    await file.arrayBuffer()
  );
  const delimiter = delimiterOf(text);
  const begin = text.startsWith(BOM) ? 1 : 0;
  const header = readRecord(text, begin, delimiter);
  const kept = <T>(cells: readonly T[]): T[] =>
    cells.filter((_cell, column) => names[column] !== null);
  const linesOf = (from: number, to: number): number => text.slice(from, to).split('\n').length - 1;
  const heading = kept(names).map(String);
  // A heading over several lines is one line now; the others are made up for.
  const lost = Math.max(0, linesOf(begin, header.next) - 1);
  const parts = [lineOf(heading, delimiter), '\n'.repeat(lost)];
  if (names.every((name) => name !== null)) {
    return new Blob([...parts, text.slice(header.next)], { type: 'text/csv' });
  }
  let at = header.next;
  while (at < text.length) {
    const { cells, next } = readRecord(text, at, delimiter);
    const isEmpty = cells.length === 1 && cells[0] === '';
    parts.push(isEmpty ? '\n' : lineOf(kept(cells), delimiter));
    at = next;
  }
  return new Blob(parts, { type: 'text/csv' });
};
