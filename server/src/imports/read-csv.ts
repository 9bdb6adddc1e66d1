import { type CsvError, parse } from 'csv-parse';
import { Readable } from 'node:stream';

/** One record of a file and the line on which it begins; or why there is none. */
export type CsvRecord = { line: number; cells: string[] } | { line: number; fault: string };

/** A record longer than this is a quotation mark that was never closed. */
const MAX_RECORD = 1024 * 1024;

/** Spreadsheets of some countries write semicolons, and some programs tabs. */
const delimiterOf = (start: string): string => {
  const [line = ''] = start.replace(/^\uFEFF/, '').split(/\r?\n/);
  const count = (mark: string): number => line.split(mark).length;
  return [',', ';', '\t'].reduce((best, mark) => (count(mark) > count(best) ? mark : best));
};

async function* withHead(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  for (;;) {
    const { done, value } = await rest.next();
    if (done) return;
    yield value;
  }
}

const isCsvError = (error: unknown): error is CsvError & { lines?: number } =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('CSV_');

interface Parsed {
  record: string[];
  info: { lines: number };
}

const linesWithin = (cells: readonly string[]): number =>
  cells.reduce((sum, cell) => sum + cell.split('\n').length - 1, 0);

/**
 * Reads a file record by record, as fast as the reader takes them and no faster. What is no CSV is a
 * fault of its record (a quotation mark that is not closed takes what follows with it).
 * @throws what the stream fails with.
 */
export async function* readCsv(source: Readable): AsyncGenerator<CsvRecord> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const first = await chunks.next();
  if (first.done) return;
  const faults: CsvRecord[] = [];
  const parser = parse({
    bom: true,
    delimiter: delimiterOf(first.value.toString('utf8')),
    info: true,
    max_record_size: MAX_RECORD,
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
  });
  parser.on('skip', (error: unknown) => {
    if (isCsvError(error)) faults.push({ line: Number(error.lines ?? 0), fault: error.message });
  });
  const input = Readable.from(withHead(first.value, chunks), { objectMode: false });
  input.on('error', (error) => parser.destroy(error));
  try {
    for await (const { record, info } of input.pipe(parser) as AsyncIterable<Parsed>) {
      const line = info.lines - linesWithin(record);
      // The parser is ahead of the reader: a fault comes in its place.
      while (faults[0] && faults[0].line < line) yield faults.shift() as CsvRecord;
      yield { line, cells: record };
    }
    yield* faults.splice(0);
  } finally {
    input.destroy();
  }
}
