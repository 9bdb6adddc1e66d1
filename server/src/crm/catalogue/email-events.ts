import { z } from '@strapi/utils';
import { defineGroup } from './define';
import { CAMPAIGN_ID, contactExample, dealExample } from './examples';
import { contactShape } from '../shapes';

const about = z.object({ campaign_id: z.string().nullable(), contact: contactShape });
const aboutExample = { campaign_id: CAMPAIGN_ID, contact: contactExample };

export const marketingEvents = defineGroup('Email marketing', 'email_marketing', {
  'email.opened': {
    label: 'Email opened',
    description: 'A campaign email is opened by a person; opens by security scanners do not count.',
    data: about,
    example: aboutExample,
  },
  'email.clicked': {
    label: 'Email link clicked',
    description: 'A person clicks a link in a campaign email; clicks by scanners do not count.',
    data: about.extend({ url: z.string() }),
    example: { ...aboutExample, url: 'https://example.com/spring-offer' },
  },
  'email.bounced': {
    label: 'Email bounced',
    description:
      'A campaign email bounces. After a hard bounce the contact has the status `bounced`.',
    data: about,
    example: { ...aboutExample, contact: { ...contactExample, status: 'bounced' } },
  },
  'email.complained': {
    label: 'Email marked as spam',
    description:
      'A campaign email is marked as spam. The contact then has the status `complained`.',
    data: about,
    example: { ...aboutExample, contact: { ...contactExample, status: 'complained' } },
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
});

export const conversationEvents = defineGroup('Email conversations', 'email_conversations', {
  'email.received': {
    label: 'Email received',
    description: 'A reply of a contact is received by email.',
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
});
