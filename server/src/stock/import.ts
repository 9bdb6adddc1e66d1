import type { Readable } from 'node:stream';
import { errors } from '@strapi/utils';
import { ITEM_TEXT_COLUMNS } from '../../../shared/contracts/imports';
import type { ItemImportReport } from '../../../shared/contracts/stock';
import { withTransientRetry } from '../database/retry';
import { fieldError } from '../http/validation';
import {
  columnName,
  type CsvRecord,
  decimalOf,
  type Header,
  readColumns,
  readCsv,
} from '../imports/read-csv';
import { giveWay, requireRowFault, throughFaults } from '../imports/rows';
import type { ImportRun } from '../public';
import { errorText } from '../runtime/text';
import { createItemInput } from './inputs';
import { gtinDigest, skuDigest } from './items';
import type { ItemsService } from './items-service';
import { type ItemRow, ITEMS_TABLE } from './tables';
import type { App } from '../app';

/** Reads the columns of a CSV file of items. */

/** Where a column's values go. */
type ItemColumn =
  | { kind: 'text'; key: (typeof ITEM_TEXT_COLUMNS)[number] }
  | { kind: 'low_at' }
  /** What a new item begins with, at a location by its code; null: the default one. */
  | { kind: 'quantity'; location: string | null };

const columnOf = (heading: string): ItemColumn | null => {
  const name = columnName(heading);
  const text = ITEM_TEXT_COLUMNS.find((one) => one === name);
  if (text) return { kind: 'text', key: text };
  if (name === 'low_at') return { kind: 'low_at' };
  if (name === 'quantity') return { kind: 'quantity', location: null };
  const at = /^quantity\.(.+)$/i.exec(heading.trim());
  return at?.[1] ? { kind: 'quantity', location: at[1].trim() } : null;
};

/** Headings may be spelt `Low at`; `quantity.<code>` is the opening at that location. */
export const readItemHeader = (headings: readonly string[]): Header<ItemColumn> =>
  readColumns(headings, columnOf, {
    possible: [...ITEM_TEXT_COLUMNS, 'low_at', 'quantity', 'quantity.<location code>'],
    required: 'sku',
  });

/** A row of the file as items are made of it; what it leaves empty is absent. */
interface ItemRowInput {
  sku: string;
  gtin?: string;
  name?: string;
  low_at?: number;
  opening: { location?: string; quantity: number }[];
}

/** What spreadsheets make of a long number: its last digits are lost. */
const SHORTENED = /^(?:\d+(?:[.,]\d+)?e[+-]?\d+|0x[\da-f]+)$/i;

type ReadItemRow = { ok: true; input: ItemRowInput } | { ok: false; message: string };

export const readItemRow = (
  columns: readonly ItemColumn[],
  cells: readonly string[]
): ReadItemRow => {
  if (cells.length > columns.length) {
    return { ok: false, message: `has ${cells.length} cells for ${columns.length} columns` };
  }
  const input: Record<string, unknown> = {};
  const opening: { location?: string; quantity: number }[] = [];
  columns.forEach((column, index) => {
    const cell = (cells[index] ?? '').trim();
    if (cell === '') return;
    if (column.kind === 'text') input[column.key] = cell;
    else if (column.kind === 'low_at') input.low_at = decimalOf(cell);
    else {
      opening.push({
        ...(column.location !== null && { location: column.location }),
        quantity: decimalOf(cell),
      });
    }
  });
  if (input.sku === undefined) return { ok: false, message: 'sku: is missing' };
  if (SHORTENED.test(String(input.gtin))) {
    return { ok: false, message: `gtin: ${String(input.gtin)} must be given with all its digits` };
  }
  const result = createItemInput.safeParse({ ...input, opening });
  if (result.success) return { ok: true, input: { ...input, opening } as ItemRowInput };
  const issues = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  return { ok: false, message: issues.join('; ') };
};

/** Rows a transaction. On SQLite the whole site waits for one. */
const BATCH = 50;
const MAX_ISSUES = 1000;

type Outcome = 'created' | 'updated' | 'unchanged';

const wrongHeader = (message: string): errors.ValidationError =>
  new errors.ValidationError(`header: ${message}`, {
    errors: [{ path: ['header'], message, name: 'ValidationError' }],
  });

const headerOf = (first: IteratorResult<CsvRecord>): { cells: string[]; columns: ItemColumn[] } => {
  if (first.done) throw wrongHeader('the file is empty');
  if ('fault' in first.value) throw wrongHeader(first.value.fault);
  const { cells } = first.value;
  const header = readItemHeader(cells);
  if (!header.ok) throw wrongHeader(header.message);
  return { cells, columns: header.columns };
};

const isChanged = (row: ItemRow, { gtin, name, low_at: lowAt }: ItemRowInput): boolean =>
  row.archived_at !== null ||
  (gtin !== undefined && (row.gtin === null || gtinDigest(row.gtin) !== gtinDigest(gtin))) ||
  (name !== undefined && row.name !== name) ||
  (lowAt !== undefined && Number(row.low_at ?? 0) !== lowAt);

const importRow = async (app: App, input: ItemRowInput): Promise<Outcome> => {
  const items = app.strapi.service('plugin::switchboard.stock-items') as unknown as ItemsService;
  const { sku, gtin, name, low_at: lowAt, opening } = input;
  const db = await app.db.current();
  const row = (await db
    .table(ITEMS_TABLE)
    .where({ sku_digest: skuDigest(sku) })
    .first()) as ItemRow | undefined;
  if (!row) {
    await items.createItem({ sku, gtin, name, low_at: lowAt ?? 0, opening });
    return 'created';
  }
  if (!isChanged(row, input)) return 'unchanged';
  await items.updateItem(Number(row.id), {
    ...(gtin !== undefined && { gtin }),
    ...(name !== undefined && { name }),
    ...(lowAt !== undefined && { low_at: lowAt }),
    ...(row.archived_at !== null && { archived: false as const }),
  });
  return 'updated';
};

interface Row {
  line: number;
  cells: string[];
  input: ItemRowInput;
}

/** Whose the GTINs of a file would be, of which a dry run leaves nothing in the database. */
class GivenGtins {
  private readonly skus = new Map<string, string>();
  private readonly gtins = new Map<string, string>();

  /** Whether an earlier row gave this row's GTIN to another item. */
  isOfOther({ sku, gtin }: ItemRowInput): boolean {
    const owner = gtin === undefined ? undefined : this.skus.get(gtinDigest(gtin));
    return owner !== undefined && owner !== sku;
  }

  note({ sku, gtin }: ItemRowInput): void {
    if (gtin === undefined) return;
    const digest = gtinDigest(gtin);
    const before = this.gtins.get(sku);
    if (before !== undefined) this.skus.delete(before);
    this.skus.set(digest, sku);
    this.gtins.set(sku, digest);
  }
}

/** Rows of one file, some at a time. */
class Import {
  readonly report: ItemImportReport = {
    total: 0,
    created: 0,
    updated: 0,
    unchanged: 0,
    failed: 0,
    issues: [],
  };
  private waiting: Row[] = [];
  /** In a dry run: what earlier rows would have made. */
  private readonly made = new Set<string>();
  private readonly given = new GivenGtins();

  constructor(
    private readonly app: App,
    private readonly columns: readonly ItemColumn[],
    private readonly options: ImportRun
  ) {}

  async take(record: CsvRecord): Promise<void> {
    this.report.total += 1;
    const { line } = record;
    if ('fault' in record) {
      this.fail(line, null, record.fault, []);
      return;
    }
    const { cells } = record;
    const read = readItemRow(this.columns, cells);
    if (read.ok) this.waiting.push({ line, cells, input: read.input });
    else this.fail(line, null, read.message, cells);
    if (this.waiting.length >= BATCH) await this.flush();
  }

  async flush(): Promise<void> {
    const rows = this.waiting.splice(0);
    try {
      this.count(rows, await this.together(rows));
    } catch {
      // One bad row ends the transaction of all: then each has its own.
      for (const row of rows) await this.alone(row);
    }
    await this.options.watch?.advance(this.report);
    await giveWay();
  }

  private async alone(row: Row): Promise<void> {
    try {
      this.count([row], await throughFaults(this.app, () => this.together([row])));
    } catch (error) {
      requireRowFault(error);
      const said = error instanceof errors.ApplicationError ? error.message : errorText(error);
      this.fail(row.line, row.input.sku, said, row.cells);
    }
    await giveWay();
  }

  private together(rows: readonly Row[]): Promise<Outcome[]> {
    const { app, made, given } = this;
    const work = async (): Promise<Outcome[]> => {
      const outcomes: Outcome[] = [];
      for (const { input } of rows) {
        if (given.isOfOther(input)) throw fieldError('gtin', 'is taken already');
        outcomes.push(made.has(input.sku) ? 'updated' : await importRow(app, input));
      }
      return outcomes;
    };
    if (this.options.dryRun) return withTransientRetry(() => app.db.rolledBack(work));
    return app.db.retrying(work);
  }

  private count(rows: readonly Row[], outcomes: readonly Outcome[]): void {
    outcomes.forEach((outcome, index) => {
      this.report[outcome] += 1;
      const input = rows[index]?.input;
      if (!this.options.dryRun || !input) return;
      if (outcome === 'created') this.made.add(input.sku);
      this.given.note(input);
    });
  }

  private fail(line: number, sku: string | null, message: string, cells: string[]): void {
    this.report.failed += 1;
    if (this.report.issues.length < MAX_ISSUES) this.report.issues.push({ line, sku, message });
    this.options.watch?.failed(line, message, cells);
  }
}

/**
 * Imports items from a CSV file (UTF-8; comma, semicolon or tab). A row whose `sku` is known changes
 * that item, and brings it back where it was archived; what a row leaves empty stays as it is. Rows
 * go in batches, each a transaction of its own; a bad row costs its neighbours nothing.
 * @throws ValidationError where the header is wrong; nothing has been imported then
 */
export const importItems = async (
  app: App,
  file: Readable,
  options: ImportRun = {}
): Promise<ItemImportReport> => {
  const records = readCsv(file);
  const { cells: headings, columns } = headerOf(await records.next());
  await options.watch?.header(headings);
  const job = new Import(app, columns, options);
  for await (const record of records) await job.take(record);
  await job.flush();
  return job.report;
};
