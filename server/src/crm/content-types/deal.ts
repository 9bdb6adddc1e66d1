import { DEAL_STATUSES } from '../../../../shared/contracts/crm';
import { belongsTo, crmType, customFields, hasMany, owner, trashedAt } from './parts';

export const deal = crmType({
  singularName: 'deal',
  pluralName: 'deals',
  displayName: 'Deal',
  attributes: {
    title: { type: 'string', required: true, maxLength: 255 },
    value: { type: 'decimal', default: 0 },
    currency: { type: 'string', maxLength: 3, minLength: 3 },
    deal_status: { type: 'enumeration', enum: [...DEAL_STATUSES], default: 'open' },
    lost_reason: { type: 'string', maxLength: 255 },
    stage: belongsTo('deal-stage', 'deals'),
    contact: belongsTo('contact', 'deals'),
    company: belongsTo('company', 'deals'),
    owner,
    expected_close_date: { type: 'date' },
    closed_at: { type: 'datetime' },
    trashed_at: trashedAt,
    fields: customFields,
    tasks: hasMany('task', 'deal'),
  },
});

export const dealStage = crmType({
  singularName: 'deal-stage',
  pluralName: 'deal-stages',
  displayName: 'Deal stage',
  attributes: {
    name: { type: 'string', required: true, maxLength: 255 },
    position: { type: 'integer', default: 0 },
    probability: { type: 'integer', min: 0, max: 100 },
    deals: hasMany('deal', 'stage'),
  },
});
