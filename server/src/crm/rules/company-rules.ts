import { changedKeys } from './changed';
import type { KindRules } from './types';

export const companyRules: KindRules = {
  possible({ action, keys }) {
    if (action === 'create') return ['company.created'];
    if (action === 'delete') return ['company.deleted'];
    return keys?.size === 0 ? [] : ['company.updated'];
  },
  derive({ before, after, bookkeeping }) {
    if (!after) return before ? [{ event: 'company.deleted', data: before.payload }] : [];
    if (!before) return [{ event: 'company.created', data: after.payload }];
    const changed = changedKeys(before.payload, after.payload, before.keys, bookkeeping);
    return changed.length > 0 ? [{ event: 'company.updated', data: after.payload }] : [];
  },
};
