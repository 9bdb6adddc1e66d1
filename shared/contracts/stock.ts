/** Types of `/switchboard/{items,locations,levels}…`; docs/tills.md#the-rule-of-stock. Times are ISO 8601. */

export interface Location {
  id: number;
  name: string;
  code: string;
  /** Where stock goes that names no location; every site has exactly one. */
  is_default: boolean;
  created_at: string;
  updated_at: string;
}

export interface LocationInput {
  name: string;
  code: string;
}

export interface Item {
  id: number;
  sku: string;
  gtin: string | null;
  name: string | null;
  /** `stock.low` is published when a level falls to this quantity or below it. */
  low_at: number;
  created_at: string;
  updated_at: string;
}

export interface ItemInput {
  sku: string;
  gtin?: string | null;
  name?: string | null;
  /** Default: 0. */
  low_at?: number;
  /** What the shelves hold before any record; timeless: any count supersedes it. */
  opening?: { location?: number | string; quantity: number }[];
}

/** Relative: `quantity` is what the shelf gains, negative for what it loses. */
export interface AdjustInput {
  /** A location's id or code; the default location if left out. */
  location?: number | string;
  quantity: number;
  reason?: string;
  /** ISO 8601 with an offset, not in the future; now if left out. */
  occurred_at?: string;
}

export interface LocationSummary {
  id: number;
  code: string;
  name: string;
}

export interface Level {
  id: number;
  item_id: number;
  sku: string;
  gtin: string | null;
  name: string | null;
  location: LocationSummary;
  quantity: number;
  opening: number;
  last_counted_at: string | null;
}

/** One row of `GET /switchboard/stock-grid`: an item with every location that has a level of it. */
export interface StockGridRow {
  id: number;
  sku: string;
  gtin: string | null;
  name: string | null;
  low_at: number;
  /** Over all locations. */
  total: number;
  /** A location holds `low_at` or less. */
  low: boolean;
  /** A location holds less than nothing. */
  negative: boolean;
  levels: {
    id: number;
    location: LocationSummary;
    quantity: number;
    last_counted_at: string | null;
  }[];
}

export interface Movement {
  id: number;
  level_id: number;
  type: 'sale' | 'refund' | 'adjustment' | 'count';
  /** What it is ordered by. */
  effective_at: string;
  /** As asked: what the shelf should gain; for a count, what was counted. */
  quantity: number;
  /** What it changed when it was written; 0 with a `reason`. */
  effect: number;
  /** Why the effect is what it is: `covered_by_count`, `stale_count`, `no_restock`, … */
  reason: string | null;
  /** The level after it was written. */
  quantity_after: number;
  /** Free words of whoever sent it. */
  note: string | null;
  event_id: number | null;
  created_at: string;
}

/** A movement beside the item and the location it belongs to. */
export interface PlacedMovement extends Movement {
  sku: string;
  location: LocationSummary;
}

export interface RebuildDifference {
  level_id: number;
  sku: string;
  location: string;
  quantity: number;
  should_be: number;
}

export interface RebuildReport {
  levels: number;
  differences: RebuildDifference[];
  /** Whether the differences were mended. */
  mended: boolean;
}
