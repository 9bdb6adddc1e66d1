/**
 * Types of `/api/fw-crm/v1/{contacts,tags,companies,deals,deal-stages,tasks,campaigns}` and of the
 * objects inside event payloads, which are the same (docs/contract-webhooks.md#objects). An `id` is
 * the host's document id; `owner_id` is the id of an admin user. Times are ISO 8601 with an offset.
 */

export const CONTACT_STATUSES = [
  'pending',
  'subscribed',
  'unsubscribed',
  'bounced',
  'complained',
] as const;
export type ContactStatus = (typeof CONTACT_STATUSES)[number];

export const DEAL_STATUSES = ['open', 'won', 'lost'] as const;
export type DealStatus = (typeof DEAL_STATUSES)[number];

export const TASK_TYPES = ['task', 'call', 'meeting'] as const;
export type TaskType = (typeof TASK_TYPES)[number];

export const TASK_STATUSES = ['open', 'done'] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

export const CAMPAIGN_STATUSES = ['draft', 'sending', 'sent'] as const;
export type CampaignStatus = (typeof CAMPAIGN_STATUSES)[number];

/** The person or thing that put a tag on a contact, or took it off. */
export const CHANGE_SOURCES = ['admin', 'api', 'form', 'import', 'code'] as const;
export type ChangeSource = (typeof CHANGE_SOURCES)[number];

export type CustomFields = Record<string, unknown>;
export type Address = Record<string, unknown>;

interface Dates {
  created_at: string | null;
  updated_at: string | null;
}

export interface Contact {
  id: string;
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  name: string | null;
  phone: string | null;
  job_title: string | null;
  status: ContactStatus | null;
  lifecycle_stage: string | null;
  owner_id: number | null;
  company_id: string | null;
  address: Address | null;
  score: number | null;
  lifetime_value: number | null;
  source: string | null;
  /** `trashed_at`: in the bin since; null otherwise. */
  dates: Dates & {
    subscribed_at: string | null;
    unsubscribed_at: string | null;
    trashed_at: string | null;
  };
  fields: CustomFields;
}

export interface Tag {
  id: string;
  slug: string | null;
  name: string | null;
}

export interface Company {
  id: string;
  name: string | null;
  domain: string | null;
  email: string | null;
  phone: string | null;
  website: string | null;
  industry: string | null;
  employees: number | null;
  description: string | null;
  owner_id: number | null;
  address: Address | null;
  dates: Dates & { trashed_at: string | null };
  fields: CustomFields;
}

export interface Deal {
  id: string;
  title: string | null;
  value: number | null;
  /** ISO 4217. */
  currency: string | null;
  status: DealStatus | null;
  lost_reason: string | null;
  stage_id: string | null;
  contact_id: string | null;
  company_id: string | null;
  owner_id: number | null;
  /** `YYYY-MM-DD`. */
  expected_close_date: string | null;
  dates: Dates & { closed_at: string | null; trashed_at: string | null };
  fields: CustomFields;
}

export interface DealStage {
  id: string;
  name: string | null;
  position: number | null;
  /** Chance of winning a deal of this stage, in percent. */
  probability: number | null;
}

export interface Task {
  id: string;
  title: string | null;
  type: TaskType | null;
  status: TaskStatus | null;
  outcome: string | null;
  description: string | null;
  due_at: string | null;
  contact_id: string | null;
  company_id: string | null;
  deal_id: string | null;
  owner_id: number | null;
  dates: Dates & { completed_at: string | null; trashed_at: string | null };
}

export interface Campaign {
  id: string;
  title: string | null;
  subject: string | null;
  status: CampaignStatus | null;
  total: number | null;
  sent: number | null;
  failed: number | null;
  dates: Dates & { sent_at: string | null };
}

/** One row of the report that `POST /switchboard/contacts/import` answers with. */
export interface ImportIssue {
  /** The line of the file, the header being line 1. */
  line: number;
  email: string | null;
  message: string;
}

export interface ImportReport {
  total: number;
  created: number;
  updated: number;
  unchanged: number;
  failed: number;
  /** The first 1,000 rows that failed, and why. */
  issues: ImportIssue[];
}
