import { z } from '@strapi/utils';
import type { Kind } from './rules/types';

/**
 * The objects of REST answers and event payloads (shared/contracts/crm.ts). A site that maps types
 * of its own may keep other statuses than the plugin does, so those are any text here.
 */

const text = z.string().nullable();
const number = z.number().nullable();
const time = z.string().meta({ format: 'date-time' }).nullable();
const id = z.string();
const reference = z.union([z.string(), z.number()]).nullable();
const ownerId = z.number().int().nullable();
const bag = z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]).nullable();
const custom = z.record(z.string(), z.unknown());

const dates = <S extends Record<string, z.ZodType>>(shape: S) =>
  z.object({ created_at: time, updated_at: time, ...shape });

export const contactShape = z.object({
  id,
  email: text,
  first_name: text,
  last_name: text,
  name: text,
  phone: text,
  job_title: text,
  status: text,
  lifecycle_stage: text,
  owner_id: ownerId,
  company_id: reference,
  address: bag,
  score: number,
  lifetime_value: number,
  source: text,
  dates: dates({ subscribed_at: time, unsubscribed_at: time, trashed_at: time }),
  fields: custom,
});

export const tagShape = z.object({ id, slug: text, name: text });

export const companyShape = z.object({
  id,
  name: text,
  domain: text,
  email: text,
  phone: text,
  website: text,
  industry: text,
  employees: number,
  description: text,
  owner_id: ownerId,
  address: bag,
  dates: dates({ trashed_at: time }),
  fields: custom,
});

export const dealShape = z.object({
  id,
  title: text,
  value: number,
  currency: text,
  status: text,
  lost_reason: text,
  stage_id: reference,
  contact_id: reference,
  company_id: reference,
  owner_id: ownerId,
  expected_close_date: text,
  dates: dates({ closed_at: time, trashed_at: time }),
  fields: custom,
});

export const dealStageShape = z.object({ id, name: text, position: number, probability: number });

export const taskShape = z.object({
  id,
  title: text,
  type: text,
  status: text,
  outcome: text,
  description: text,
  due_at: time,
  contact_id: reference,
  company_id: reference,
  deal_id: reference,
  owner_id: ownerId,
  dates: dates({ completed_at: time, trashed_at: time }),
});

export const campaignShape = z.object({
  id,
  title: text,
  subject: text,
  status: text,
  total: number,
  sent: number,
  failed: number,
  dates: dates({ sent_at: time }),
});

export const SHAPES = {
  contact: contactShape,
  tag: tagShape,
  company: companyShape,
  deal: dealShape,
  'deal-stage': dealStageShape,
  task: taskShape,
  campaign: campaignShape,
} as const satisfies Record<Kind, z.ZodObject>;
