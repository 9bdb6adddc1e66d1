import type { FileKind } from './imports';
import type { Connection } from './pos';
import type { DisabledBecause, Health, LastAnswer, SubjectType } from './webhooks';

/** Types of `/switchboard/{webhooks-health,mapped-types}`: what the admin panel shows at a glance. */

/**
 * Deliveries of a span of time by outcome, and those that are not finished; tests do not count. In a
 * bar of a chart the unfinished ones are those that were made in its time, else all of them.
 */
export interface HealthCounts {
  /** Not finished: `waiting`, or `failing`. */
  pending: number;
  /** Pending deliveries that have failed so far; they will be retried. */
  failing: number;
  /** Delivered in that time. */
  sent: number;
  /** Deliveries whose last attempt failed in that time. */
  failed: number;
}

/** One bar of a chart, two hours of UTC; `from` is inclusive. Times are ISO 8601. */
export interface HealthBucket extends HealthCounts {
  from: string;
}

/** How long receivers took to answer in the last 24 hours; estimates, in milliseconds. */
export interface ResponseTimes {
  median_ms: number;
  p95_ms: number;
}

/** How a webhook did in the last 24 hours. */
export interface WebhookHealth extends HealthCounts {
  webhook_id: number;
  name: string;
  /** Why it was switched off, if that was not by hand. */
  disabled_reason: string | null;
  disabled_because: DisabledBecause | null;
  health: Health;
  /** Answer to the newest attempted delivery; null if none of the latest thousand was attempted. */
  last: LastAnswer | null;
}

/** `GET /switchboard/webhooks-health`, of all webhooks or of one (`?webhook=`). */
export interface HealthReport {
  /** The beginning of the counts: 24 hours ago, to the hour. */
  since: string;
  totals: HealthCounts;
  buckets: HealthBucket[];
  /** Up to 20: those that need attention, the most urgent first, then others by their ids. */
  webhooks: WebhookHealth[];
  /** How many webhooks need attention. */
  needing_attention: number;
  /** Names of the plugin's queues on Redis that somebody paused; their work goes on from the database. */
  paused_queues: string[];
}

/** An import whose latest run of its kind left rows out. */
export interface RejectedImport {
  id: number;
  kind: FileKind;
  failed: number;
  finished_at: string;
}

/** A till that is silent (`silent_since`), or was switched off for a reason. */
export type TroubledTill = Pick<
  Connection,
  | 'id'
  | 'name'
  | 'silent_since'
  | 'expected_every_minutes'
  | 'active'
  | 'disabled_reason'
  | 'disabled_because'
>;

/** Records of live tills that need somebody; counting stops at 10,000. */
export interface RecordCounts {
  failed: number;
  needs_mapping: number;
  /** Refunds that wait for their sale. */
  held: number;
  /** Closings of the last 7 days that differ from the records. */
  differs: number;
}

/** If a site has any of these; null for a step that the user may not take. */
export interface FirstSteps {
  webhook: boolean | null;
  till: boolean | null;
  contact: boolean | null;
}

/** `GET /switchboard/attention`: problems other than those of webhooks. A part is null if the user may not see it. */
export interface Attention {
  records: RecordCounts | null;
  /** Up to 20. */
  tills: TroubledTill[] | null;
  /** Records that were refused in the last 24 hours. */
  refused: number | null;
  /** Imports of the last 7 days. */
  imports: RejectedImport[];
  steps: FirstSteps;
}

/** One content type that the site's options map; a field's value is an attribute or `null` (computed). */
export interface MappedType {
  purpose: 'source' | 'form' | 'stock';
  /** The kind of CRM object, or the title of a form. */
  label: string;
  content_type: string;
  fields: { name: string; attribute: string | null }[];
}

/** Attempts that ended in a span of time, and how long receivers took; tests do not count. */
export interface DeliveryFigure {
  /** The beginning of the span; inclusive, ISO 8601. */
  from: string;
  /** Attempts that were received. */
  sent: number;
  /** Attempts that were not. */
  failed: number;
  /** null if nothing was answered. */
  response: ResponseTimes | null;
}

/** `GET /switchboard/delivery-figures?webhook=&from=&to=` */
export interface DeliveryFigures {
  /** How long each span is, in whole hours; they begin at whole multiples of it in UTC. */
  step_hours: number;
  spans: DeliveryFigure[];
  total: Omit<DeliveryFigure, 'from'>;
}

/** `GET /switchboard/record-types`: the content type of each kind of record; empty without the CRM. */
export type RecordTypes = Partial<Record<SubjectType, string>>;
