import type { Readable } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { errors } from '@strapi/utils';
import { isInfrastructureFault } from '../database/retry';
import { fieldError } from '../http/validation';
import type { ImportCounts, ImportRun } from '../public';
import { errorText } from '../runtime/text';
import { readCsv } from './read-csv';
import type { App } from '../app';

/** A request of the site takes a few: with one between two batches it would wait for a batch at each. */
const TURNS = 10;

/** Lets others use the event loop and SQLite's single connection, for which transactions do not take turns. */
export const giveWay = async (): Promise<void> => {
  for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
};

/** A database that restarts, or is full for a moment, is waited for this long. */
const PAUSES_MS = [200, 1_000, 5_000];

/** Repeats work after a database fault, unless it ended a caller's transaction. A lasting one is thrown: no row's fault. */
export const throughFaults = async <T>(app: App, work: () => Promise<T>): Promise<T> => {
  for (const pause of PAUSES_MS) {
    try {
      return await work();
    } catch (error) {
      if (!isInfrastructureFault(error) || app.db.inTransaction()) throw error;
      await sleep(pause);
    }
  }
  return work();
};

/** Why an import ended, without a driver's text. */
export const reasonOf = (error: unknown): string =>
  error instanceof errors.ApplicationError ? error.message : errorText(error);

/** Why a row could not be imported. @throws what is no fault of a row */
export const rowFault = (error: unknown): string => {
  if (isInfrastructureFault(error)) throw error;
  return reasonOf(error);
};

export interface FileRow<Row> {
  line: number;
  cells: readonly string[];
  row: Row;
}

export const NO_ROWS: ImportCounts = { total: 0, created: 0, updated: 0, unchanged: 0, failed: 0 };

/** Imports the rows of one CSV file, some at a time; kinds of files differ in what a row is and does. */
export abstract class FileImport<Column, Row, Issue extends { line: number; message: string }> {
  readonly report = { ...NO_ROWS, issues: [] as Issue[] };
  private waiting: FileRow<Row>[] = [];
  private faults: { issue: Issue; cells: readonly string[] }[] = [];
  private atOnce: number;

  /** @param rowsAtOnce in one transaction at most; on SQLite the whole site waits for it */
  constructor(
    protected readonly app: App,
    protected readonly options: ImportRun,
    private readonly rowsAtOnce: number
  ) {
    this.atOnce = rowsAtOnce;
  }

  /** @throws ValidationError (400) */
  protected abstract readHeader(headings: readonly string[]): Column[];

  /** @returns the issue, of a row that cannot be imported as it is read */
  protected abstract readRow(
    columns: readonly Column[],
    cells: readonly string[],
    line: number
  ): { row: Row } | { issue: Issue };

  protected abstract faultOf(line: number, message: string): Issue;

  /** Imports rows, or previews their outcome, and counts them. */
  protected abstract importRows(rows: readonly FileRow<Row>[]): Promise<void>;

  protected fail(issue: Issue, cells: readonly string[]): void {
    this.report.failed += 1;
    this.faults.push({ issue, cells });
  }

  /** @throws ValidationError (400) if the header is wrong; nothing has been imported then */
  async run(file: Readable): Promise<typeof this.report> {
    const records = readCsv(file);
    const first = await records.next();
    if (first.done) throw fieldError('header', 'the file is empty');
    if ('fault' in first.value) throw fieldError('header', first.value.fault);
    const columns = this.readHeader(first.value.cells);
    await this.options.watch?.header(first.value.cells);
    for await (const record of records) {
      const { line } = record;
      this.report.total += 1;
      if ('fault' in record) {
        this.fail(this.faultOf(line, record.fault), []);
        continue;
      }
      const { cells } = record;
      const read = this.readRow(columns, cells, line);
      if ('issue' in read) this.fail(read.issue, cells);
      else this.waiting.push({ line, cells, row: read.row });
      if (this.waiting.length + this.faults.length >= this.atOnce) await this.flush();
    }
    await this.flush();
    return this.report;
  }

  private async flush(): Promise<void> {
    const rows = this.waiting.splice(0);
    const begun = performance.now();
    if (rows.length > 0) await this.importRows(rows);
    // The progress moves each second, also where each row is imported by itself.
    const isSlow = performance.now() - begun > 400;
    this.atOnce = isSlow ? Math.ceil(this.atOnce / 2) : Math.min(this.atOnce * 2, this.rowsAtOnce);
    const faults = this.faults.splice(0).sort((a, b) => a.issue.line - b.issue.line);
    for (const { issue, cells } of faults) {
      this.options.watch?.failed(issue.line, issue.message, cells);
      if (this.report.issues.length < 1000) this.report.issues.push(issue);
    }
    await this.options.watch?.advance(this.report);
    await giveWay();
  }
}
