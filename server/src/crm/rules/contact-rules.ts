import { changedKeys } from './changed';
import type { Change, CrmEvent, KindRules } from './types';

const tagEvents = ({ before, after, origin }: Change): CrmEvent[] => {
  if (!after?.tags) return [];
  const old = new Map((before?.tags ?? []).map((tag) => [tag.id, tag]));
  const now = new Map(after.tags.map((tag) => [tag.id, tag]));
  const event = (name: string) => (tag: unknown) => ({
    event: name,
    data: { contact: after.payload, tag, source: origin },
  });
  const gone = [...old.values()].filter((tag) => !now.has(tag.id));
  const come = [...now.values()].filter((tag) => !old.has(tag.id));
  return [...gone.map(event('contact.untagged')), ...come.map(event('contact.tagged'))];
};

const statusEvents = ({ before, after }: Change): CrmEvent[] => {
  if (!after || (before && !before.keys.includes('status'))) return [];
  const { status } = after.payload;
  if ((before?.payload.status ?? null) === status) return [];
  if (status === 'subscribed') return [{ event: 'contact.subscribed', data: after.payload }];
  if (status === 'unsubscribed') return [{ event: 'contact.unsubscribed', data: after.payload }];
  return [];
};

/** The seven contact events; docs/contract-webhooks.md#events. */
export const contactRules: KindRules = {
  possible({ action, keys, tags }) {
    if (action === 'delete') return ['contact.deleted'];
    const events = [action === 'create' ? 'contact.created' : 'contact.updated'];
    if (!keys || keys.has('status')) events.push('contact.subscribed', 'contact.unsubscribed');
    if (tags) events.push('contact.tagged');
    if (tags && action === 'update') events.push('contact.untagged');
    return keys?.size === 0 ? events.slice(1) : events;
  },
  derive(change) {
    const { before, after, bookkeeping } = change;
    if (!after) {
      if (!before) return [];
      const { id, email } = before.payload;
      return [{ event: 'contact.deleted', data: { id, email } }];
    }
    const events: CrmEvent[] = [];
    if (!before) {
      events.push({ event: 'contact.created', data: after.payload });
    } else {
      const changed = changedKeys(before.payload, after.payload, before.keys, bookkeeping);
      if (changed.length > 0) {
        events.push({ event: 'contact.updated', data: { contact: after.payload, changed } });
      }
    }
    return [...events, ...statusEvents(change), ...tagEvents(change)];
  },
};
