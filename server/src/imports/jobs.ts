import { randomUUID } from 'node:crypto';
import type { FileKind, ImportJob } from '../../../shared/contracts/imports';
import type { RejectedImport } from '../../../shared/contracts/overview';
import { firstOrNotFound } from '../database/retry';
import type { PlainTable, RowOf } from '../database/tables/plain-tables';
import { isoTime, isoTimeOrNull } from '../runtime/text';
import { NO_ROWS, reasonOf } from './file-import';
import type { App } from '../app';
import type { ImportCounts, ImportWatch } from '../public';

const IMPORTS_TABLE = 'switchboard_imports';
const IMPORT_REJECTS_TABLE = 'switchboard_import_rejects';

/** `header` is JSON: the headings of what is listed. `seen_at` is when its import last got on. */
export const importTable = {
  tableName: IMPORTS_TABLE,
  attributes: {
    token: { type: 'string' },
    kind: { type: 'string' },
    state: { type: 'string' },
    dry_run: { type: 'boolean' },
    header: { type: 'text' },
    /** How many there are. Nullable: jobs of version 0.2 have none. */
    file_rows: { type: 'integer', null: true },
    total: { type: 'integer' },
    created: { type: 'integer' },
    updated: { type: 'integer' },
    unchanged: { type: 'integer' },
    failed: { type: 'integer' },
    error: { type: 'text', null: true },
    made_by: { type: 'text', null: true },
    started_at: { type: 'biginteger' },
    seen_at: { type: 'biginteger' },
    finished_at: { type: 'biginteger', null: true },
  },
  indexes: [{ name: 'sb_import_token', columns: ['token'], type: 'unique' }],
} satisfies PlainTable;

/** Rows that were not imported, as they came, or levels that differ. `cells` is JSON. */
export const importRejectTable = {
  tableName: IMPORT_REJECTS_TABLE,
  attributes: {
    import_id: { type: 'integer' },
    line: { type: 'integer' },
    message: { type: 'text' },
    cells: { type: 'text' },
  },
  indexes: [{ name: 'sb_import_reject', columns: ['import_id', 'id'] }],
} satisfies PlainTable;

/** Times are epoch milliseconds. */
type ImportRow = RowOf<typeof importTable> & Pick<ImportJob, 'kind' | 'state'>;
type RejectRow = RowOf<typeof importRejectTable>;

/** Rejects, or differences, that are kept of one import. */
const REJECTS = 10_000;
/** An import that did not get on for this long has lost its process. */
const LOST_MS = 120_000;
const KEEP_MS = 90 * 86_400_000;
const PAGE = 500;

const forgetOld = (app: App, now: number): Promise<void> =>
  app.db.transaction(async (tx) => {
    const old = tx.table(IMPORTS_TABLE).where('started_at', '<', now - KEEP_MS);
    const ids: number[] = await old.limit(PAGE).pluck('id');
    if (ids.length === 0) return;
    await tx.table(IMPORT_REJECTS_TABLE).whereIn('import_id', ids).delete();
    await tx.table(IMPORTS_TABLE).whereIn('id', ids).delete();
  });

/** Writes down how one import gets on, from its header on. */
export class ImportTracker implements ImportWatch {
  private begin: (id: number) => void = () => undefined;
  readonly started = new Promise<number>((resolve) => (this.begin = resolve));
  /** How many rows there are; null: nobody has counted. */
  rows: number | null = null;
  private id: number | null = null;
  private kept = 0;
  private waiting: Pick<RejectRow, 'line' | 'message' | 'cells'>[] = [];

  constructor(
    private readonly app: App,
    private readonly job: { kind: ImportJob['kind']; dryRun: boolean; madeBy: string | null }
  ) {}

  async header(headings: readonly string[]): Promise<void> {
    const { kind, dryRun, madeBy } = this.job;
    const now = this.app.clock.now();
    await forgetOld(this.app, now);
    const token = randomUUID();
    const db = await this.app.db.current();
    await db.table(IMPORTS_TABLE).insert({
      token,
      kind,
      state: 'running',
      dry_run: dryRun,
      header: JSON.stringify(headings),
      file_rows: this.rows,
      ...NO_ROWS,
      made_by: madeBy,
      started_at: now,
      seen_at: now,
    });
    const row = (await db.table(IMPORTS_TABLE).where({ token }).first('id')) as ImportRow;
    this.id = Number(row.id);
    this.begin(this.id);
  }

  failed(line: number, message: string, cells: readonly string[]): void {
    if (this.kept >= REJECTS) return;
    this.kept += 1;
    this.waiting.push({ line, message, cells: JSON.stringify(cells) });
  }

  advance({ total, created, updated, unchanged, failed }: ImportCounts): Promise<void> {
    return this.update({ total, created, updated, unchanged, failed });
  }

  finish(): Promise<void> {
    return this.update({ state: 'done', finished_at: this.app.clock.now() });
  }

  fail(error: unknown): Promise<void> {
    const finished_at = this.app.clock.now();
    return this.update({ state: 'failed', error: reasonOf(error), finished_at });
  }

  private async update(values: Record<string, unknown>): Promise<void> {
    const { id } = this;
    if (id === null) return;
    const rejects = this.waiting.splice(0).map((reject) => ({ import_id: id, ...reject }));
    await this.app.db.transaction(async (tx) => {
      await tx.insert(IMPORT_REJECTS_TABLE, rejects);
      const seen = { ...values, seen_at: this.app.clock.now() };
      await tx.table(IMPORTS_TABLE).where({ id }).update(seen);
    });
  }
}

const LOST = {
  levels: 'The process that checked the levels has ended. Check them again.',
  file: 'The process that imported it has ended. Send the file again.',
};

/** How an import gets on, and the headings of its file. @throws NotFoundError (404) */
export const readJob = async (app: App, id: number) => {
  const db = await app.db.current();
  const row = await firstOrNotFound<ImportRow>(db.table(IMPORTS_TABLE).where({ id }), 'Import');
  const { kind, made_by, started_at, finished_at } = row;
  const { total, created, updated, unchanged, failed } = row;
  const isLost = row.state === 'running' && Number(row.seen_at) < app.clock.now() - LOST_MS;
  const job: ImportJob = {
    id: Number(row.id),
    kind,
    state: isLost ? 'failed' : row.state,
    dry_run: Boolean(row.dry_run),
    // Once it is done, the parser has counted them.
    rows: row.state === 'done' ? total : row.file_rows,
    ...{ total, created, updated, unchanged, failed },
    error: isLost ? LOST[kind === 'levels' ? kind : 'file'] : row.error,
    made_by,
    started_at: isoTime(Number(started_at)),
    finished_at: isoTimeOrNull(finished_at),
  };
  return { job, headings: JSON.parse(row.header) as string[] };
};

/** The imports of these kinds that left rows out, if they were the latest of their kind. @param since epoch milliseconds */
export const rejectedImports = async (
  app: App,
  since: number,
  kinds: readonly FileKind[]
): Promise<RejectedImport[]> => {
  const db = await app.db.current();
  const rows = (await db
    .table(IMPORTS_TABLE)
    .where({ dry_run: false })
    .whereIn('kind', [...kinds])
    .where('finished_at', '>=', since)
    .orderBy('id', 'desc')
    .limit(PAGE)) as (ImportRow & { kind: FileKind })[];
  return kinds
    .flatMap((kind) => rows.find((row) => row.kind === kind) ?? [])
    .filter(({ failed }) => failed > 0)
    .map(({ id, kind, failed, finished_at: at }) => {
      return { id: Number(id), kind, failed, finished_at: isoTime(Number(at)) };
    });
};

/** Rows that were not imported, in the order in which they failed, some at a time. */
export async function* rejectsOf(app: App, id: number) {
  for (let after = 0; ;) {
    const db = await app.db.current();
    const rows = (await db
      .table(IMPORT_REJECTS_TABLE)
      .where({ import_id: id })
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE)) as RejectRow[];
    for (const { line, message, cells } of rows) {
      yield { line: Number(line), message, cells: JSON.parse(cells) as string[] };
    }
    if (rows.length < PAGE) return;
    after = Number(rows.at(-1)?.id);
  }
}
