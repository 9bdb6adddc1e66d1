import { z } from '@strapi/utils';
import {
  CAMPAIGN_STATUSES,
  CONTACT_STATUSES,
  DEAL_STATUSES,
  TASK_STATUSES,
  TASK_TYPES,
} from '../../../../shared/contracts/crm';
import { pageQuery } from '../../http/pagination';
import { readOnly } from '../../http/validation';
import type { Kind } from '../rules/types';

/**
 * What the columns can hold, so that every wrong value is a 400 and no database ever has to refuse
 * one: PostgreSQL takes no NUL, a decimal has ten digits, MySQL's dates end with the year 9999.
 */

const NUL = '\u0000';
const noNul = { message: 'must not contain a NUL character' };

const text = (maximum = 255) =>
  z
    .string()
    .max(maximum)
    .refine((value) => !value.includes(NUL), noNul)
    .nullable()
    .optional();

const requiredText = (maximum = 255) =>
  z
    .string()
    .max(maximum)
    .refine((value) => value.trim() !== '', { message: 'must not be empty' })
    .refine((value) => !value.includes(NUL), noNul);

const email = z.email().max(254).nullable().optional();

const integer = (minimum = -2_147_483_648, maximum = 2_147_483_647) =>
  z.number().int().min(minimum).max(maximum).nullable().optional();

/** Money and the like: two decimals, eight digits before them. */
const decimal = z.number().min(-99_999_999.99).max(99_999_999.99).nullable().optional();

const within = (value: string): boolean => value >= '1900' && value < '9999-12-31';
const range = { message: 'must be a date from 1900 to 9998' };

const time = z.iso.datetime({ offset: true }).refine(within, range).nullable().optional();
const date = z.iso.date().refine(within, range).nullable().optional();

const BAG_MAX = 65_536;
/** A NUL as JSON writes it; behind an even number of backslashes it is text that says so. */
const WRITTEN_NUL = /(?<!\\)(?:\\\\)*\\u0000/;

/** An object of the site's own making. */
const bag = z
  .record(z.string(), z.unknown())
  .refine((value) => JSON.stringify(value).length <= BAG_MAX, {
    message: `must not be longer than ${BAG_MAX} characters`,
  })
  .refine((value) => !WRITTEN_NUL.test(JSON.stringify(value)), noNul)
  .nullable()
  .optional();

/** A document id. What does not look like one names nothing, and never reaches a query. */
export const DOCUMENT_ID = /^[A-Za-z0-9_-]{1,64}$/;
const reference = z
  .string()
  .regex(DOCUMENT_ID, { message: 'is not the id of a record' })
  .nullable()
  .optional();

const ownerId = integer(1);

/** zod schemas of what the CRM's routes take; `strapi openapi generate` documents them. */

const unwritten = { id: readOnly, dates: readOnly };
const choice = <const V extends readonly [string, ...string[]]>(values: V) =>
  z.enum(values).nullable().optional();

const contact = z.strictObject({
  ...unwritten,
  name: readOnly,
  email,
  first_name: text(),
  last_name: text(),
  phone: text(64),
  job_title: text(),
  status: choice(CONTACT_STATUSES),
  lifecycle_stage: text(64),
  owner_id: ownerId,
  company_id: reference,
  address: bag,
  score: integer(),
  lifetime_value: decimal,
  source: text(),
  /** Moves the contact to the bin; null takes it out again. */
  trashed_at: time,
  fields: bag,
  /** The ids of all its tags. */
  tags: z
    .array(z.string().regex(DOCUMENT_ID, { message: 'is not the id of a tag' }))
    .max(1000)
    .optional(),
});

const slug = z
  .string()
  .max(255)
  .regex(/^[A-Za-z0-9-_.~]+$/, { message: 'may hold letters, digits, "-", "_", "." and "~"' });

const tag = z.strictObject({ id: readOnly, name: requiredText(), slug: slug.optional() });

const company = z.strictObject({
  ...unwritten,
  name: requiredText(),
  domain: text(),
  email,
  phone: text(64),
  website: text(),
  industry: text(),
  employees: integer(0),
  description: text(65_000),
  owner_id: ownerId,
  address: bag,
  trashed_at: time,
  fields: bag,
});

const deal = z.strictObject({
  ...unwritten,
  title: requiredText(),
  value: decimal,
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, { message: 'must be an ISO 4217 code such as EUR' })
    .nullable()
    .optional(),
  status: choice(DEAL_STATUSES),
  lost_reason: text(),
  stage_id: reference,
  contact_id: reference,
  company_id: reference,
  owner_id: ownerId,
  expected_close_date: date,
  trashed_at: time,
  fields: bag,
});

const dealStage = z.strictObject({
  id: readOnly,
  name: requiredText(),
  position: integer(),
  probability: integer(0, 100),
});

const task = z.strictObject({
  ...unwritten,
  title: requiredText(),
  type: choice(TASK_TYPES),
  status: choice(TASK_STATUSES),
  outcome: text(),
  description: text(65_000),
  due_at: time,
  contact_id: reference,
  company_id: reference,
  deal_id: reference,
  owner_id: ownerId,
  trashed_at: time,
});

const campaign = z.strictObject({
  ...unwritten,
  title: requiredText(),
  subject: text(),
  status: choice(CAMPAIGN_STATUSES),
  total: integer(0),
  sent: integer(0),
  failed: integer(0),
});

const somebody = { message: 'give at least an email, a name or a phone number', path: ['email'] };

const isSomebody = (input: z.infer<typeof contact>): boolean =>
  [input.email, input.first_name, input.last_name, input.phone].some(Boolean);

/** `update`: each key is optional, and what is absent stays. */
interface KindInputs {
  create: z.ZodType<Record<string, unknown>>;
  update: z.ZodType<Record<string, unknown>>;
  query: z.ZodObject;
}

const filterText = z.string().min(1).max(255).optional();
const filterId = z.string().regex(DOCUMENT_ID, { message: 'is not the id of a record' }).optional();
/** `true` lists the bin instead of what is not in it. */
const trashed = z.enum(['true', 'false']).default('false');

const query = <S extends Record<string, z.ZodType>>(filters: S) =>
  z.object({ ...pageQuery, ...filters });

export const INPUTS: Readonly<Record<Kind, KindInputs>> = {
  contact: {
    create: contact.refine(isSomebody, somebody),
    update: contact.partial(),
    query: query({
      /** Words of a name, part of an e-mail address or of a phone number; docs/management-api.md#finding-contacts. */
      q: z.string().trim().min(1).max(255).optional(),
      email: filterText,
      status: filterText,
      company_id: filterId,
      tag_id: filterId,
      trashed,
    }),
  },
  tag: {
    create: tag,
    update: tag.partial(),
    query: query({ slug: filterText, contact_id: filterId }),
  },
  company: {
    create: company,
    update: company.partial(),
    query: query({ domain: filterText, trashed }),
  },
  deal: {
    create: deal,
    update: deal.partial(),
    query: query({
      status: filterText,
      stage_id: filterId,
      contact_id: filterId,
      company_id: filterId,
      trashed,
    }),
  },
  'deal-stage': { create: dealStage, update: dealStage.partial(), query: query({}) },
  task: {
    create: task,
    update: task.partial(),
    query: query({
      status: filterText,
      type: filterText,
      contact_id: filterId,
      company_id: filterId,
      deal_id: filterId,
      trashed,
    }),
  },
  campaign: {
    create: campaign,
    update: campaign.partial(),
    query: query({ status: filterText }),
  },
};
