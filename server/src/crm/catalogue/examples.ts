import type { Company, Contact, Deal, Task } from '../../../../shared/contracts/crm';

/** Realistic objects for the catalogue's examples and for `POST /webhooks/{id}/test`. */

const dates = {
  created_at: '2026-03-02T09:15:00.000+00:00',
  updated_at: '2026-03-09T14:30:00.000+00:00',
};

export const contactExample: Contact = {
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

export const tagExample = {
  id: 't6a9c3e7g1i5k8m2o4q0s3uw',
  slug: 'newsletter',
  name: 'Newsletter',
};

export const companyExample: Company = {
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

export const dealExample: Deal = {
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

export const closedDealExample = (status: 'won' | 'lost'): Deal => ({
  ...dealExample,
  status,
  lost_reason: status === 'lost' ? 'Budget was cut' : null,
  dates: { ...dealExample.dates, closed_at: '2026-03-09T14:30:00.000+00:00' },
});

export const taskExample: Task = {
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

export const doneTaskExample: Task = {
  ...taskExample,
  status: 'done',
  outcome: 'Renewed for a year',
  dates: { ...taskExample.dates, completed_at: '2026-03-12T10:24:00.000+00:00' },
};

export const CAMPAIGN_ID = 'm5o8q1s4u7w0y3a6c9e2g5ik';
