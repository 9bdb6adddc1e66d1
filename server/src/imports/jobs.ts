import { randomUUID } from 'node:crypto';
import { errors } from '@strapi/utils';
import type { ImportJob } from '../../../shared/contracts/imports';
import { firstOrNotFound } from '../database/retry';
import type { PlainTable } from '../database/tables/plain-tables';
import { errorText, isoTime, isoTimeOrNull } from '../runtime/text';
import type { App } from '../app';
import type { ImportCounts, ImportWatch } from '../public';

const IMPORTS_TABLE = 'switchboard_imports';
const IMPORT_REJECTS_TABLE = 'switchboard_import_rejects';

/** `header` is JSON: the headings of what is listed. `seen_at` is when its import last got on. */
export const importTable: PlainTable = {
  tableName: IMPORTS_TABLE,
  attributes: {
    id: { type: 'increments' },
    token: { type: 'string' },
    kind: { type: 'string' },
    state: { type: 'string' },
    dry_run: { type: 'boolean' },
    header: { type: 'text' },
    total: { type: 'integer' },
    created: { type: 'integer' },
    updated: { type: 'integer' },
    unchanged: { type: 'integer' },
    failed: { type: 'integer' },
    error: { type: 'text' },
    made_by: { type: 'text' },
    started_at: { type: 'biginteger' },
    seen_at: { type: 'biginteger' },
    finished_at: { type: 'biginteger' },
  },
  indexes: [{ name: 'sb_import_token', columns: ['token'], type: 'unique' }],
};

/** Rows that were not imported, as they came, or levels that differ. `cells` is JSON. */
export const importRejectTable: PlainTable = {
  tableName: IMPORT_REJECTS_TABLE,
  attributes: {
    id: { type: 'increments' },
    import_id: { type: 'integer' },
    line: { type: 'integer' },
    message: { type: 'text' },
    cells: { type: 'text' },
  },
  indexes: [{ name: 'sb_import_reject', columns: ['import_id', 'id'] }],
};

export const IMPORT_KINDS = ['contacts', 'items', 'levels'] as const;
export type ImportKind = (typeof IMPORT_KINDS)[number];

interface ImportRow {
  id: number;
  kind: ImportKind;
  state: 'running' | 'done' | 'failed';
  dry_run: boolean | number;
  header: string;
  total: number;
  created: number;
  updated: number;
  unchanged: number;
  failed: number;
  error: string | null;
  made_by: string | null;
  started_at: number | string;
  seen_at: number | string;
  finished_at: number | string | null;
}

interface ImportRejectRow {
  id: number;
  import_id: number;
  line: number;
  message: string;
  cells: string;
}

/** Rejects, or differences, that are kept of one import. */
const REJECTS = 10_000;
/** An import that did not get on for this long has lost its process. */
const LOST_MS = 120_000;
const KEEP_MS = 90 * 86_400_000;
const PAGE = 500;

interface Reject {
  line: number;
  message: string;
  cells: string;
}

interface NewImport {
  kind: ImportKind;
  dryRun: boolean;
  madeBy: string | null;
}

/** Writes down how one import gets on. */
interface ImportTracker extends ImportWatch {
  /** Resolves with its id once the header was read. */
  readonly started: Promise<number>;
  finish(): Promise<void>;
  fail(error: unknown): Promise<void>;
}

const forgetOld = async (app: App, now: number): Promise<void> => {
  await app.db.transaction(async (tx) => {
    const old = (await tx
      .table(IMPORTS_TABLE)
      .select('id')
      .where('started_at', '<', now - KEEP_MS)
      .limit(PAGE)) as { id: number }[];
    const ids = old.map(({ id }) => id);
    if (ids.length === 0) return;
    await tx.table(IMPORT_REJECTS_TABLE).whereIn('import_id', ids).delete();
    await tx.table(IMPORTS_TABLE).whereIn('id', ids).delete();
  });
};

/** Begins to write an import down, with its first row. */
export const trackImport = (app: App, { kind, dryRun, madeBy }: NewImport): ImportTracker => {
  const clock = app.clock;
  let id: number | null = null;
  let kept = 0;
  const waiting: Reject[] = [];
  let begin: (id: number) => void = () => undefined;
  const started = new Promise<number>((resolve) => {
    begin = resolve;
  });

  const update = async (values: Record<string, unknown>): Promise<void> => {
    if (id === null) return;
    const importId = id;
    const rejects = waiting.splice(0);
    await app.db.transaction(async (tx) => {
      await tx.insert(
        IMPORT_REJECTS_TABLE,
        rejects.map((reject) => ({ import_id: importId, ...reject }))
      );
      await tx
        .table(IMPORTS_TABLE)
        .where({ id: importId })
        .update({ ...values, seen_at: clock.now() });
    });
  };

  return {
    started,

    async header(headings) {
      const now = clock.now();
      await forgetOld(app, now);
      const token = randomUUID();
      const db = await app.db.current();
      await db.table(IMPORTS_TABLE).insert({
        token,
        kind,
        state: 'running',
        dry_run: dryRun,
        header: JSON.stringify(headings),
        total: 0,
        created: 0,
        updated: 0,
        unchanged: 0,
        failed: 0,
        made_by: madeBy,
        started_at: now,
        seen_at: now,
      });
      const row = (await db.table(IMPORTS_TABLE).where({ token }).first()) as ImportRow;
      id = Number(row.id);
      begin(id);
    },

    failed(line, message, cells) {
      if (kept >= REJECTS) return;
      kept += 1;
      waiting.push({ line, message, cells: JSON.stringify(cells) });
    },

    async advance({ total, created, updated, unchanged, failed }: ImportCounts) {
      await update({ total, created, updated, unchanged, failed });
    },

    finish: () => update({ state: 'done', finished_at: clock.now() }),

    fail: (error) =>
      update({
        state: 'failed',
        error: error instanceof errors.ApplicationError ? error.message : errorText(error),
        finished_at: clock.now(),
      }),
  };
};

const lostText = (kind: ImportKind): string =>
  kind === 'levels'
    ? 'The process that checked the levels has ended. Check them again.'
    : 'The process that imported it has ended. Send the file again.';

const toJob = (row: ImportRow, now: number): ImportJob => {
  const lost = row.state === 'running' && Number(row.seen_at) < now - LOST_MS;
  return {
    id: Number(row.id),
    kind: row.kind,
    state: lost ? 'failed' : row.state,
    dry_run: Boolean(row.dry_run),
    total: Number(row.total),
    created: Number(row.created),
    updated: Number(row.updated),
    unchanged: Number(row.unchanged),
    failed: Number(row.failed),
    error: lost ? lostText(row.kind) : row.error,
    made_by: row.made_by,
    started_at: isoTime(Number(row.started_at)),
    finished_at: isoTimeOrNull(row.finished_at),
  };
};

const rowOf = async (app: App, id: number): Promise<ImportRow> =>
  firstOrNotFound<ImportRow>((await app.db.current()).table(IMPORTS_TABLE).where({ id }), 'Import');

/** How an import gets on. @throws NotFoundError (404) */
export const readJob = async (app: App, id: number): Promise<ImportJob> =>
  toJob(await rowOf(app, id), app.clock.now());

/** The headings of an import's file. */
export const headingsOf = async (app: App, id: number): Promise<string[]> =>
  JSON.parse((await rowOf(app, id)).header) as string[];

/** Rows that were not imported, in the order in which they failed, some at a time. */
export async function* rejectsOf(
  app: App,
  id: number
): AsyncGenerator<{ line: number; message: string; cells: string[] }> {
  let after = 0;
  for (;;) {
    const db = await app.db.current();
    const rows = (await db
      .table(IMPORT_REJECTS_TABLE)
      .where({ import_id: id })
      .where('id', '>', after)
      .orderBy('id')
      .limit(PAGE)) as ImportRejectRow[];
    for (const { line, message, cells } of rows) {
      yield { line: Number(line), message, cells: JSON.parse(cells) as string[] };
    }
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) return;
    after = Number(last.id);
  }
}
