import type { Readable } from 'node:stream';
import { ITEM_TEXT_COLUMNS } from '../../../shared/contracts/imports';
import type { ItemImportReport } from '../../../shared/contracts/stock';
import { withTransientRetry } from '../database/retry';
import { fieldError, judgeInput } from '../http/validation';
import { FileImport, type FileRow, giveWay, rowFault, throughFaults } from '../imports/file-import';
import { columnName, decimalOf, readColumns } from '../imports/read-csv';
import type { ImportRun } from '../public';
import { createItemInput } from './inputs';
import { gtinDigest } from './items';
import type { ItemsService } from './items-service';
import { type ItemRow, ITEMS_TABLE, skuDigest } from './tables';
import type { App } from '../app';

interface ItemColumn {
  key: 'sku' | 'gtin' | 'name' | 'low_at' | 'quantity';
  /** The code of the location of a new item's initial quantity; the default one if left out. */
  location?: string;
}

const KEYS = [...ITEM_TEXT_COLUMNS, 'low_at', 'quantity'] as const;

const columnOf = (heading: string): ItemColumn | null => {
  const name = columnName(heading);
  const key = KEYS.find((one) => one === name);
  if (key) return { key };
  const [, location] = /^quantity\.(.+)$/i.exec(heading.trim()) ?? [];
  return location ? { key: 'quantity', location: location.trim() } : null;
};

/** Headings may be spelt `Low at`; `quantity.<code>` is the opening at that location. */
export const readItemHeader = (headings: readonly string[]): ItemColumn[] =>
  readColumns(headings, columnOf, {
    possible: [...KEYS, 'quantity.<location code>'],
    required: 'sku',
  });

type Issue = ItemImportReport['issues'][number];

/** A row of the file as items are made of it; what it leaves empty is absent. */
interface ItemRowInput {
  sku: string;
  gtin?: string;
  name?: string;
  low_at?: number;
  opening: { location?: string; quantity: number }[];
}

/** A long number as spreadsheets shorten it: its last digits are lost. */
const SHORTENED = /^(?:\d+(?:[.,]\d+)?e[+-]?\d+|0x[\da-f]+)$/i;

export const readItemRow = (
  columns: readonly ItemColumn[],
  cells: readonly string[],
  line: number
): { row: ItemRowInput } | { issue: Issue } => {
  const refused = (message: string) => ({ issue: { line, sku: null, message } });
  const { length } = columns;
  if (cells.length > length) return refused(`has ${cells.length} cells for ${length} columns`);
  const input: Record<string, unknown> = {};
  const opening: ItemRowInput['opening'] = [];
  for (const [index, { key, ...at }] of columns.entries()) {
    const cell = (cells[index] ?? '').trim();
    if (cell === '') continue;
    if (key === 'quantity') opening.push({ ...at, quantity: decimalOf(cell) });
    else input[key] = key === 'low_at' ? decimalOf(cell) : cell;
  }
  if (input.sku === undefined) return refused('sku: is missing');
  if (SHORTENED.test(String(input.gtin))) {
    return refused(`gtin: ${String(input.gtin)} must be given with all its digits`);
  }
  const { problems } = judgeInput(createItemInput, { ...input, opening });
  if (!problems) return { row: { ...input, opening } as ItemRowInput };
  const headings = opening.map(({ location }) => ['quantity', location].filter(Boolean).join('.'));
  return refused(
    problems.replace(/opening\.(\d+)\.quantity/g, (path, nth) => headings[Number(nth)] ?? path)
  );
};

const BATCH = 50;

type Outcome = 'created' | 'updated' | 'unchanged';

const isChanged = (row: ItemRow, { gtin, name, low_at: lowAt }: ItemRowInput): boolean =>
  row.archived_at !== null ||
  (gtin !== undefined && (row.gtin === null || gtinDigest(row.gtin) !== gtinDigest(gtin))) ||
  (name !== undefined && row.name !== name) ||
  (lowAt !== undefined && Number(row.low_at ?? 0) !== lowAt);

const importRow = async (app: App, input: ItemRowInput): Promise<Outcome> => {
  // The host's, which a site may extend.
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
  const archived = row.archived_at === null ? undefined : false;
  await items.updateItem(Number(row.id), { gtin, name, low_at: lowAt, archived });
  return 'updated';
};

/** The owners of a file's GTINs, of which a dry run leaves nothing in the database. */
class GivenGtins {
  private readonly skus = new Map<string, string>();
  private readonly gtins = new Map<string, string>();

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

type Row = FileRow<ItemRowInput>;

class ItemImport extends FileImport<ItemColumn, ItemRowInput, Issue> {
  /** In a dry run: what earlier rows would have made. */
  private readonly made = new Set<string>();
  private readonly given = new GivenGtins();

  protected readonly readHeader = readItemHeader;
  protected readonly readRow = readItemRow;

  protected faultOf(line: number, message: string) {
    return { line, sku: null, message };
  }

  protected async importRows(rows: readonly Row[]): Promise<void> {
    try {
      this.count(rows, await this.together(rows));
    } catch {
      // One bad row ends the transaction of all: then each has its own.
      for (const row of rows) await this.applyOne(row);
    }
  }

  private async applyOne(one: Row): Promise<void> {
    const { line, cells, row } = one;
    try {
      this.count([one], await throughFaults(this.app, () => this.together([one])));
    } catch (error) {
      this.fail({ line, sku: row.sku, message: rowFault(error) }, cells);
    }
    await giveWay();
  }

  private together(rows: readonly Row[]): Promise<Outcome[]> {
    const { app, made, given } = this;
    const work = async (): Promise<Outcome[]> => {
      const outcomes: Outcome[] = [];
      for (const { row } of rows) {
        if (given.isOfOther(row)) throw fieldError('gtin', 'is taken already');
        outcomes.push(made.has(row.sku) ? 'updated' : await importRow(app, row));
      }
      return outcomes;
    };
    if (this.options.dryRun) return withTransientRetry(() => app.db.rolledBack(work));
    return app.db.retrying(work);
  }

  private count(rows: readonly Row[], outcomes: readonly Outcome[]): void {
    outcomes.forEach((outcome, index) => {
      this.report[outcome] += 1;
      const row = rows[index]?.row;
      if (!this.options.dryRun || !row) return;
      if (outcome === 'created') this.made.add(row.sku);
      this.given.note(row);
    });
  }
}

/**
 * Imports items from a CSV file (UTF-8; comma, semicolon or tab). A row with a known `sku` changes that item and
 * restores an archived one; empty cells change nothing. Each batch is a transaction; a bad row fails only itself.
 * @throws ValidationError if the header is wrong; nothing has been imported then
 */
export const importItems = (
  app: App,
  file: Readable,
  options: ImportRun = {}
): Promise<ItemImportReport> => new ItemImport(app, options, BATCH).run(file);
