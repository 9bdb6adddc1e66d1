import type { KindRules } from './types';

export const taskRules: KindRules = {
  possible({ action, keys }) {
    if (action === 'delete') return [];
    const completed = !keys || keys.has('status') ? ['task.completed'] : [];
    return action === 'create' ? ['task.created', ...completed] : completed;
  },
  derive({ before, after }) {
    if (!after) return [];
    const created = before ? [] : [{ event: 'task.created', data: after.payload }];
    const knowsStatus = !before || before.keys.includes('status');
    const isDone =
      knowsStatus && after.payload.status === 'done' && before?.payload.status !== 'done';
    const data = { ...after.payload, outcome: after.payload.outcome ?? null };
    return isDone ? [...created, { event: 'task.completed', data }] : created;
  },
};
