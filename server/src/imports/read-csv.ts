import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { type CsvError, type Options, parse } from 'csv-parse';
import { parse as parseText } from 'csv-parse/sync';
import { IMPORT_COLUMNS_MAX } from '../../../shared/contracts/imports';
import { fieldError } from '../http/validation';
import { noFormula } from '../runtime/text';

const NEWLINE = 0x0a;

/** How many bytes the character has that begins with this one; 0: none begins with it. */
const lengthOf = (lead: number): number =>
  lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;

/** The beginning of an incomplete character, at most three bytes before the end. */
const wholeEnd = (bytes: Buffer): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const at = bytes.length - back;
    const length = lengthOf(bytes[at] ?? 0);
    if (length > 0) return length > back ? at : bytes.length;
  }
  return bytes.length;
};

/** The bytes of a file. @throws ValidationError (400) that names the first line which is not UTF-8 */
async function* checked(source: AsyncIterable<Buffer | string>): AsyncGenerator<Buffer> {
  let line = 1;
  let rest = Buffer.alloc(0);
  const refused = () =>
    fieldError('file', `line ${line} is not UTF-8; save the file as UTF-8 (in Excel: “CSV UTF-8”)`);
  for await (const chunk of source) {
    const given = Buffer.from(chunk as Buffer);
    const bytes = rest.length > 0 ? Buffer.concat([rest, given]) : given;
    const end = wholeEnd(bytes);
    const whole = bytes.subarray(0, end);
    const isGood = isUtf8(whole);
    for (let start = 0; ;) {
      const newline = whole.indexOf(NEWLINE, start);
      const next = newline < 0 ? whole.length : newline + 1;
      if (!isGood && !isUtf8(whole.subarray(start, next))) throw refused();
      if (newline < 0) break;
      line += 1;
      start = next;
    }
    rest = Buffer.from(bytes.subarray(end));
    yield given;
  }
  if (rest.length > 0) throw refused();
}

const QUOTE = 0x22;
const BLANK = new Set([NEWLINE, 0x0d]);

/**
 * Reads a whole file. @returns how many rows it has; an estimate, if its quotation marks are wrong
 * @throws ValidationError (400) that names the first line which is not UTF-8
 */
export const countRows = async (name: string): Promise<number> => {
  let [rows, isQuoted, isInRow] = [0, false, false];
  for await (const chunk of checked(createReadStream(name))) {
    for (const byte of chunk) {
      if (byte === QUOTE) isQuoted = !isQuoted;
      const isEnd = !isQuoted && BLANK.has(byte);
      if (isEnd && isInRow) rows += 1;
      isInRow = !isEnd;
    }
  }
  // Without the header, and with a last row that has no end.
  return Math.max(0, rows - (isInRow ? 0 : 1));
};

/** One record of a file and the line on which it begins; or why there is none. */
export type CsvRecord = { line: number; cells: string[] } | { line: number; fault: string };

/** In a longer record a quotation mark was never closed. */
const MAX_RECORD = 1024 * 1024;
const NOT_CLOSED = 'a quote is not closed';

/** Spreadsheets of some countries write semicolons, and some programs tabs. */
const delimiterOf = (start: string): string => {
  const [line = ''] = start.replace(/^\uFEFF/, '').split(/\r?\n/);
  const count = (mark: string): number => line.split(mark).length;
  return [',', ';', '\t'].reduce((best, mark) => (count(mark) > count(best) ? mark : best));
};

const isCsvError = (error: unknown): error is CsvError & { lines?: number } =>
  error instanceof Error && 'code' in error;

interface Parsed {
  record: string[];
  raw: string;
  info: { lines: number };
}

/** Ends of lines in the text of a record, in which the parser leaves `\r` of the last `\r\n`. */
const lineEnds = (raw: string, isLf: boolean): number =>
  raw.match(isLf ? /\n/g : /\r\n?|\n/g)?.length ?? 0;

/** True if quotation marks stand only around whole cells, as RFC 4180 has them. */
const isStrictlyQuoted = (raw: string, delimiter: string): boolean => {
  let at = 0;
  while (at < raw.length) {
    if (raw[at] === '"') {
      do {
        at = raw.indexOf('"', at + 1);
        if (at < 0) return false;
        at += 1;
      } while (raw[at] === '"');
      if (at < raw.length && ![delimiter, '\r', '\n'].includes(raw[at] ?? '')) return false;
    } else {
      while (at < raw.length && raw[at] !== delimiter) {
        if (raw[at] === '"') return false;
        at += 1;
      }
    }
    at += 1;
  }
  return true;
};

/** Removes the mark that our own files have before a text that a spreadsheet would calculate (`noFormula`). */
const withoutMark = (cell: string): string =>
  cell.startsWith("'") && noFormula(cell.slice(1)) === cell ? cell.slice(1) : cell;

/** The lines of a record with a quotation mark that is not closed in its line: each a record, or a fault. */
function* lineByLine(raw: string, begin: number, options: Options): Generator<CsvRecord> {
  for (const [index, text] of raw.split(/\r?\n/).entries()) {
    if (text === '') continue;
    const line = begin + index;
    try {
      const [cells] = parseText(text, { ...options, info: false, raw: false }) as string[][];
      if (cells) yield { line, cells: cells.map(withoutMark) };
    } catch (error) {
      if (!isCsvError(error)) throw error;
      yield { line, fault: NOT_CLOSED };
    }
  }
}

/**
 * Reads CSV records at the reader's pace. A quotation mark within a text is text. An unclosed cell is an error of its
 * line, unless everything after it could be its content; then it takes the rest of the file.
 * @throws what the stream fails with; ValidationError at the first line that is not UTF-8
 */
export async function* readCsv(source: Readable): AsyncGenerator<CsvRecord> {
  const bytes = source[Symbol.asyncIterator]() as AsyncIterator<Buffer | string>;
  // No `return`: the stream's owner ends it, for example a request that must be answered.
  const chunks = checked({ [Symbol.asyncIterator]: () => ({ next: () => bytes.next() }) });
  const first = await chunks.next();
  if (first.done) return;
  const head = first.value;
  const delimiter = delimiterOf(head.toString('utf8'));
  const options: Options = {
    bom: true,
    delimiter,
    info: true,
    max_record_size: MAX_RECORD,
    raw: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
  };
  const parser = parse(options);
  /** The line at which the parser gave up: the only fault left if marks may stand in a text. */
  let faultAt = Infinity;
  parser.on('skip', (error: unknown) => {
    if (isCsvError(error)) faultAt = Math.min(faultAt, Number(error.lines ?? 0));
  });
  const whole = async function* () {
    yield head;
    yield* chunks;
  };
  const input = Readable.from(whole(), { objectMode: false });
  input.on('error', (error) => parser.destroy(error));
  let isLf: boolean | null = null;
  let lines = 0;
  try {
    for await (const { record, raw, info } of input.pipe(parser) as AsyncIterable<Parsed>) {
      // The parser is ahead of the reader. Rows that it finds after the fault are incomplete.
      if (info.lines >= faultAt) break;
      isLf ??= raw.endsWith('\n');
      const text = raw.replace(/^[\r\n]+/, '');
      const line = lines + 1 + lineEnds(raw.slice(0, raw.length - text.length), isLf);
      lines += lineEnds(raw, isLf);
      const isOverLines = record.some((cell) => cell.includes('\n'));
      if (isOverLines && !isStrictlyQuoted(text.replace(/(?<![\r\n])[\r\n]+$/, ''), delimiter)) {
        yield* lineByLine(text, line, { ...options, skip_records_with_error: false });
      } else yield { line, cells: record.map(withoutMark) };
    }
    if (faultAt < Infinity) {
      yield { line: lines + 1, fault: `${NOT_CLOSED}: nothing after it was read` };
    }
  } finally {
    input.destroy();
  }
}

const NAMED = 20;

const some = (headings: readonly string[]): string =>
  headings.length <= NAMED
    ? headings.join(', ')
    : `${headings.slice(0, NAMED).join(', ')} and ${headings.length - NAMED} more`;

/** A heading as columns are known by: `First Name` is `first_name`. */
export const columnName = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_');

/**
 * Reads the header of a file into columns, in order.
 * @param columnOf the column of a heading; null ignores it
 * @param possible valid headings, for the error message
 * @param required a heading without which the file is refused
 * @throws ValidationError (400)
 */
export const readColumns = <Column extends object>(
  headings: readonly string[],
  columnOf: (heading: string) => Column | null,
  { possible, required }: { possible: readonly string[]; required: string }
): Column[] => {
  const refused = (message: string) => fieldError('header', message);
  const { length } = headings;
  if (length > IMPORT_COLUMNS_MAX) {
    throw refused(`there are ${length} columns, and at most ${IMPORT_COLUMNS_MAX} are imported`);
  }
  const columns: Column[] = [];
  const unknown: string[] = [];
  const twice: string[] = [];
  const seen = new Set<string>();
  for (const heading of headings) {
    const column = columnOf(heading);
    if (!column) {
      unknown.push(heading);
      continue;
    }
    const known = JSON.stringify(column);
    if (seen.has(known)) twice.push(heading);
    seen.add(known);
    columns.push(column);
  }
  if (unknown.length > 0) {
    throw refused(`unknown columns: ${some(unknown)}. Possible: ${possible.join(', ')}`);
  }
  if (twice.length > 0) throw refused(`columns given twice: ${some(twice)}`);
  if (!seen.has(JSON.stringify(columnOf(required)))) {
    throw refused(`there is no column "${required}"`);
  }
  return columns;
};

const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/;

/** A number as people write one; NaN for the other ways that JavaScript knows: `0x10`, `1e3`. */
export const decimalOf = (cell: string): number => (DECIMAL.test(cell) ? Number(cell) : Number.NaN);
