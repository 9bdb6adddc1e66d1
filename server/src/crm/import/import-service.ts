import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Readable } from 'node:stream';
import type { ImportIssue, ImportReport } from '../../../../shared/contracts/crm';
import { withOrigin } from '../change-capture/track/origin';
import { giveWay } from '../../imports/rows';
import { type CsvRecord, readCsv } from '../../imports/read-csv';
import type { ImportRun, ImportWatch } from '../../imports/watch';
import { tryBatch } from './dry-run';
import { getSource } from '../mapping/registry';
import { keptInput } from '../resources/kept-input';
import { type Column, type ImportRow, readHeader, readRow } from './columns';
import { importBatch } from './import-batch';
import { createImportTags, type ImportTags } from './tags';

/** Rows a transaction. On SQLite the whole site waits for one: its driver is synchronous. */
const BATCH = 200;
const BATCH_ON_SQLITE = 50;
const MAX_ISSUES = 1000;

export interface ContactImport {
  /**
   * Imports contacts from a CSV file (UTF-8; comma, semicolon or tab). A row whose `email` is known
   * completes that contact; what a row leaves empty stays as it is. Rows go in batches, each in a
   * transaction of its own: what was imported before a fault stays.
   * A dry run imports nothing and says what it would.
   * @throws ValidationError where the header is wrong; nothing has been imported then.
   */
  run(file: Readable, options?: ImportRun): Promise<ImportReport>;
}

const wrongHeader = (message: string): errors.ValidationError =>
  new errors.ValidationError(`header: ${message}`, {
    errors: [{ path: ['header'], message, name: 'ValidationError' }],
  });

class Import {
  readonly report: ImportReport = {
    total: 0,
    created: 0,
    updated: 0,
    unchanged: 0,
    failed: 0,
    issues: [],
  };
  private readonly waiting: ImportRow[] = [];
  private readonly tags: ImportTags;
  private readonly strapi: Core.Strapi;
  private readonly batch: number;
  /** Cells of rows that wait, by their line. */
  private cells = new Map<number, readonly string[]>();
  /** In a dry run: addresses that earlier rows would have made. */
  private readonly made = new Set<string>();
  private readonly dryRun: boolean;
  private readonly watch: ImportWatch | undefined;

  constructor(strapi: Core.Strapi, { dryRun = false, watch }: ImportRun) {
    this.strapi = strapi;
    this.dryRun = dryRun;
    this.watch = watch;
    this.tags = createImportTags(strapi);
    this.batch = strapi.db.dialect.client === 'sqlite' ? BATCH_ON_SQLITE : BATCH;
  }

  fail(issue: ImportIssue, cells: readonly string[]): void {
    this.report.failed += 1;
    this.watch?.failed(issue.line, issue.message, cells);
    if (this.report.issues.length < MAX_ISSUES) this.report.issues.push(issue);
  }

  async take(record: CsvRecord, columns: readonly Column[]): Promise<void> {
    this.report.total += 1;
    const { line } = record;
    if ('fault' in record) {
      this.fail({ line, email: null, message: record.fault }, []);
      return;
    }
    const read = readRow(columns, record.cells, line);
    if (!read.ok) {
      this.fail({ line, email: read.email, message: read.message }, record.cells);
      return;
    }
    this.waiting.push(this.kept(read.row));
    this.cells.set(line, record.cells);
    if (this.waiting.length >= this.batch) await this.flush();
  }

  /** A row without what the site's contacts do not keep, so that it makes neither a change nor a tag. */
  private kept(row: ImportRow): ImportRow {
    const source = getSource(this.strapi, 'contact');
    const given = row.tags.length > 0 ? { ...row.input, tags: row.tags } : row.input;
    const { tags = [], ...input } = keptInput<Record<string, unknown>>(this.strapi, source, given);
    return { ...row, input, tags: tags as string[] };
  }

  async flush(): Promise<void> {
    const rows = this.waiting.splice(0);
    const cells = this.cells;
    this.cells = new Map();
    if (rows.length > 0) await this.import(rows, cells);
    await this.watch?.advance(this.report);
  }

  private async import(
    rows: readonly ImportRow[],
    cells: ReadonlyMap<number, readonly string[]>
  ): Promise<void> {
    const result = this.dryRun
      ? await tryBatch(this.strapi, rows, this.made)
      : await importBatch(this.strapi, this.tags, rows);
    this.report.created += result.created;
    this.report.updated += result.updated;
    this.report.unchanged += result.unchanged;
    for (const { row, message } of result.failures) {
      this.fail({ line: row.line, email: row.email, message }, cells.get(row.line) ?? []);
    }
    await giveWay();
  }
}

const headerOf = async (
  records: AsyncIterator<CsvRecord>
): Promise<{ headings: string[]; columns: Column[] }> => {
  const first = await records.next();
  if (first.done) throw wrongHeader('the file is empty');
  if ('fault' in first.value) throw wrongHeader(first.value.fault);
  const header = readHeader(first.value.cells);
  if (!header.ok) throw wrongHeader(header.message);
  return { headings: first.value.cells, columns: header.columns };
};

export const createContactImport = ({ strapi }: { strapi: Core.Strapi }): ContactImport => ({
  run: (file, options = {}) =>
    withOrigin('import', async () => {
      const records = readCsv(file);
      const { headings, columns } = await headerOf(records);
      await options.watch?.header(headings);
      const job = new Import(strapi, options);
      for await (const record of records) await job.take(record, columns);
      await job.flush();
      return job.report;
    }),
});
