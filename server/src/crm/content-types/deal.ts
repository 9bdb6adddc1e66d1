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
  screen: {
    mainField: 'title',
    sortBy: 'title',
    list: ['title', 'value', 'currency', 'stage', 'deal_status', 'expected_close_date'],
    edit: [
      { title: 12 },
      { value: 4, currency: 4, expected_close_date: 4 },
      { stage: 6, deal_status: 6 },
      { lost_reason: 12 },
      { contact: 6, company: 6 },
      { owner: 6, tasks: 6 },
      { fields: 12 },
      { closed_at: 6, trashed_at: 6 },
    ],
    readOnly: ['closed_at'],
    chooseBy: { stage: 'name', contact: 'email', company: 'name', owner: 'email', tasks: 'title' },
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
  screen: {
    mainField: 'name',
    sortBy: 'position',
    list: ['name', 'position', 'probability', 'deals'],
    edit: [{ name: 12 }, { position: 4, probability: 4 }, { deals: 12 }],
    chooseBy: { deals: 'title' },
  },
});
