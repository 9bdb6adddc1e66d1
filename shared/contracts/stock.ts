import type { ImportJob } from './imports';

/** Types of `/switchboard/{items,locations,levels}…`; docs/contract-pos.md#the-rule-of-stock. Times are ISO 8601. */

export interface Location {
  id: number;
  name: string;
  code: string;
  /** The location of stock that names none; every site has exactly one. */
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
  /** Records that name it wait for a mapping, and tills are told that it is gone; null: it is in use. */
  archived_at: string | null;
  created_at: string;
  updated_at: string;
}

/** The site's own product that has an item's SKU; of the content type that the option `stock` names. */
export interface LinkedProduct {
  content_type: string;
  document_id: string;
  /** Its name where the option maps one, else the SKU. */
  label: string;
}

/** `GET /switchboard/items/:id`. */
export interface ItemDetail extends Item {
  /** null if the site maps no products, or has none of this SKU. */
  product: LinkedProduct | null;
}

export interface ItemInput {
  sku: string;
  gtin?: string | null;
  name?: string | null;
  /** Default: 0. */
  low_at?: number;
  /** The stock before any record; timeless: any count supersedes it. */
  opening?: { location?: number | string; quantity: number }[];
}

/**
 * `quantity` is what the shelf gains, negative for what it loses; `counted` what it is set to. One of
 * the two.
 */
export interface AdjustInput {
  /** A location's id or code; the default location if left out. */
  location?: number | string;
  quantity?: number;
  counted?: number;
  reason?: string;
  /** ISO 8601 with an offset, not in the future; now if left out. */
  occurred_at?: string;
  /** Answers with a `ChangePreview`, and stores nothing. */
  preview?: boolean;
}

/** A level now, and after a change by hand. */
export interface ChangePreview {
  location: LocationSummary;
  before: number;
  after: number;
  /** Why it has no effect, where it has none. */
  reason: string | null;
}

/** Body of `POST /switchboard/transfers`; docs/shop.md#transfers. */
export interface TransferInput {
  /** A repeated id is the same transfer. */
  external_id?: string;
  /** Locations, by id or code. */
  from: number | string;
  to: number | string;
  /** ISO 8601 with an offset, not in the future; now if left out. */
  occurred_at?: string;
  /** Items by id or SKU; quantities above 0. */
  lines: { item: number | string; quantity: number; reason?: string }[];
}

/** A line of a transfer or a stocktake is about this item. */
export interface DocumentLine {
  item: { id: number; sku: string; name: string | null };
}

export interface Transfer {
  id: number;
  external_id: string | null;
  from: LocationSummary;
  to: LocationSummary;
  occurred_at: string;
  made_by: string | null;
  created_at: string;
  lines: (DocumentLine & {
    quantity: number;
    /** Both sides of the transfer; an effect of 0 has a reason: a later count stands. */
    movements: {
      id: number;
      level_id: number;
      quantity: number;
      effect: number;
      reason: string | null;
    }[];
  })[];
  /** Only in the answer to a POST: this external id was there already. */
  duplicate?: boolean;
}

/** `GET /switchboard/stocktakes/clock`: the server's time, ISO 8601, by which counts are dated. */
export interface StockClock {
  now: string;
}

/** Body of `POST /switchboard/stocktakes`; docs/shop.md#counts. */
export interface StocktakeInput {
  location: number | string;
  /** When counting began; now if left out. Later sales are subtracted from the count. */
  occurred_at?: string;
  counts: { item: number | string; quantity: number; reason?: string }[];
  preview?: boolean;
}

export interface StocktakeLine extends DocumentLine {
  counted: number;
  /** The level before the count, and after it. */
  before: number;
  after: number;
  /** `stale_count`: a newer count stands. */
  reason: string | null;
}

export interface Stocktake {
  /** null in a preview, as is `created_at`. */
  id: number | null;
  location: LocationSummary;
  occurred_at: string;
  made_by: string | null;
  created_at: string | null;
  counts: StocktakeLine[];
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
  /** Its own low mark; null: its item's. */
  low_at: number | null;
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
  /** A location holds no more than its low mark, or its item's. */
  low: boolean;
  /** A location holds less than nothing. */
  negative: boolean;
  levels: {
    id: number;
    location: LocationSummary;
    quantity: number;
    /** Its own low mark; null: its item's. */
    low_at: number | null;
    low: boolean;
    last_counted_at: string | null;
  }[];
}

export type MovementType = 'sale' | 'refund' | 'adjustment' | 'transfer' | 'count';

export interface Movement {
  id: number;
  level_id: number;
  type: MovementType;
  /** The time that it is ordered by. */
  effective_at: string;
  /** As asked: what the shelf should gain; for a count, what was counted. */
  quantity: number;
  /** The change at the time of writing; 0 with a `reason`. */
  effect: number;
  /** Why the effect is what it is: `covered_by_count`, `stale_count`, `no_restock`, … */
  reason: string | null;
  /** The level after it was written. */
  quantity_after: number;
  /** The sender's own words. */
  note: string | null;
  event_id: number | null;
  /** The transfer or stocktake it belongs to. */
  document_id: number | null;
  /** The user who made it by hand; null if a till sent it. */
  made_by: string | null;
  /** A count that was taken back with its mapping: no level starts from it. */
  undone: boolean;
  created_at: string;
}

/**
 * A part of the sum that a level is. `opening` and `count` are what it starts from; `reason` of an
 * adjustment is its free words (`rest`: all words past the twenty most used), of a
 * refund `no_restock` where nothing went back on the shelf.
 */
export interface ExplanationTerm {
  type: 'opening' | MovementType;
  reason: string | null;
  quantity: number;
  /** How many lines of the ledger it is the sum of; 0 for an opening. */
  movements: number;
  rest?: true;
}

/** The level from this moment on, until the next point. */
export interface ExplanationPoint {
  at: string;
  quantity: number;
}

/** `GET /switchboard/levels/:id/explanation`; docs/shop.md#stock. */
export interface LevelExplanation {
  level_id: number;
  quantity: number;
  /** When the count that it starts from was taken; null: it starts from the opening quantity. */
  since: string | null;
  /** They sum to `quantity`; what it starts from is first. */
  terms: ExplanationTerm[];
  /** In the order of time, at most 300. */
  series: ExplanationPoint[];
}

/** A movement with its item and its location. */
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
  /** True if the differences were repaired. */
  mended: boolean;
}

/** `POST /switchboard/levels/check`: the job as it begins. */
export interface LevelCheck extends ImportJob {
  /** How many levels there are to look at. */
  levels: number;
}

/** The result of `POST /switchboard/items/import`, in addition to its `ImportJob`. */
export interface ItemImportReport {
  total: number;
  created: number;
  updated: number;
  unchanged: number;
  failed: number;
  /** The first 1,000 rows that failed, and why. */
  issues: { line: number; sku: string | null; message: string }[];
}
