/** Types of `/switchboard/{webhooks-health,mapped-types}`: what the admin panel shows at a glance. */

/** Deliveries that were queued in a span of time, by what became of them. */
export interface HealthCounts {
  /** Not finished: never tried, or `failing`. */
  pending: number;
  /** Of the pending ones, those whose tries failed so far; they will be tried again. */
  failing: number;
  sent: number;
  /** Given up: the last try failed. */
  failed: number;
}

/** One bar of a chart; `from` is inclusive. Times are ISO 8601. */
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

export interface WebhookHealth extends HealthCounts {
  webhook_id: number;
  buckets: HealthBucket[];
  /** Of the newest delivery that was tried; null where none was, or none of the latest thousand. */
  last: LastAnswer | null;
}

/** `GET /switchboard/webhooks-health`. */
export interface HealthReport {
  /** Where the counts begin: 24 hours ago, or later where more than 100,000 deliveries were queued. */
  since: string;
  complete: boolean;
  totals: HealthCounts;
  buckets: HealthBucket[];
  webhooks: WebhookHealth[];
}

/** One content type that the site's options map; a field's value is an attribute or `null` (computed). */
export interface MappedType {
  purpose: 'source' | 'form' | 'stock';
  /** The kind of CRM object, or the title of a form. */
  label: string;
  content_type: string;
  fields: { name: string; attribute: string | null }[];
}
