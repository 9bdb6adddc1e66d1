import {
  ASKING_KINDS,
  type AskingKind,
  type ConnectionMode,
  type ConnectionScope as Scope,
  POS_EVENT_KINDS as EVENT_KINDS,
  type PosEventKind as EventKind,
  type PosEventState as EventState,
  RECORD_KINDS,
  type RecordKind,
} from '../../../../shared/contracts/pos';
import type { JsonObject } from './strict-json';

export { ASKING_KINDS, EVENT_KINDS, RECORD_KINDS };
export type { AskingKind, ConnectionMode, EventKind, EventState, RecordKind, Scope };

/** The `schema` of a ping's answer. */
export const SCHEMA_VERSION = 'v1';

/** Schema named in refusals (docs/contract-pos.md#versions); those of records and batches are served at `/schema`. */
export const schemaId = (kind: EventKind | AskingKind): string => `${kind}.${SCHEMA_VERSION}`;

/** `absolute` is a stocktake count, `relative` an adjustment. */
export const INVENTORY_MODES = ['absolute', 'relative'] as const;
export type InventoryMode = (typeof INVENTORY_MODES)[number];

/**
 * Allowed transitions. `applied` is not final for a refund: if a second sale with the same id comes, it waits for the
 * owner; if its sale's connection leaves the group, it waits for its sale.
 */
const STATE_MOVES = {
  pending: ['applied', 'partially_applied', 'needs_mapping', 'held', 'simulated', 'failed'],
  held: ['applied', 'partially_applied', 'needs_mapping', 'simulated', 'failed'],
  needs_mapping: ['applied', 'partially_applied', 'held', 'failed'],
  partially_applied: ['applied', 'needs_mapping', 'held', 'failed'],
  applied: ['needs_mapping', 'partially_applied', 'held'],
  failed: ['pending'],
  simulated: [],
  matched: ['differs'],
  differs: ['matched'],
} as const satisfies Record<EventState, readonly EventState[]>;

/** The next state, used by every writer; a forbidden change keeps it (applied never fails, simulated is final). */
export const stateAfter = (from: EventState, to: EventState): EventState =>
  (STATE_MOVES[from] as readonly EventState[]).includes(to) ? to : from;

/**
 * The state of an event once its lines were resolved (docs/tills.md#how-a-record-is-processed).
 * @param placed lines that are in the ledger, those with effect 0 too
 * @param waiting lines that wait for an item or a location
 */
export const stateOfLines = (
  mode: ConnectionMode,
  placed: number,
  waiting: number
): Extract<EventState, 'applied' | 'partially_applied' | 'needs_mapping' | 'simulated'> => {
  if (mode === 'test') return 'simulated';
  if (waiting === 0) return 'applied';
  return placed === 0 ? 'needs_mapping' : 'partially_applied';
};

/** States in which an event can still change without its owner doing anything. */
export const WAITING_STATES = [
  'held',
  'needs_mapping',
  'partially_applied',
] as const satisfies readonly EventState[];

export const isWaiting = (state: EventState): boolean =>
  (WAITING_STATES as readonly EventState[]).includes(state);

/**
 * Remarks on an event.
 *
 * - `over_refund`: more was refunded than the sale still had.
 * - `payload_mismatch`: the id came again with another body; the first one counts.
 * - `sale_never_seen`: the grace period ended without the refund's sale.
 * - `clock_ahead`: `occurred_at` lay after the receipt; the record is ordered at its receipt.
 * - `location_ignored`: the connection maps no locations, so `location_ref` was not used.
 */
export const EVENT_FLAGS = [
  'over_refund',
  'payload_mismatch',
  'sale_never_seen',
  'clock_ahead',
  'location_ignored',
] as const;
export type EventFlag = (typeof EVENT_FLAGS)[number];

/** Error codes for tills, in the order of the checks, with HTTP status (docs/contract-pos.md#answers). */
export const ERROR_STATUS = {
  not_ready: 503,
  unsupported_encoding: 415,
  payload_too_large: 413,
  unknown_key: 401,
  revoked_key: 401,
  secret_unavailable: 401,
  timestamp_outside_window: 401,
  signature_mismatch: 401,
  rate_limited: 429,
  insufficient_scope: 403,
  schema_invalid: 400,
  stale_count: 409,
} as const;
export type ErrorCode = keyof typeof ERROR_STATUS;
export const ERROR_CODES = Object.keys(ERROR_STATUS) as readonly ErrorCode[];

/** Limits: docs/limits.md#tills and docs/tills.md#records. */
export const LIMITS = {
  /** Characters (code points) in an id, SKU, GTIN or location reference. */
  idLength: 128,
  reasonLength: 1000,
  lines: 500,
  counts: 1000,
  /** Nested objects and arrays, the body itself being the first. */
  depth: 16,
  /** Bytes of the largest body per value of a record; lines by themselves need ten. */
  bytesANode: 5,
  /** Members of a body around records besides those that it is known by. */
  otherMembers: 20,
  bodyBytes: 262_144,
  batch: 100,
  /** The body of a batch, and of a validation, whose record has a limit of its own. */
  batchBytes: 1_048_576,
  /** Records of a batch or ids of a status request that cost what one request costs. */
  recordsACharge: 10,
  statusIds: 100,
  catalogueItems: 1000,
  /** Ids that a closing may list; its body may have `batchBytes`. */
  closingIds: 5000,
  /** How much time a closing may count: a month, and the hour that a change of clocks adds. */
  closingMs: 31 * 86_400_000 + 3_600_000,
  closingCurrencies: 100,
  timestampWindowSeconds: 300,
  /** How far ahead of its receipt an absolute count may be dated. */
  countAheadMs: 300_000,
  refundGraceMs: 86_400_000,
  /** Largest quantity of a line; below the largest exact integer, because sums must stay exact as well. */
  quantity: 1_000_000_000,
} as const;

/** Maximum number of values in a body of this many bytes, including the sender's own. */
export const nodesWithin = (bytes: number): number => Math.ceil(bytes / LIMITS.bytesANode);

/** The parts of every accepted record. Times are epoch milliseconds. */
export interface RecordBase {
  externalId: string;
  /** As sent. */
  occurredAt: string;
  occurredAtMs: number;
  /** The time that it is ordered by: `occurredAtMs`, or the receipt if that is earlier. */
  effectiveMs: number;
  /** `occurredAtMs` lay after the receipt. */
  clockAhead: boolean;
  locationRef: string | null;
}

/** One line of a sale or refund; at least one of `sku` and `gtin` is set, `quantity` is positive. */
export interface RecordLine {
  sku: string | null;
  gtin: string | null;
  quantity: number;
  /** Minor units. */
  unitPrice: number | null;
}

export interface SaleRecord extends RecordBase {
  kind: 'sale';
  currency: string;
  /** Minor units. */
  total: number;
  lines: RecordLine[];
  customer: JsonObject | null;
  meta: JsonObject | null;
}

export interface RefundRecord extends RecordBase {
  kind: 'refund';
  saleExternalId: string;
  reason: string | null;
  restock: boolean;
  /** ISO 4217, if sent; its sale's takes precedence. */
  currency: string | null;
  /** The refunded amount, in minor units, if it was sent. */
  total: number | null;
  /** null: everything the sale still has. */
  lines: RecordLine[] | null;
}

export interface CountLine {
  sku: string;
  quantity: number;
  reason: string | null;
}

export interface InventoryRecord extends RecordBase {
  kind: 'inventory';
  mode: InventoryMode;
  counts: CountLine[];
}

/** Sums of one currency, in minor units; refunds are positive. */
export type CurrencySums<Total> = Record<'sales' | 'refunds', { count: number; total: Total }>;

/** The sums of a currency as a till has them. */
export type ClosingTotals = CurrencySums<number> & { currency: string };

/** A till's own account of its shift; epoch milliseconds, `toMs` not included. */
export interface ClosingRecord extends RecordBase {
  kind: 'closing';
  fromMs: number;
  toMs: number;
  totals: ClosingTotals[];
  /** Each once; null if it lists none. */
  externalIds: string[] | null;
}

export type PosRecord = SaleRecord | RefundRecord | InventoryRecord;

/** A line of a record, as far as it is about stock; at least one of `sku` and `gtin` is set. */
export interface StockLine {
  sku: string | null;
  gtin: string | null;
  quantity: number;
  note: string | null;
}

/** A record's lines in their order; none for a refund of the whole sale. */
export const linesOf = (record: PosRecord): StockLine[] =>
  record.kind === 'inventory'
    ? record.counts.map(({ reason, ...line }) => ({ ...line, gtin: null, note: reason }))
    : (record.lines ?? []).map(({ sku, gtin, quantity }) => ({ sku, gtin, quantity, note: null }));
