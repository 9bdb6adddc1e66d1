import { z } from '@strapi/utils';
import { CHANGE_SOURCES } from '../../../../shared/contracts/crm';
import { defineGroup } from './define';
import { contactExample, tagExample } from './examples';
import { contactShape, tagShape } from '../shapes';

const source = z.enum(CHANGE_SOURCES);
const tagging = z.object({ contact: contactShape, tag: tagShape, source });
const taggingExample = { contact: contactExample, tag: tagExample, source: 'admin' };

export const contactEvents = defineGroup('Contacts', undefined, {
  'contact.created': {
    label: 'Contact created',
    description: 'A contact is added: by hand, by a form, by an import or through the API.',
    data: contactShape,
    example: contactExample,
  },
  'contact.updated': {
    label: 'Contact updated',
    description:
      'Details of a contact change. `changed` names the keys that differ, custom fields as `fields.<name>`.',
    data: z.object({ contact: contactShape, changed: z.array(z.string()).min(1) }),
    example: { contact: contactExample, changed: ['phone', 'fields.favourite_colour'] },
  },
  'contact.deleted': {
    label: 'Contact deleted',
    description: 'A contact is deleted for good. Moving it to the bin is an update.',
    data: z.object({ id: z.string(), email: z.string().nullable() }),
    example: { id: contactExample.id, email: contactExample.email },
  },
  'contact.tagged': {
    label: 'Tag added to a contact',
    description: 'A tag is added to a contact, from whichever side. `source` tells by what.',
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
    description: 'A contact subscribes to e-mail; confirming a double opt-in is such a moment.',
    data: contactShape,
    example: contactExample,
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
});

const answer = z.object({
  id: z.string(),
  label: z.string(),
  type: z.string(),
  value: z.unknown(),
});

export const formEvents = defineGroup('Forms', undefined, {
  'form.submitted': {
    label: 'Form submitted',
    description:
      'A contact or booking form that adds its sender to the CRM is sent. The contact is up to date by then.',
    data: z.object({
      contact: contactShape,
      new_contact: z.boolean(),
      form_id: z.string(),
      form_title: z.string(),
      entry_id: z.string(),
      answers: z.array(answer),
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
});
