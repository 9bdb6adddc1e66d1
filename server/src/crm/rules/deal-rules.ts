import { changedKeys } from './changed';
import type { Change, CrmEvent, KindRules } from './types';

const closing = ({ before, after }: Change): CrmEvent[] => {
  if (!after || (before && !before.keys.includes('status'))) return [];
  const { status, lost_reason: reason } = after.payload;
  if ((before?.payload.status ?? null) === status) return [];
  if (status === 'won') return [{ event: 'deal.won', data: after.payload }];
  if (status === 'lost') {
    return [{ event: 'deal.lost', data: { ...after.payload, reason: reason ?? null } }];
  }
  return [];
};

const stageChange = ({ before, after }: Change): CrmEvent[] => {
  if (!before || !after || !before.keys.includes('stage_id')) return [];
  const from = before.payload.stage_id ?? null;
  const to = after.payload.stage_id ?? null;
  if (from === to) return [];
  const data = { deal: after.payload, from_stage_id: from, to_stage_id: to };
  return [{ event: 'deal.stage_changed', data }];
};

export const dealRules: KindRules = {
  possible({ action, keys }) {
    if (action === 'delete') return ['deal.deleted'];
    if (keys?.size === 0) return [];
    const events = [action === 'create' ? 'deal.created' : 'deal.updated'];
    if (action === 'update' && (!keys || keys.has('stage_id'))) events.push('deal.stage_changed');
    if (!keys || keys.has('status')) events.push('deal.won', 'deal.lost');
    return events;
  },
  derive(change) {
    const { before, after, bookkeeping } = change;
    if (!after) {
      if (!before) return [];
      const { id, title } = before.payload;
      return [{ event: 'deal.deleted', data: { id, title } }];
    }
    if (!before) return [{ event: 'deal.created', data: after.payload }, ...closing(change)];
    const changed = changedKeys(before.payload, after.payload, before.keys, bookkeeping);
    if (changed.length === 0) return [];
    const updated = { event: 'deal.updated', data: { ...after.payload, changed } };
    return [updated, ...stageChange(change), ...closing(change)];
  },
};
