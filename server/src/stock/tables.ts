import type { PlainTable, RowOf } from '../database/tables/plain-tables';
import { digestOf } from '../runtime/text';
import type { MovementType } from './rules/fold';

export const ITEMS_TABLE = 'switchboard_items';
export const LOCATIONS_TABLE = 'switchboard_locations';
export const LEVELS_TABLE = 'switchboard_levels';
export const MOVEMENTS_TABLE = 'switchboard_movements';
export const DOCUMENTS_TABLE = 'switchboard_stock_documents';

/** PostgreSQL and MySQL hand `biginteger` columns out as text. */
export type Big = number | string;

/**
 * Archived items (`archived_at`) keep levels and movements; no record finds them. `product_gone`: its product was
 * deleted. `*_digest` columns hold `digestOf(…)`: equal only if byte-equal, whatever the collation. MySQL's equate `A1`
 * and `a1`, and PostgreSQL may normalise.
 */
export const itemTable = {
  tableName: ITEMS_TABLE,
  attributes: {
    sku: { type: 'text' },
    sku_digest: { type: 'string' },
    gtin: { type: 'text', null: true },
    gtin_digest: { type: 'string', null: true },
    name: { type: 'text', null: true },
    low_at: { type: 'biginteger' },
    archived_at: { type: 'biginteger', null: true },
    product_gone: { type: 'boolean', null: true },
    created_at: { type: 'biginteger' },
    updated_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_item_sku', columns: ['sku_digest'], type: 'unique' },
    { name: 'sb_item_gtin', columns: ['gtin_digest'] },
  ],
} satisfies PlainTable;

export const locationTable = {
  tableName: LOCATIONS_TABLE,
  attributes: {
    name: { type: 'text' },
    code: { type: 'text' },
    code_digest: { type: 'string' },
    is_default: { type: 'boolean' },
    created_at: { type: 'biginteger' },
    updated_at: { type: 'biginteger' },
  },
  indexes: [{ name: 'sb_location_code', columns: ['code_digest'], type: 'unique' }],
} satisfies PlainTable;

/**
 * `count_*`: the count that `quantity` starts from; `accepted_count_at`: the newest live one, queued ones too.
 * `low_at`: own low mark; null uses the item's.
 */
export const levelTable = {
  tableName: LEVELS_TABLE,
  attributes: {
    item_id: { type: 'integer' },
    location_id: { type: 'integer' },
    opening: { type: 'biginteger' },
    quantity: { type: 'biginteger' },
    count_at: { type: 'biginteger', null: true },
    count_seq: { type: 'biginteger', null: true },
    count_line: { type: 'integer', null: true },
    accepted_count_at: { type: 'biginteger', null: true },
    low_at: { type: 'biginteger', null: true },
    updated_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_level_place', columns: ['item_id', 'location_id'], type: 'unique' },
    { name: 'sb_level_location', columns: ['location_id'] },
  ],
} satisfies PlainTable;

export const TRIAL_COUNTS_TABLE = 'switchboard_pos_trial_counts';

/** Test mode's newest accepted count of an item at a location: it makes counts stale in test mode only. */
export const trialCountTable: PlainTable = {
  tableName: TRIAL_COUNTS_TABLE,
  attributes: {
    item_id: { type: 'integer' },
    location_id: { type: 'integer' },
    at: { type: 'biginteger' },
  },
  indexes: [{ name: 'sb_trial_count_place', columns: ['item_id', 'location_id'], type: 'unique' }],
};

/**
 * Append-only. `at` is the effective time; `seq` and `line` order counts of equal times. `document_id` is its transfer
 * or stocktake, `made_by` the user of a manual one. `undone`: a withdrawn count's line, which no level starts from.
 */
export const movementTable = {
  tableName: MOVEMENTS_TABLE,
  attributes: {
    level_id: { type: 'integer' },
    type: { type: 'string' },
    at: { type: 'biginteger' },
    seq: { type: 'biginteger', null: true },
    line: { type: 'integer', null: true },
    quantity: { type: 'biginteger' },
    effect: { type: 'biginteger' },
    quantity_after: { type: 'biginteger' },
    reason: { type: 'string', null: true },
    note: { type: 'text', null: true },
    event_id: { type: 'integer', null: true },
    document_id: { type: 'integer', null: true },
    made_by: { type: 'text', null: true },
    undone: { type: 'boolean', null: true },
    created_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_movement_time', columns: ['level_id', 'at'] },
    { name: 'sb_movement_type', columns: ['level_id', 'type', 'at'] },
    { name: 'sb_movement_log', columns: ['level_id', 'id'] },
    { name: 'sb_movement_event', columns: ['event_id'] },
    { name: 'sb_movement_document', columns: ['document_id'] },
  ],
} satisfies PlainTable;

/** Transfers and stocktakes by hand; lines are movements. `location_id`: source, or counted place. */
export const documentTable = {
  tableName: DOCUMENTS_TABLE,
  attributes: {
    kind: { type: 'string' },
    external_id: { type: 'text', null: true },
    external_digest: { type: 'string' },
    at: { type: 'biginteger' },
    location_id: { type: 'integer' },
    to_location_id: { type: 'integer', null: true },
    made_by: { type: 'text', null: true },
    created_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_document_external', columns: ['external_digest'], type: 'unique' },
    { name: 'sb_document_kind', columns: ['kind', 'id'] },
  ],
} satisfies PlainTable;

export type DocumentRow = RowOf<typeof documentTable> & { kind: 'transfer' | 'stocktake' };

export type ItemRow = RowOf<typeof itemTable>;

export type LocationRow = RowOf<typeof locationTable>;

export type LevelRow = RowOf<typeof levelTable>;

export type MovementRow = RowOf<typeof movementTable> & { type: MovementType };

export const skuDigest = (sku: string): string => digestOf(`sku:${sku}`);

export const CHANGES_TABLE = 'switchboard_catalogue_changes';
export const CATALOGUE_TABLE = 'switchboard_catalogue';
export const CATALOGUE_HEAD_TABLE = 'switchboard_catalogue_head';
export const RETIRED_SKUS_TABLE = 'switchboard_retired_skus';
export const EPOCHS_TABLE = 'switchboard_catalogue_epochs';

/** Changed items without a number since. Changes only insert; numbering deletes the rows it has seen, one by one. */
export const changesTable = {
  tableName: CHANGES_TABLE,
  attributes: {
    item_id: { type: 'integer' },
  },
} satisfies PlainTable;

/** The number of each item's latest change, and when it was given; epoch milliseconds. */
export const catalogueTable = {
  tableName: CATALOGUE_TABLE,
  attributes: {
    item_id: { type: 'integer' },
    number: { type: 'biginteger' },
    numbered_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_catalogue_item', columns: ['item_id'], type: 'unique' },
    { name: 'sb_catalogue_number', columns: ['number'] },
  ],
} satisfies PlainTable;

/** One row: the last number that was given. The transaction that gives numbers locks it until the commit. */
export const catalogueHeadTable: PlainTable = {
  tableName: CATALOGUE_HEAD_TABLE,
  attributes: {
    number: { type: 'biginteger' },
  },
};

/** Old SKUs of renamed items, which no item has now. `number` is the catalogue's; null: not numbered yet. */
export const retiredSkusTable = {
  tableName: RETIRED_SKUS_TABLE,
  attributes: {
    sku: { type: 'text' },
    sku_digest: { type: 'string' },
    number: { type: 'biginteger', null: true },
  },
  indexes: [
    { name: 'sb_retired_sku', columns: ['sku_digest'], type: 'unique' },
    { name: 'sb_retired_number', columns: ['number'] },
  ],
} satisfies PlainTable;

/** A row for each process that gave numbers; `number` is the last that was given before it. */
export const epochsTable = {
  tableName: EPOCHS_TABLE,
  attributes: {
    token: { type: 'string' },
    number: { type: 'biginteger' },
  },
} satisfies PlainTable;

export const stockTables: PlainTable[] = [
  itemTable,
  locationTable,
  levelTable,
  movementTable,
  trialCountTable,
  documentTable,
  changesTable,
  catalogueTable,
  catalogueHeadTable,
  retiredSkusTable,
  epochsTable,
];

export const HEAD_ID = 1;

export type EpochRow = RowOf<typeof epochsTable>;

export type ChangeRow = RowOf<typeof changesTable>;

export type CatalogueRow = RowOf<typeof catalogueTable>;

export type RetiredRow = RowOf<typeof retiredSkusTable>;
