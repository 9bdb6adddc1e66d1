import type { PlainTable } from '../database/tables/plain-tables';

export const IMPORTS_TABLE = 'switchboard_imports';
export const IMPORT_REJECTS_TABLE = 'switchboard_import_rejects';

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

export interface ImportRow {
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

export interface ImportRejectRow {
  id: number;
  import_id: number;
  line: number;
  message: string;
  cells: string;
}
