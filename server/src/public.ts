import type { Readable } from 'node:stream';
import type { ImportReport } from '../../shared/contracts/crm';
import type { MachineReason } from './crm/rules/machine-traffic';

/** The services that other plugins may call. Nothing of how they are made is known here: it is packed. */

/**
 * For other plugins: `strapi.service('plugin::switchboard.events').send('loyalty.earned', data)`. Typed version of
 * `strapi.hook('service_crm_webhook').call({ event, data })`.
 */
export interface EventsService {
  /**
   * Sends an event to subscribed webhooks, in the current transaction if there is one. `data` defaults to `{}`.
   * @returns the number of deliveries queued
   * @throws TypeError if `data` is no object; the database's error if it cannot be queued
   */
  send(event: string, data?: object): Promise<number>;
}

/** `campaign`, `contact` and `deal` are ids, as in REST and in payloads. Times: a Date or epoch ms. */
export interface EmailSeen {
  campaign: string;
  contact: string;
  userAgent?: string | null;
  ip?: string | null;
  /** The HTTP method of the request for the image or link, if known. */
  method?: string | null;
  /** Default: now. */
  at?: Date | number;
  /** When the mail was handed over; with it, what comes too fast is known for a machine. */
  sentAt?: Date | number | null;
}

export interface EmailClicked extends EmailSeen {
  url: string;
}

export interface EmailBounced {
  /** null: a mail of no campaign. The contact's status changes all the same; no event is sent. */
  campaign: string | null;
  contact: string;
  /** `soft`: may work the next time, so the contact keeps its status. Default: `hard`. */
  type?: 'hard' | 'soft';
  reason?: string | null;
}

export interface EmailComplained {
  campaign: string | null;
  contact: string;
}

export interface CampaignSent {
  campaign: string;
  total: number;
  sent: number;
  failed: number;
}

export interface EmailReceived {
  contact: string;
  subject?: string | null;
  from?: string | null;
  text?: string | null;
  deal?: string | null;
}

/** The result of a report. */
export type Recorded =
  { counted: true } | { counted: false; because: MachineReason | 'no_campaign' | 'already_sent' };

/**
 * For code that sends the site's mail: `strapi.service('plugin::switchboard.email').opened({ … })`. Each method throws
 * ValidationError for a wrong value and NotFoundError for an unknown id, and joins the current transaction.
 */
export interface EmailService {
  opened(open: EmailSeen): Promise<Recorded>;
  clicked(click: EmailClicked): Promise<Recorded>;
  bounced(bounce: EmailBounced): Promise<Recorded>;
  complained(complaint: EmailComplained): Promise<Recorded>;
  campaignSent(result: CampaignSent): Promise<Recorded>;
  received(message: EmailReceived): Promise<Recorded>;
}

/** Rows so far. */
export type ImportCounts = Omit<ImportReport, 'issues'>;

export interface ImportWatch {
  /** The header is right, and rows come next. */
  header(headings: readonly string[]): Promise<void>;
  /** A row that was not imported, with its cells as they came; or a level that differs. */
  failed(line: number, message: string, cells: readonly string[]): void;
  /** Some rows more are done. */
  advance(counts: ImportCounts): Promise<void>;
}

/** The input of an import, and its callbacks for progress. */
export interface ImportRun {
  /** Says what would become of each row, and changes nothing. */
  dryRun?: boolean;
  watch?: ImportWatch;
}

/** For other plugins: `strapi.service('plugin::switchboard.contact-import').run(file)`. */
export interface ContactImport {
  /**
   * Imports contacts from a CSV file (UTF-8; comma, semicolon or tab). A row with a known `email` completes that
   * contact; empty cells change nothing. Each batch is a transaction: rows imported before a fault stay. A dry run only
   * reports.
   * @throws ValidationError if the header is wrong; nothing has been imported then.
   */
  run(file: Readable, options?: ImportRun): Promise<ImportReport>;
}
