import type { Core } from '@strapi/strapi';
import type { errors } from '@strapi/utils';
import type { Context } from 'koa';
import type { ImportIssue, ImportReport } from '../../../../shared/contracts/crm';
import { adminRoute } from '../../access/admin-actions';
import { withTransientRetry } from '../../database/retry';
import type { RouteConfig } from '../../feature';
import { queryOf } from '../../http/guarded-route';
import { fieldError } from '../../http/validation';
import { giveWay, requireRowFault, throughFaults } from '../../imports/rows';
import { type CsvRecord, readCsv } from '../../imports/read-csv';
import { answerUpload, uploadQuery } from '../../imports/upload';
import type { ContactImport, ImportRun } from '../../public';
import { withOrigin } from '../origin';
import { emailKey } from '../contact-integrity';
import { getSource } from '../mapping/sources';
import { keptInput } from '../resources/to-data';
import { type Column, type ImportRow, readHeader, readRow } from './columns';
import { type BatchResult, ContactBatch, reasonOf } from './import-batch';
import { ImportTags } from './tags';
import { type App, appOf } from '../../app';

const tryRows = (app: App, rows: readonly ImportRow[]): Promise<BatchResult> =>
  withTransientRetry(() =>
    // Tags that a try makes are gone with it: each has a memory of its own.
    app.db.rolledBack(() => new ContactBatch(app, new ImportTags(app)).import(rows))
  );

const tryRow = async (app: App, row: ImportRow): Promise<BatchResult> => {
  try {
    return await throughFaults(app, () => tryRows(app, [row]));
  } catch (error) {
    requireRowFault(error);
    const failures = [{ row, message: reasonOf(error) }];
    return { created: 0, updated: 0, unchanged: 0, failures };
  }
};

const add = (sum: BatchResult, one: BatchResult): BatchResult => ({
  created: sum.created + one.created,
  updated: sum.updated + one.updated,
  unchanged: sum.unchanged + one.unchanged,
  failures: [...sum.failures, ...one.failures],
});

/**
 * What would become of some rows: they are imported in a transaction that is rolled back. One bad row
 * may end the transaction of all, so then each row is tried by itself.
 * @param made  addresses that rows before these would have made; those of these are added
 */
const tryBatch = async (
  app: App,
  rows: readonly ImportRow[],
  made: Set<string>
): Promise<BatchResult> => {
  const keyOf = ({ email }: ImportRow): string => emailKey(email) ?? email;
  const again = rows.filter((row) => made.has(keyOf(row)));
  const first = rows.filter((row) => !made.has(keyOf(row)));
  const nothing: BatchResult = { created: 0, updated: again.length, unchanged: 0, failures: [] };
  if (first.length === 0) return nothing;
  let result: BatchResult | null = null;
  try {
    result = await tryRows(app, first);
  } catch {
    result = null;
  }
  if (result === null || result.failures.length > 0) {
    result = { created: 0, updated: 0, unchanged: 0, failures: [] };
    for (const row of first) {
      const one = await tryRow(app, row);
      if (one.created > 0) made.add(keyOf(row));
      result = add(result, one);
    }
  } else if (result.created > 0) {
    for (const row of first) made.add(keyOf(row));
  }
  return add(nothing, result);
};

/** Rows a transaction. On SQLite the whole site waits for one: its driver is synchronous. */
const BATCH = 200;
const BATCH_ON_SQLITE = 50;
const MAX_ISSUES = 1000;

const wrongHeader = (message: string): errors.ValidationError => fieldError('header', message);

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
  private readonly batch: number;
  /** Cells of rows that wait, by their line. */
  private readonly cells = new Map<number, readonly string[]>();
  /** In a dry run: addresses that earlier rows would have made. */
  private readonly made = new Set<string>();

  constructor(
    private readonly app: App,
    private readonly run: ImportRun
  ) {
    this.tags = new ImportTags(app);
    this.batch = app.db.client === 'sqlite' ? BATCH_ON_SQLITE : BATCH;
  }

  fail(issue: ImportIssue, cells: readonly string[]): void {
    this.report.failed += 1;
    this.run.watch?.failed(issue.line, issue.message, cells);
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
    const source = getSource(this.app, 'contact');
    const given = row.tags.length > 0 ? { ...row.input, tags: row.tags } : row.input;
    const { tags = [], ...input } = keptInput<Record<string, unknown>>(this.app, source, given);
    return { ...row, input, tags: tags as string[] };
  }

  async flush(): Promise<void> {
    const rows = this.waiting.splice(0);
    if (rows.length > 0) await this.import(rows);
    this.cells.clear();
    await this.run.watch?.advance(this.report);
  }

  private async import(rows: readonly ImportRow[]): Promise<void> {
    const result = this.run.dryRun
      ? await tryBatch(this.app, rows, this.made)
      : await new ContactBatch(this.app, this.tags).import(rows);
    this.report.created += result.created;
    this.report.updated += result.updated;
    this.report.unchanged += result.unchanged;
    for (const { row, message } of result.failures) {
      const { line, email } = row;
      this.fail({ line, email, message }, this.cells.get(line) ?? []);
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

export const createContactImport = ({ strapi }: { strapi: Core.Strapi }): ContactImport => {
  const app = appOf(strapi);
  return {
    run: (file, options = {}) =>
      withOrigin('import', async () => {
        const records = readCsv(file);
        const { headings, columns } = await headerOf(records);
        await options.watch?.header(headings);
        const job = new Import(app, options);
        for await (const record of records) await job.take(record, columns);
        await job.flush();
        return job.report;
      }),
  };
};

export const contactImports = ({ strapi }: { strapi: Core.Strapi }) => {
  const app = appOf(strapi);
  return {
    async import(ctx: Context) {
      const service = app.strapi.service(
        'plugin::switchboard.contact-import'
      ) as unknown as ContactImport;
      await answerUpload(app, ctx, 'contacts', (file, options) => service.run(file, options));
    },
  };
};

export const importRoutes: RouteConfig[] = [
  adminRoute(
    'POST',
    '/contacts/import',
    'contact-imports.import',
    'crm.import',
    queryOf(uploadQuery)
  ),
];
