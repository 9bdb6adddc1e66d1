import { crmType, customFields, hasMany, owner, trashedAt } from './parts';

export const company = crmType({
  singularName: 'company',
  pluralName: 'companies',
  displayName: 'Company',
  attributes: {
    name: { type: 'string', required: true, maxLength: 255 },
    domain: { type: 'string', maxLength: 255 },
    email: { type: 'email', maxLength: 254 },
    phone: { type: 'string', maxLength: 64 },
    website: { type: 'string', maxLength: 2048 },
    industry: { type: 'string', maxLength: 255 },
    employees: { type: 'integer' },
    description: { type: 'text' },
    owner,
    address: { type: 'json' },
    trashed_at: trashedAt,
    fields: customFields,
    contacts: hasMany('contact', 'company'),
    deals: hasMany('deal', 'company'),
    tasks: hasMany('task', 'company'),
  },
});
