import { CONTACT_STATUSES } from '../../../../shared/contracts/crm';
import { belongsTo, crmType, customFields, hasMany, owner, trashedAt } from './parts';

export const contact = crmType({
  singularName: 'contact',
  pluralName: 'contacts',
  displayName: 'Contact',
  attributes: {
    email: { type: 'email', maxLength: 254 },
    /** What makes an address unique whatever its case; see `email-key.ts`. */
    email_key: {
      type: 'string',
      private: true,
      pluginOptions: { 'content-manager': { visible: false } },
      visible: false,
      configurable: false,
    },
    first_name: { type: 'string', maxLength: 255 },
    last_name: { type: 'string', maxLength: 255 },
    phone: { type: 'string', maxLength: 64 },
    job_title: { type: 'string', maxLength: 255 },
    contact_status: { type: 'enumeration', enum: [...CONTACT_STATUSES], default: 'pending' },
    lifecycle_stage: { type: 'string', maxLength: 64 },
    owner,
    company: belongsTo('company', 'contacts'),
    tags: {
      type: 'relation',
      relation: 'manyToMany',
      target: 'plugin::switchboard.tag',
      inversedBy: 'contacts',
    },
    address: { type: 'json' },
    score: { type: 'integer', default: 0 },
    lifetime_value: { type: 'decimal', default: 0 },
    source: { type: 'string', maxLength: 255 },
    subscribed_at: { type: 'datetime' },
    unsubscribed_at: { type: 'datetime' },
    trashed_at: trashedAt,
    fields: customFields,
    deals: hasMany('deal', 'contact'),
    tasks: hasMany('task', 'contact'),
  },
  indexes: [{ name: 'switchboard_contacts_email', columns: ['email_key'], type: 'unique' }],
});
