import type { MinorSum } from '../minor-sums';
import type { LocationSummary, PlacedMovement } from './stock';
import type { DisabledBecause } from './webhooks';

/** Types of `/switchboard/{connections,pos-events}…`; docs/contract-pos.md#connections. Times are ISO 8601. */

/** The kinds of record that are queued and processed; the last part of the route's path. */
export const RECORD_KINDS = ['sale', 'refund', 'inventory'] as const;
export type RecordKind = (typeof RECORD_KINDS)[number];

/** Kinds of rows in the log of records: records, and closings, which are judged on receipt. */
export const POS_EVENT_KINDS = [...RECORD_KINDS, 'closing'] as const;
export type PosEventKind = (typeof POS_EVENT_KINDS)[number];

/** Requests of a till that carry no record of their own; the last part of the route's path. */
export const ASKING_KINDS = ['batch', 'validate', 'status', 'catalogue'] as const;
export type AskingKind = (typeof ASKING_KINDS)[number];

export const CONNECTION_SCOPES = [
  'sale:write',
  'refund:write',
  'inventory:write',
  'stock:read',
  'closing:write',
] as const;
export type ConnectionScope = (typeof CONNECTION_SCOPES)[number];

export const CONNECTION_MODES = ['live', 'test'] as const;
export type ConnectionMode = (typeof CONNECTION_MODES)[number];

/** Types of a connection; docs/contract-pos.md#connections. */
export const CONNECTION_TYPES = ['Generic webhook'] as const;
export type ConnectionType = (typeof CONNECTION_TYPES)[number];

/** A till's name of a location, with ours. */
export interface ConnectionLocation {
  ref: string;
  location: LocationSummary;
}

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/**
 * Hours of some days of the week, by the clocks of the shop (option `pos.timeZone`): `from` and `to` are
 * `HH:MM`, `to` may be `24:00`; where it is earlier than `from` they end on the next day.
 */
export interface OpenHours {
  days: Weekday[];
  from: string;
  to: string;
}

/** Maxima of a connection's expectation. */
export const SILENCE_LIMITS = { minutes: 10_080, openHours: 50 } as const;

export interface Connection {
  id: number;
  name: string;
  type: ConnectionType;
  /**
   * `pos_live_…`, the same for life, whatever the mode is; `pos_test_…` where an earlier version
   * made it in test mode.
   */
  key: string;
  scopes: ConnectionScope[];
  mode: ConnectionMode;
  /** Connections of one group find each other's sales when they refund. */
  group: string | null;
  /** Empty: single-store mode, everything goes to the default location. */
  locations: ConnectionLocation[];
  /** The rule for a sale's `customer`. */
  customers: CustomerRule;
  /** ISO 3166 code that phone numbers without a prefix are read by; null: the option `pos.country`. */
  country: string | null;
  /** How often it is expected in its `open_hours`; null: it is never reported as silent. */
  expected_every_minutes: number | null;
  /** When it is expected; null: it is never reported as silent. */
  open_hours: OpenHours[] | null;
  /**
   * Since when it has been silent: live, within its open hours, and without a request for longer than
   * expected. Else null.
   */
  silent_since: string | null;
  /** False: its requests are 401 `revoked_key` until its owner switches it on. */
  active: boolean;
  /** Why it is off, where its owner did not switch it off. */
  disabled_reason: string | null;
  /** The reason as a code, as a webhook has it. */
  disabled_because: DisabledBecause | null;
  revoked_at: string | null;
  last_seen_at: string | null;
  /** The till's clock minus ours, in seconds, at its last signed request. */
  clock_skew_seconds: number | null;
  last_error: string | null;
  last_error_at: string | null;
  created_at: string;
  updated_at: string;
}

/** A row of `GET /connections?view=summary`. */
export interface ConnectionSummary extends Pick<
  Connection,
  | 'id'
  | 'name'
  | 'mode'
  | 'active'
  | 'revoked_at'
  | 'last_seen_at'
  | 'clock_skew_seconds'
  | 'last_error'
  | 'last_error_at'
> {
  /** The names of the first of its locations; `location_count` says how many there are. */
  locations: string[];
  location_count: number;
}

/** The secret is shown here and never again. */
export interface ConnectionWithSecret extends Connection {
  secret: string;
}

export interface ConnectionInput {
  name: string;
  /** Default: Generic webhook. */
  type?: ConnectionType;
  scopes: ConnectionScope[];
  /** Default: test. */
  mode?: ConnectionMode;
  group?: string | null;
  /** `location` is a location's id or code. */
  locations?: { ref: string; location: number | string }[];
  /** Default: match. */
  customers?: CustomerRule;
  country?: string | null;
  /** 1 to 10,080. */
  expected_every_minutes?: number | null;
  /** At least one entry. */
  open_hours?: OpenHours[] | null;
  /** Only of a connection that exists: switches it on or off. */
  active?: boolean;
}

/** How many refusals of a connection are kept. */
export const REFUSALS_KEPT = 50;

/** A request of a connection's key that was refused; `GET /switchboard/connections/:id/refusals`. */
export interface ConnectionRefusal {
  at: string;
  /** The refused thing: a record, or a request that carries no record of its own. */
  kind: PosEventKind | AskingKind | 'ping';
  /** As the till was told: `signature_mismatch`, `schema_invalid`, `stale_count` … */
  code: string;
  /** Exactly what the till was told. */
  message: string;
  /** The refused record's id, where the connection signed it and it can be read. */
  external_id: string | null;
}

/** One row of `GET /switchboard/pos-refusals`, the refusals of all connections. */
export interface LoggedRefusal extends ConnectionRefusal {
  id: number;
  connection: { id: number; name: string };
}

/**
 * The state of an accepted record.
 *
 * - `pending`: accepted, not processed yet.
 * - `applied`: all its lines are in the ledger.
 * - `partially_applied`: some lines are, the others wait for an item or a location.
 * - `needs_mapping`: all lines wait, or a refund fits more than one sale.
 * - `held`: a refund whose sale was not seen yet.
 * - `simulated`: came through a test connection; the movements were worked out, not written.
 * - `failed`: processing gave up; an owner can have it processed again.
 * - `matched`: a closing that the site's records bear out.
 * - `differs`: a closing that they do not.
 */
export const POS_EVENT_STATES = [
  'pending',
  'applied',
  'partially_applied',
  'needs_mapping',
  'held',
  'simulated',
  'failed',
  'matched',
  'differs',
] as const;
export type PosEventState = (typeof POS_EVENT_STATES)[number];

/** A text is looked for in so many of the newest records that the other filters leave. */
export const RECORDS_SEARCHED = 5_000;

/** A movement that a test-mode record would have made. */
export interface SimulatedMovement {
  type: PlacedMovement['type'];
  sku: string;
  location: LocationSummary;
  effective_at: string;
  quantity: number;
  effect: number;
  reason: string | null;
}

export interface PosEvent {
  id: number;
  event_id: number;
  connection: { id: number; name: string };
  kind: PosEventKind;
  external_id: string;
  state: PosEventState;
  mode: ConnectionMode;
  flags: string[];
  occurred_at: string;
  effective_at: string;
  received_at: string;
  processed_at: string | null;
  /** When a held refund stops waiting for its sale; null for one without lines, which never does. */
  held_until: string | null;
  /** The `external_id` of the sale that a held refund waits for; else null. */
  waiting_for_sale: string | null;
  /** When its owner had a refund applied without its sale. */
  accepted_without_sale_at: string | null;
  location_ref: string | null;
  /** Lines of a count that were older than an accepted one, as sent. */
  stale: { sku: string; quantity: number }[];
  /** The unknown values of its lines. */
  waiting: { line: number | null; sku?: string; gtin?: string; location_ref?: string }[];
  /** Lines that a mapping says to ignore. */
  ignored: number[];
  error: string | null;
  /** Why the customer of a sale could not be attached to a contact; it is tried again. */
  customer_error: string | null;
  /** The amount that a live sale or refund counts for in the figures, in minor units; else null. */
  money: { currency: string; total: number } | null;
  /** How a closing compares, without the ids; null for other kinds. */
  closing_summary: ClosingSummary | null;
}

/** A row of `GET /pos-events?view=summary`. */
export interface PosEventSummary extends Pick<
  PosEvent,
  | 'id'
  | 'connection'
  | 'kind'
  | 'external_id'
  | 'state'
  | 'flags'
  | 'occurred_at'
  | 'received_at'
  | 'held_until'
  | 'money'
> {
  /** The first of them. */
  waiting: PosEvent['waiting'];
}

/** Actions of users on a record; docs/shop.md#till-records. */
export const RECORD_ACTIONS = ['reprocessed', 'accepted_without_sale'] as const;
export type RecordAction = (typeof RECORD_ACTIONS)[number];

/** That somebody did it, and when. */
export interface RecordHandling {
  action: RecordAction;
  /** As lists name an admin user; null if nobody of the admin is known. */
  made_by: string | null;
  at: string;
}

/** How many of these are kept of a record. */
export const HANDLINGS_KEPT = 50;

/** Another record, by its number in the log and its till's id. */
export interface RelatedRecord {
  id: number;
  external_id: string;
}

export interface PosEventDetail extends PosEvent {
  /** The body exactly as sent. */
  body: string;
  movements: PlacedMovement[];
  /** The effects that a test-mode record would have had; empty for live ones. */
  simulated: SimulatedMovement[];
  /** How a closing compares with the records; null for other kinds. */
  closing: ClosingComparison | null;
  /** The CRM's contact that it is a purchase of. */
  contact: { id: string } | null;
  /** Refunds only: the sale that it names, once that was received. */
  sale: RelatedRecord | null;
  /** Sales only, at most 50. */
  refunds: RelatedRecord[];
  /** The latest 50 actions of users on it, oldest first. */
  by_hand: RecordHandling[];
}

/** A count or a sum of a closing that the site has otherwise; money in minor units. */
export interface ClosingDifference {
  currency: string;
  field: 'sales.count' | 'sales.total' | 'refunds.count' | 'refunds.total';
  till: MinorSum;
  site: MinorSum;
}

/** How a closing compares with the site's records; docs/tills.md#closing-a-shift. */
export interface ClosingComparison {
  /** Ids that the closing lists and the site does not count; only where it lists any. */
  missing?: string[];
  /** Ids that the site counts and the closing does not list, at most 5,000; only where it lists any. */
  unexpected?: string[];
  /** How many those are in all; only where they are more than are listed. */
  unexpected_count?: number;
  differences: ClosingDifference[];
}

/** The range of a closing (`to` not included), and how much of it is not as the site has it. */
export interface ClosingSummary {
  from: string;
  to: string;
  missing: number;
  unexpected: number;
  /** How many of the unexpected ones `closing` lists; only where that is not all of them. */
  unexpected_listed?: number;
  differences: ClosingDifference[];
}

/** The answer to a closing. */
export interface ClosingAnswer extends ClosingComparison {
  ok: true;
  event_id: number;
  state: 'matched' | 'differs';
  duplicate: boolean;
  payload_mismatch?: true;
}

/** Sums of one currency, in minor units; refunds are positive. */
export interface SalesFigures {
  currency: string;
  sales: { count: number; total: MinorSum };
  refunds: { count: number; total: MinorSum };
  /** Pieces of all lines, including unknown items; only with `pieces=true`. */
  pieces?: { sold: number; returned: number };
}

/** `GET /switchboard/shop-day`: the day that it is in the shop, `YYYY-MM-DD`, by its time zone. */
export interface ShopDay {
  today: string;
  /** IANA name, such as `Europe/Berlin`. */
  time_zone: string;
}

/** `meta` of `/switchboard/sales-days`. */
export interface SalesMeta extends ShopDay {
  /** Names of the rows' connections or items, by their ids; empty if rows are days. */
  names: Record<string, string | null>;
}

/** Groupings of `/switchboard/sales-days`. */
export const SALES_GROUPS = ['day', 'connection', 'item'] as const;
export type SalesGroup = (typeof SALES_GROUPS)[number];

/** A row of `/switchboard/sales-days`, by what it is grouped by; a day is `YYYY-MM-DD`. */
export type SalesRow =
  | ({ day: string } & SalesFigures)
  | ({ connection: { id: number } } & SalesFigures)
  | ({ item: { id: number; sku: string } } & SalesFigures);

/** `GET /switchboard/connections/:id/summary`: one row a currency. */
export interface SalesSummary {
  totals: SalesFigures[];
}

/** Rules of a connection for a sale's `customer`. */
export const CUSTOMER_RULES = ['match', 'create', 'ignore'] as const;
export type CustomerRule = (typeof CUSTOMER_RULES)[number];

/** A sale or refund of a contact; `total` in minor units. */
export interface Purchase {
  kind: 'sale' | 'refund';
  external_id: string;
  /** As the till sent it. */
  occurred_at: string;
  currency: string | null;
  total: number;
}
