import { z } from '@strapi/utils';
import {
  CHANGE_SOURCES,
  type Company,
  type Contact,
  type Deal,
  type Task,
} from '../../../shared/contracts/crm';
import type { ModuleId } from '../../../shared/contracts/modules';
import type { EventDeclaration } from '../hooks';
import { SHAPES } from './resources/schemas';

/** `docs/events.md`, the AsyncAPI document and the picker are made of these. */
type Declarations = Readonly<
  Record<string, Required<Omit<EventDeclaration, 'module'>> & Pick<EventDeclaration, 'module'>>
>;

/** JSON Schema 2020-12. Additional keys are allowed: a payload hook may add some, and v1 only adds. */
const jsonSchema = (shape: z.ZodType): Record<string, unknown> => {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(shape, {
    override({ jsonSchema: node }) {
      delete node.additionalProperties;
    },
  }) as Record<string, unknown>;
  return schema;
};

type Event = Omit<Declarations[string], 'group' | 'module' | 'schema'> & { data: z.ZodType };

const group = (
  name: string,
  module: ModuleId | undefined,
  events: Record<string, Event>
): Declarations =>
  Object.fromEntries(
    Object.entries(events).map(([event, { data, ...rest }]) => [
      event,
      { ...rest, group: name, ...(module && { module }), schema: jsonSchema(data) },
    ])
  );

const { contact: contactShape, company: companyShape, deal: dealShape, task: taskShape } = SHAPES;

/** Realistic objects for the catalogue's examples and for `POST /webhooks/{id}/test`. */

const dates = {
  created_at: '2026-03-02T09:15:00.000+00:00',
  updated_at: '2026-03-09T14:30:00.000+00:00',
};

const contactExample: Contact = {
  id: 'k2v8d0x4q7m1r5t9w3y6z0bc',
  email: 'ada.lovelace@example.com',
  first_name: 'Ada',
  last_name: 'Lovelace',
  name: 'Ada Lovelace',
  phone: '+44 20 7946 0958',
  job_title: 'Analyst',
  status: 'subscribed',
  lifecycle_stage: 'customer',
  owner_id: 1,
  company_id: 'c4f7h1j9l3n6p0s2u5x8z1bd',
  address: { street: '12 St James Square', city: 'London', postal_code: 'SW1Y 4JH', country: 'GB' },
  score: 42,
  lifetime_value: 1250.5,
  source: 'website',
  dates: {
    ...dates,
    subscribed_at: '2026-03-02T09:20:00.000+00:00',
    unsubscribed_at: null,
    trashed_at: null,
  },
  fields: { favourite_colour: 'green' },
};

const tagExample = { id: 't6a9c3e7g1i5k8m2o4q0s3uw', slug: 'newsletter', name: 'Newsletter' };

const companyExample: Company = {
  id: 'c4f7h1j9l3n6p0s2u5x8z1bd',
  name: 'Analytical Engines Ltd',
  domain: 'example.com',
  email: 'office@example.com',
  phone: '+44 20 7946 0900',
  website: 'https://example.com',
  industry: 'Manufacturing',
  employees: 120,
  description: 'Builds machines that calculate.',
  owner_id: 1,
  address: { city: 'London', country: 'GB' },
  dates: { ...dates, trashed_at: null },
  fields: { vat_number: 'GB123456789' },
};

const dealExample: Deal = {
  id: 'd9e2g5i8k1m4o7q0s3u6w9ya',
  title: 'Engine maintenance 2026',
  value: 24000,
  currency: 'GBP',
  status: 'open',
  lost_reason: null,
  stage_id: 's1b4d7f0h3j6l9n2p5r8t1vx',
  contact_id: contactExample.id,
  company_id: companyExample.id,
  owner_id: 1,
  expected_close_date: '2026-06-30',
  dates: { ...dates, closed_at: null, trashed_at: null },
  fields: {},
};

const closedDealExample = (status: 'won' | 'lost'): Deal => ({
  ...dealExample,
  status,
  lost_reason: status === 'lost' ? 'Budget was cut' : null,
  dates: { ...dealExample.dates, closed_at: '2026-03-09T14:30:00.000+00:00' },
});

const taskExample: Task = {
  id: 'a3c6e9g2i5k8m1o4q7s0u3wy',
  title: 'Call about the renewal',
  type: 'call',
  status: 'open',
  outcome: null,
  description: 'Ask which engines need a new gear.',
  due_at: '2026-03-12T10:00:00.000+00:00',
  contact_id: contactExample.id,
  company_id: companyExample.id,
  deal_id: dealExample.id,
  owner_id: 1,
  dates: { ...dates, completed_at: null, trashed_at: null },
};

const CAMPAIGN_ID = 'm5o8q1s4u7w0y3a6c9e2g5ik';

const contact = { data: contactShape, example: contactExample };
const company = { data: companyShape, example: companyExample };
const tagging = z.object({
  contact: contactShape,
  tag: SHAPES.tag,
  source: z.enum(CHANGE_SOURCES),
});
const taggingExample = { contact: contactExample, tag: tagExample, source: 'admin' };
const aboutEmail = z.object({ campaign_id: z.string().nullable(), contact: contactShape });
const emailTo = (status?: string) => ({
  campaign_id: CAMPAIGN_ID,
  contact: status ? { ...contactExample, status } : contactExample,
});
const changed = z.array(z.string()).min(1);
const stage = z.union([z.string(), z.number()]).nullable();

/** In the order of the contract's table (docs/contract-webhooks.md#events); `ping` is not the CRM's. */
export const CRM_EVENTS: Declarations = {
  ...group('Contacts', undefined, {
    'contact.created': {
      label: 'Contact created',
      description: 'A contact is added: by hand, by a form, by an import or through the API.',
      ...contact,
    },
    'contact.updated': {
      label: 'Contact updated',
      description: 'A contact is changed. `changed` lists the changed keys.',
      data: z.object({ contact: contactShape, changed }),
      example: { contact: contactExample, changed: ['phone', 'fields.favourite_colour'] },
    },
    'contact.deleted': {
      label: 'Contact deleted',
      description: 'A contact is deleted permanently. Moving it to the bin is an update.',
      data: z.object({ id: z.string(), email: z.string().nullable() }),
      example: { id: contactExample.id, email: contactExample.email },
    },
    'contact.tagged': {
      label: 'Tag added to a contact',
      description: 'A tag is added to a contact. `source` says by what.',
      data: tagging,
      example: taggingExample,
    },
    'contact.untagged': {
      label: 'Tag removed from a contact',
      description: 'A tag is removed from a contact, or the tag itself is deleted.',
      data: tagging,
      example: { ...taggingExample, source: 'api' },
    },
    'contact.subscribed': {
      label: 'Contact subscribed',
      description: 'A contact subscribes to e-mail. Confirming a double opt-in counts.',
      ...contact,
    },
    'contact.unsubscribed': {
      label: 'Contact unsubscribed',
      description: 'A contact unsubscribes from e-mail.',
      data: contactShape,
      example: {
        ...contactExample,
        status: 'unsubscribed',
        dates: { ...contactExample.dates, unsubscribed_at: '2026-03-09T14:30:00.000+00:00' },
      },
    },
  }),
  ...group('Forms', undefined, {
    'form.submitted': {
      label: 'Form submitted',
      description:
        'A contact or booking form is submitted that adds its sender to the CRM. The contact is up to date by then.',
      data: z.object({
        contact: contactShape,
        new_contact: z.boolean(),
        form_id: z.string(),
        form_title: z.string(),
        entry_id: z.string(),
        answers: z.array(
          z.object({ id: z.string(), label: z.string(), type: z.string(), value: z.unknown() })
        ),
      }),
      example: {
        contact: contactExample,
        new_contact: true,
        form_id: 'api::enquiry.enquiry',
        form_title: 'Enquiry',
        entry_id: 'f7h0j3l6n9p2r5t8v1x4z7bd',
        answers: [
          { id: 'email', label: 'Email', type: 'email', value: contactExample.email },
          { id: 'message', label: 'Message', type: 'text', value: 'When can you come?' },
        ],
      },
    },
  }),
  ...group('Tasks', undefined, {
    'task.created': {
      label: 'Task created',
      description: 'A task, call or meeting is added.',
      data: taskShape,
      example: taskExample,
    },
    'task.completed': {
      label: 'Task completed',
      description: 'A task, call or meeting is done. `outcome` says how it went.',
      data: taskShape,
      example: {
        ...taskExample,
        status: 'done',
        outcome: 'Renewed for a year',
        dates: { ...taskExample.dates, completed_at: '2026-03-12T10:24:00.000+00:00' },
      },
    },
  }),
  ...group('Companies', 'companies', {
    'company.created': {
      label: 'Company created',
      description: 'A company is added.',
      ...company,
    },
    'company.updated': {
      label: 'Company updated',
      description: 'A company is changed.',
      ...company,
    },
    'company.deleted': {
      label: 'Company deleted',
      description: 'A company is deleted permanently. `data` is its last state.',
      ...company,
    },
  }),
  ...group('Deals', 'sales_pipeline', {
    'deal.created': {
      label: 'Deal created',
      description: 'A deal is added.',
      data: dealShape,
      example: dealExample,
    },
    'deal.updated': {
      label: 'Deal updated',
      description: 'A deal is changed. `changed` lists the changed keys.',
      data: dealShape.extend({ changed }),
      example: { ...dealExample, changed: ['value'] },
    },
    'deal.stage_changed': {
      label: 'Deal moved to another stage',
      description: 'A deal moves to another stage.',
      data: z.object({ deal: dealShape, from_stage_id: stage, to_stage_id: stage }),
      example: {
        deal: dealExample,
        from_stage_id: 's0a3c6e9g2i5k8m1o4q7s0uw',
        to_stage_id: dealExample.stage_id,
      },
    },
    'deal.won': {
      label: 'Deal won',
      description: 'A deal is closed as won.',
      data: dealShape,
      example: closedDealExample('won'),
    },
    'deal.lost': {
      label: 'Deal lost',
      description: 'A deal is closed as lost. `reason` says why.',
      data: dealShape.extend({ reason: z.string().nullable() }),
      example: { ...closedDealExample('lost'), reason: 'Budget was cut' },
    },
    'deal.deleted': {
      label: 'Deal deleted',
      description: 'A deal is deleted permanently. Moving it to the bin is an update.',
      data: z.object({ id: z.string(), title: z.string().nullable() }),
      example: { id: dealExample.id, title: dealExample.title },
    },
  }),
  ...group('Email marketing', 'email_marketing', {
    'email.opened': {
      label: 'Email opened',
      description: 'A person opens a campaign email. Opens by security scanners do not count.',
      data: aboutEmail,
      example: emailTo(),
    },
    'email.clicked': {
      label: 'Email link clicked',
      description: 'A person clicks a link in a campaign email. Clicks by scanners do not count.',
      data: aboutEmail.extend({ url: z.string() }),
      example: { ...emailTo(), url: 'https://example.com/spring-offer' },
    },
    'email.bounced': {
      label: 'Email bounced',
      description:
        'A campaign email bounces. After a hard bounce the contact has the status `bounced`.',
      data: aboutEmail,
      example: emailTo('bounced'),
    },
    'email.complained': {
      label: 'Email marked as spam',
      description:
        'A campaign email is marked as spam. The contact then has the status `complained`.',
      data: aboutEmail,
      example: emailTo('complained'),
    },
    'campaign.sent': {
      label: 'Campaign sent',
      description: 'A campaign finishes sending.',
      data: z.object({
        id: z.string(),
        title: z.string().nullable(),
        subject: z.string().nullable(),
        total: z.number().int(),
        sent: z.number().int(),
        failed: z.number().int(),
      }),
      example: {
        id: CAMPAIGN_ID,
        title: 'Spring offer',
        subject: 'Ten percent off every engine',
        total: 1000,
        sent: 993,
        failed: 7,
      },
    },
  }),
  ...group('Email conversations', 'email_conversations', {
    'email.received': {
      label: 'Email received',
      description: 'A contact replies by email.',
      data: z.object({
        contact: contactShape,
        subject: z.string().nullable(),
        from: z.string().nullable(),
        text: z.string().nullable(),
        deal_id: z.string().nullable(),
      }),
      example: {
        contact: contactExample,
        subject: 'Re: Ten percent off every engine',
        from: contactExample.email,
        text: 'Does the offer include delivery?',
        deal_id: dealExample.id,
      },
    },
  }),
};
