import { TASK_STATUSES, TASK_TYPES } from '../../../../shared/contracts/crm';
import { belongsTo, crmType, owner, trashedAt } from './parts';

export const task = crmType({
  singularName: 'task',
  pluralName: 'tasks',
  displayName: 'Task',
  attributes: {
    title: { type: 'string', required: true, maxLength: 255 },
    type: { type: 'enumeration', enum: [...TASK_TYPES], default: 'task' },
    task_status: { type: 'enumeration', enum: [...TASK_STATUSES], default: 'open' },
    outcome: { type: 'string', maxLength: 255 },
    description: { type: 'text' },
    due_at: { type: 'datetime' },
    completed_at: { type: 'datetime' },
    owner,
    contact: belongsTo('contact', 'tasks'),
    company: belongsTo('company', 'tasks'),
    deal: belongsTo('deal', 'tasks'),
    trashed_at: trashedAt,
  },
});
