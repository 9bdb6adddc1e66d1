import type { Core } from '@strapi/strapi';
import type { ImportIssue } from '../../../../shared/contracts/crm';
import { CONTACT_NUMBER_COLUMNS, CONTACT_TEXT_COLUMNS } from '../../../../shared/contracts/imports';
import { withTransientRetry } from '../../database/retry';
import { endpoint, type Endpoints } from '../../http/endpoint';
import { FileImport, type FileRow, rowFault, throughFaults } from '../../imports/file-import';
import { columnName, decimalOf, readColumns } from '../../imports/read-csv';
import { answerUpload, uploadQuery } from '../../imports/upload';
import type { ContactImport } from '../../public';
import { withOrigin } from '../origin';
import { emailKey } from '../contact-integrity';
import { getSource } from '../mapping/sources';
import { INPUTS } from '../resources/schemas';
import { keptInput } from '../resources/to-data';
import { type BatchResult, ContactBatch, type ImportRow, ImportTags } from './import-batch';
import { type App, appOf } from '../../app';

/** The target of a column's values: a key of the contact, or what a bag of it has by a name. */
interface Column {
  key: string;
  name?: string;
}

const TEXTS: readonly string[] = CONTACT_TEXT_COLUMNS;
const NUMBERS: readonly string[] = CONTACT_NUMBER_COLUMNS;

const columnOf = (heading: string): Column | null => {
  const key = columnName(heading);
  if (key === 'tags' || TEXTS.includes(key) || NUMBERS.includes(key)) return { key };
  const [, bag, name] = /^(fields|address)\.(.+)$/i.exec(heading.trim()) ?? [];
  return bag && name ? { key: bag.toLowerCase(), name: name.trim() } : null;
};

/** Headings may be spelt `First Name`; custom fields are `fields.<name>`. */
export const readHeader = (headings: readonly string[]): Column[] =>
  readColumns(headings, columnOf, {
    possible: [...TEXTS, ...NUMBERS, 'tags', 'address.<name>', 'fields.<name>'],
    required: 'email',
  });

/** As many as REST takes. */
const MAX_TAGS = 1000;

export const readRow = (
  columns: readonly Column[],
  cells: readonly string[],
  line: number
): { row: ImportRow } | { issue: ImportIssue } => {
  const given: Record<string, unknown> = {};
  for (const [index, { key, name }] of columns.entries()) {
    const cell = (cells[index] ?? '').trim();
    if (cell === '') continue;
    if (name === undefined) given[key] = NUMBERS.includes(key) ? decimalOf(cell) : cell;
    else ((given[key] ??= {}) as Record<string, string>)[name] = cell;
  }
  const { tags: listed = '', ...input } = given;
  const names = String(listed).split(/[;,|]/);
  const tags = [...new Set(names.map((name) => name.trim()))].filter(Boolean);
  const email = typeof input.email === 'string' ? input.email : null;
  const refused = (message: string) => ({ issue: { line, email, message } });
  const { length } = columns;
  if (cells.length > length) return refused(`has ${cells.length} cells for ${length} columns`);
  if (!email) return refused('email: is missing');
  const result = INPUTS.contact.update.safeParse(input);
  if (!result.success) {
    const issues = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    return refused(issues.join('; '));
  }
  if (tags.length > MAX_TAGS) return refused(`tags: are more than ${MAX_TAGS}`);
  for (const name of tags) {
    const [issue] = INPUTS.tag.create.safeParse({ name }).error?.issues ?? [];
    if (issue) return refused(`tags: ${issue.message}`);
  }
  return { row: { line, email, input: result.data, tags } };
};

const tryRows = (app: App, rows: readonly ImportRow[]): Promise<BatchResult> =>
  withTransientRetry(() =>
    // Tags that a dry run creates are rolled back: each has a cache of its own.
    app.db.rolledBack(() => new ContactBatch(app, new ImportTags(app)).import(rows))
  );

const tryRow = async (app: App, row: ImportRow): Promise<BatchResult> => {
  try {
    return await throughFaults(app, () => tryRows(app, [row]));
  } catch (error) {
    const failures = [{ row, message: rowFault(error) }];
    return { created: 0, updated: 0, unchanged: 0, failures };
  }
};

const BATCH = 200;
const BATCH_ON_SQLITE = 50;

class ContactsImport extends FileImport<Column, ImportRow, ImportIssue> {
  private readonly tags = new ImportTags(this.app);
  private readonly made = new Set<string>();

  protected readonly readHeader = readHeader;

  protected readRow(columns: readonly Column[], cells: readonly string[], line: number) {
    const read = readRow(columns, cells, line);
    if ('issue' in read) return read;
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

  /** Counts what would become of rows. A bad one may end the transaction of all: then each is tried alone. */
  private async tryAll(rows: readonly ImportRow[], count: (result: BatchResult) => void) {
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
  const rowsAtOnce = () => (app.db.client === 'sqlite' ? BATCH_ON_SQLITE : BATCH);
  return {
    run: (file, options = {}) =>
      withOrigin('import', () => new ContactsImport(app, options, rowsAtOnce()).run(file)),
  };
};

const contactImport = (app: App): ContactImport =>
  app.strapi.service('plugin::switchboard.contact-import') as unknown as ContactImport;

const IMPORT = { may: 'crm.import', query: uploadQuery } as const;

export const contactImports: Endpoints = {
  'contact-imports': {
    import: endpoint('POST /contacts/import', IMPORT, ({ app, ctx }) =>
      answerUpload(app, ctx, 'contacts', (file, options) => contactImport(app).run(file, options))
    ),
  },
};
