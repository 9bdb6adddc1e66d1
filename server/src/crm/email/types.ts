import type { MachineReason } from './machine-traffic';

/** `campaign`, `contact` and `deal` are ids, as in REST and in payloads. Times: a Date or epoch ms. */
export interface EmailSeen {
  campaign: string;
  contact: string;
  userAgent?: string | null;
  ip?: string | null;
  /** The HTTP method of the request for the image or link, where it is known. */
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

/** What became of what was reported. */
export type Recorded =
  { counted: true } | { counted: false; because: MachineReason | 'no_campaign' | 'already_sent' };

/**
 * For whatever sends the site's mail: `strapi.service('plugin::switchboard.email').opened({ … })`.
 * Each throws ValidationError for a wrong value and NotFoundError for an unknown id, and runs in the
 * current transaction where there is one.
 */
export interface EmailService {
  opened(open: EmailSeen): Promise<Recorded>;
  clicked(click: EmailClicked): Promise<Recorded>;
  bounced(bounce: EmailBounced): Promise<Recorded>;
  complained(complaint: EmailComplained): Promise<Recorded>;
  campaignSent(result: CampaignSent): Promise<Recorded>;
  received(message: EmailReceived): Promise<Recorded>;
}
