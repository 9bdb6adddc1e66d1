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
  screen: {
    mainField: 'title',
    sortBy: 'due_at',
    list: ['title', 'type', 'task_status', 'due_at', 'contact', 'owner'],
    edit: [
      { title: 12 },
      { type: 6, task_status: 6 },
      { due_at: 6, owner: 6 },
      { description: 12 },
      { outcome: 12 },
      { contact: 6, company: 6 },
      { deal: 6 },
      { completed_at: 6, trashed_at: 6 },
    ],
    readOnly: ['completed_at'],
    chooseBy: { contact: 'email', company: 'name', deal: 'title', owner: 'email' },
  },
});
