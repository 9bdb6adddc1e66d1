import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import type { ImportIssue } from '../../../../shared/contracts/crm';
import { adminRoute } from '../../access/admin-actions';
import { withTransientRetry } from '../../database/retry';
import type { RouteConfig } from '../../feature';
import { queryOf } from '../../http/guarded-route';
import {
  FileImport,
  type FileRow,
  reasonOf,
  requireRowFault,
  throughFaults,
} from '../../imports/file-import';
import type { Header } from '../../imports/read-csv';
import { answerUpload, uploadQuery } from '../../imports/upload';
import type { ContactImport } from '../../public';
import { withOrigin } from '../origin';
import { emailKey } from '../contact-integrity';
import { getSource } from '../mapping/sources';
import { keptInput } from '../resources/to-data';
import { type Column, type ImportRow, readHeader, readRow } from './columns';
import { type BatchResult, ContactBatch, ImportTags } from './import-batch';
import { type App, appOf } from '../../app';

const tryRows = (app: App, rows: readonly ImportRow[]): Promise<BatchResult> =>
  withTransientRetry(() =>
    // Tags that a dry run creates are rolled back: each has a cache of its own.
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

const BATCH = 200;
const BATCH_ON_SQLITE = 50;

class ContactsImport extends FileImport<Column, ImportRow, ImportIssue> {
  private readonly tags = new ImportTags(this.app);
  private readonly made = new Set<string>();

  protected readHeader(headings: readonly string[]): Header<Column> {
    return readHeader(headings);
  }

  protected readRow(columns: readonly Column[], cells: readonly string[], line: number) {
    const read = readRow(columns, cells, line);
    if (!read.ok) return { issue: { line, email: read.email, message: read.message } };
    // Without what the site's contacts do not keep, so that it makes neither a change nor a tag.
    const { row } = read;
    const given = row.tags.length > 0 ? { ...row.input, tags: row.tags } : row.input;
    const source = getSource(this.app, 'contact');
    const { tags = [], ...input } = keptInput<Record<string, unknown>>(this.app, source, given);
    return { row: { ...row, input, tags: tags as string[] } };
  }

  protected faultOf(line: number, message: string): ImportIssue {
    return { line, email: null, message };
  }

  protected async importRows(found: readonly FileRow<ImportRow>[]): Promise<void> {
    const rows = found.map(({ row }) => row);
    const count = ({ created, updated, unchanged, failures }: BatchResult): void => {
      this.report.created += created;
      this.report.updated += updated;
      this.report.unchanged += unchanged;
      for (const { row, message } of failures) {
        const { line, email } = row;
        const cells = found.find((one) => one.row === row)?.cells ?? [];
        this.fail({ line, email, message }, cells);
      }
    };
    if (this.options.dryRun) await this.tryAll(rows, count);
    else count(await new ContactBatch(this.app, this.tags).import(rows));
  }

  /**
   * Counts the outcome that rows would have: they are imported in a transaction that is rolled back.
   * One bad row may end the transaction of all, so then each row is tried by itself.
   */
  private async tryAll(
    rows: readonly ImportRow[],
    count: (result: BatchResult) => void
  ): Promise<void> {
    const { app, made } = this;
    const keyOf = ({ email }: ImportRow): string => emailKey(email) ?? email;
    const first = rows.filter((row) => !made.has(keyOf(row)));
    this.report.updated += rows.length - first.length;
    if (first.length === 0) return;
    const together = await tryRows(app, first).catch(() => null);
    if (together?.failures.length === 0) {
      count(together);
      if (together.created > 0) for (const row of first) made.add(keyOf(row));
      return;
    }
    for (const row of first) {
      const one = await tryRow(app, row);
      if (one.created > 0) made.add(keyOf(row));
      count(one);
    }
  }
}

export const createContactImport = ({ strapi }: { strapi: Core.Strapi }): ContactImport => {
  const app = appOf(strapi);
  return {
    run: (file, options = {}) =>
      withOrigin('import', () => {
        const rowsAtOnce = app.db.client === 'sqlite' ? BATCH_ON_SQLITE : BATCH;
        return new ContactsImport(app, options, rowsAtOnce).run(file);
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
