import type { DisabledBecause, Health, SubjectType, WebhookOrdering } from './webhooks';

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

export interface LastAnswer {
  delivery_id: number;
  status: 'sent' | 'failed' | 'pending';
  /** Cause of the latest failed try, such as `timeout` or `http_500`. */
  error: string | null;
  tries: number;
  at: string;
}

/** How long receivers took to answer in the last 24 hours; estimates, in milliseconds. */
export interface ResponseTimes {
  median_ms: number;
  p95_ms: number;
}

export interface WebhookHealth extends HealthCounts {
  webhook_id: number;
  name: string;
  /** Why it was switched off, where that was not by hand. */
  disabled_reason: string | null;
  disabled_because: DisabledBecause | null;
  ordering: WebhookOrdering;
  health: Health;
  /** null if nothing was answered. */
  response: ResponseTimes | null;
  buckets: HealthBucket[];
  /** Answer to the newest attempted delivery; null if none of the latest thousand was attempted. */
  last: LastAnswer | null;
}

/** `GET /switchboard/webhooks-health`. */
export interface HealthReport {
  /** The beginning of the counts: 24 hours ago, to the hour. */
  since: string;
  /** Everything since then is counted; always true, since each attempt is counted when it is recorded. */
  complete: boolean;
  totals: HealthCounts;
  buckets: HealthBucket[];
  webhooks: WebhookHealth[];
  /** There are more webhooks than are listed: the first thousand. */
  webhooks_capped: boolean;
  /** Names of the plugin's queues on Redis that somebody paused; their work goes on from the database. */
  paused_queues: string[];
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
  /** Everything since `from` is counted. */
  complete: boolean;
}

/** `GET /switchboard/record-types`: the content type of each kind of record; empty without the CRM. */
export type RecordTypes = Partial<Record<SubjectType, string>>;
