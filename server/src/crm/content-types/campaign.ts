import { CAMPAIGN_STATUSES } from '../../../../shared/contracts/crm';
import { crmType } from './parts';

export const campaign = crmType({
  singularName: 'campaign',
  pluralName: 'campaigns',
  displayName: 'Campaign',
  attributes: {
    title: { type: 'string', required: true, maxLength: 255 },
    subject: { type: 'string', maxLength: 255 },
    campaign_status: { type: 'enumeration', enum: [...CAMPAIGN_STATUSES], default: 'draft' },
    total: { type: 'integer', default: 0 },
    sent: { type: 'integer', default: 0 },
    failed: { type: 'integer', default: 0 },
    sent_at: { type: 'datetime' },
  },
  screen: {
    mainField: 'title',
    sortBy: 'title',
    list: ['title', 'subject', 'campaign_status', 'total', 'sent', 'failed'],
    edit: [
      { title: 6, subject: 6 },
      { campaign_status: 6, sent_at: 6 },
      { total: 4, sent: 4, failed: 4 },
    ],
    readOnly: ['sent_at'],
  },
});
