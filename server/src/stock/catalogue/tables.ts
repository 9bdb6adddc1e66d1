import type { PlainTable } from '../../database/tables/plain-tables';
import type { Big } from '../tables';

export const CHANGES_TABLE = 'switchboard_catalogue_changes';
export const CATALOGUE_TABLE = 'switchboard_catalogue';
export const CATALOGUE_HEAD_TABLE = 'switchboard_catalogue_head';
export const RETIRED_SKUS_TABLE = 'switchboard_retired_skus';
export const EPOCHS_TABLE = 'switchboard_catalogue_epochs';

/**
 * Items that a transaction changed and that were not given a number since. Whoever changes an item
 * only adds here; whoever gives numbers takes away what it has seen, row by row.
 */
export const changesTable: PlainTable = {
  tableName: CHANGES_TABLE,
  attributes: {
    id: { type: 'increments' },
    item_id: { type: 'integer' },
  },
};

/** The number of each item's latest change, and when it was given; epoch milliseconds. */
export const catalogueTable: PlainTable = {
  tableName: CATALOGUE_TABLE,
  attributes: {
    id: { type: 'increments' },
    item_id: { type: 'integer' },
    number: { type: 'biginteger' },
    numbered_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_catalogue_item', columns: ['item_id'], type: 'unique' },
    { name: 'sb_catalogue_number', columns: ['number'] },
  ],
};

/** One row: the last number that was given. Whoever gives numbers locks it until the commit. */
export const catalogueHeadTable: PlainTable = {
  tableName: CATALOGUE_HEAD_TABLE,
  attributes: {
    id: { type: 'increments' },
    number: { type: 'biginteger' },
  },
};

/**
 * SKUs that items had and no item has now: the old article of one that was renamed. `number` is that of
 * the catalogue; null: it waits for one.
 */
export const retiredSkusTable: PlainTable = {
  tableName: RETIRED_SKUS_TABLE,
  attributes: {
    id: { type: 'increments' },
    sku: { type: 'text' },
    sku_digest: { type: 'string' },
    number: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_retired_sku', columns: ['sku_digest'], type: 'unique' },
    { name: 'sb_retired_number', columns: ['number'] },
  ],
};

/** A row for each process that gave numbers; `number` is the last that was given before it. */
export const epochsTable: PlainTable = {
  tableName: EPOCHS_TABLE,
  attributes: {
    id: { type: 'increments' },
    token: { type: 'string' },
    number: { type: 'biginteger' },
  },
};

export const HEAD_ID = 1;

export interface ChangeRow {
  id: number;
  item_id: number;
}

export interface CatalogueRow {
  item_id: number;
  number: Big;
}

export interface RetiredRow {
  id: number;
  sku: string;
  number: Big | null;
}
