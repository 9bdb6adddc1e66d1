/** Columns that a file to import may have; one with more is refused (docs/shop.md#import-products). */
export const IMPORT_COLUMNS_MAX = 200;

/** Columns of text and of numbers that a file of contacts may have besides `tags` (docs/crm.md#import). */
export const CONTACT_TEXT_COLUMNS = [
  'email',
  'first_name',
  'last_name',
  'phone',
  'job_title',
  'status',
  'lifecycle_stage',
  'company_id',
  'source',
] as const;
export const CONTACT_NUMBER_COLUMNS = ['score', 'lifetime_value', 'owner_id'] as const;
/** Columns that hold a JSON object, besides `address.<name>` and `fields.<name>` for single texts of it. */
export const CONTACT_BAGS = ['address', 'fields'] as const;
/** Columns of an export that an import leaves out. */
export const CONTACT_READ_ONLY_COLUMNS = [
  'id',
  'created_at',
  'updated_at',
  'subscribed_at',
  'unsubscribed_at',
  'trashed_at',
] as const;
/** The text columns of a file of items; it also has `low_at` and `quantity` (docs/shop.md#import-products). */
export const ITEM_TEXT_COLUMNS = ['sku', 'gtin', 'name'] as const;

/**
 * `GET /switchboard/imports/:id`; docs/shop.md#import-products. Times are ISO 8601. A check of the
 * levels is one of them, too (docs/shop.md#check-stock-levels): its rows are levels, `updated` those
 * that differ from their movements.
 */
export interface ImportJob {
  id: number;
  kind: 'contacts' | 'items' | 'levels';
  state: 'running' | 'done' | 'failed';
  /** Nothing was changed: the numbers say what would be. */
  dry_run: boolean;
  /** How many rows there are; null: not known. */
  rows: number | null;
  /** Rows so far; once it is done, all. */
  total: number;
  created: number;
  updated: number;
  unchanged: number;
  failed: number;
  /** Why it ended early. */
  error: string | null;
  made_by: string | null;
  started_at: string;
  finished_at: string | null;
}

/** Kinds of files that can be imported. */
export type FileKind = Exclude<ImportJob['kind'], 'levels'>;
