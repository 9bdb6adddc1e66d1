import type { Core } from '@strapi/strapi';
import type { ImportIssue } from '../../../../shared/contracts/crm';
import {
  CONTACT_BAGS,
  CONTACT_NUMBER_COLUMNS,
  CONTACT_READ_ONLY_COLUMNS,
  CONTACT_TEXT_COLUMNS,
} from '../../../../shared/contracts/imports';
import { endpoint, type Endpoints } from '../../http/endpoint';
import { FileImport, type FileRow, throughFaults } from '../../imports/file-import';
import { emailKey } from '../contact-integrity';
import { columnName, decimalOf, readColumns } from '../../imports/read-csv';
import { answerUpload, uploadQuery } from '../../imports/upload';
import type { ContactImport, ImportRun } from '../../public';
import { judgeInput } from '../../http/validation';
import { isRecord, jsonIn } from '../../runtime/text';
import { withOrigin } from '../origin';
import { getSource } from '../mapping/sources';
import { INPUTS } from '../resources/schemas';
import { keptInput } from '../resources/to-data';
import { ContactBatch, ContactPreview, type ImportRow, ImportTags } from './import-batch';
import { type App, appOf } from '../../app';

/** The target of a column's values: a key of the contact, or what a bag of it has by a name. */
interface Column {
  key: string;
  name?: string;
}

const NUMBERS: readonly string[] = CONTACT_NUMBER_COLUMNS;
const BAGS: readonly string[] = CONTACT_BAGS;
const READ_ONLY: readonly string[] = CONTACT_READ_ONLY_COLUMNS;
const PLAIN: readonly string[] = [...CONTACT_TEXT_COLUMNS, ...NUMBERS, ...BAGS, 'tags'];

const columnOf = (heading: string): Column | null => {
  const key = columnName(heading);
  if (PLAIN.includes(key) || READ_ONLY.includes(key)) return { key };
  const [, bag, name] = /^(fields|address)\.(.+)$/i.exec(heading.trim()) ?? [];
  return bag && name ? { key: bag.toLowerCase(), name: name.trim() } : null;
};

/** Headings may be spelt `First Name`; custom fields are `fields.<name>`. */
export const readHeader = (headings: readonly string[]): Column[] =>
  readColumns(headings, columnOf, {
    possible: [...PLAIN, 'address.<name>', 'fields.<name>'],
    required: 'email',
  });

/** As many as REST takes. */
const MAX_TAGS = 1000;

/** Joins keys of several columns. A text in place of an object stays, for the schema to refuse. */
const withKeys = (known: unknown, more: unknown): unknown =>
  [known, more].find((one) => typeof one === 'string') ?? {
    ...(known as object),
    ...(more as object),
  };

export const readRow = (
  columns: readonly Column[],
  cells: readonly string[],
  line: number
): { row: ImportRow } | { issue: ImportIssue } => {
  const given: Record<string, unknown> = {};
  for (const [index, { key, name }] of columns.entries()) {
    const cell = (cells[index] ?? '').trim();
    if (cell === '' || READ_ONLY.includes(key)) continue;
    if (name !== undefined) given[key] = withKeys(given[key], { [name]: cell });
    else if (BAGS.includes(key)) {
      const value = jsonIn(cell);
      given[key] = withKeys(given[key], isRecord(value) ? value : cell);
    } else given[key] = NUMBERS.includes(key) ? decimalOf(cell) : cell;
  }
  const { tags: listed = '', ...input } = given;
  const names = String(listed).split(/[;,|]/);
  const tags = [...new Set(names.map((name) => name.trim()))].filter(Boolean);
  const email = typeof input.email === 'string' ? input.email : null;
  const refused = (message: string) => ({ issue: { line, email, message } });
  const { length } = columns;
  if (cells.length > length) return refused(`has ${cells.length} cells for ${length} columns`);
  if (!email) return refused('email: is missing');
  if (tags.length > MAX_TAGS) return refused(`tags: are more than ${MAX_TAGS}`);
  const judged = judgeInput(INPUTS.contact.update, input);
  if (judged.problems) return refused(judged.problems);
  for (const name of tags) {
    const { problems } = judgeInput(INPUTS.tag.create, { name });
    if (problems) return refused(`tags: ${problems}`);
  }
  return { row: { line, email, key: emailKey(email) ?? '', input: judged.data, tags } };
};

const BATCH = 200;
const BATCH_ON_SQLITE = 50;
/** Nobody waits for one that only reads. */
const BATCH_OF_DRY_RUN = 500;

class ContactsImport extends FileImport<Column, ImportRow, ImportIssue> {
  private readonly tags = new ImportTags(this.app, false);
  private readonly preview = new ContactPreview(this.app);

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
    const result = this.options.dryRun
      ? await throughFaults(this.app, () => this.preview.of(rows))
      : await new ContactBatch(this.app, this.tags).import(rows);
    this.report.created += result.created;
    this.report.updated += result.updated;
    this.report.unchanged += result.unchanged;
    for (const { row, message } of result.failures) {
      const { line, email } = row;
      this.fail({ line, email, message }, found.find((one) => one.row === row)?.cells ?? []);
    }
  }
}

export const createContactImport = ({ strapi }: { strapi: Core.Strapi }): ContactImport => {
  const app = appOf(strapi);
  const rowsAtOnce = ({ dryRun }: ImportRun): number =>
    dryRun ? BATCH_OF_DRY_RUN : app.db.client === 'sqlite' ? BATCH_ON_SQLITE : BATCH;
  return {
    run: (file, options = {}) =>
      withOrigin('import', () => new ContactsImport(app, options, rowsAtOnce(options)).run(file)),
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
