import { isDeepStrictEqual } from 'node:util';
import type { ChangeSource } from '../../../../shared/contracts/crm';
import { type Subject, SUBJECT_TYPES } from '../../../../shared/contracts/webhooks';
import { isRecord, lineOf } from '../../runtime/text';

export type Payload = { id: string } & Record<string, unknown>;

export interface TagRef {
  id: string;
  slug: unknown;
  name: unknown;
}

export interface CrmEvent {
  event: string;
  data: unknown;
}

/** A record as it was before a write. `keys`: what was read of it; the write cannot touch the rest. */
export interface Before {
  payload: Readonly<Record<string, unknown>>;
  keys: readonly string[];
  tags: readonly TagRef[] | null;
}

/** One record before and after one business change; null: it does not exist (for receivers). */
export interface Change {
  before: Before | null;
  after: { payload: Payload; tags: Before['tags'] } | null;
  origin: () => ChangeSource;
  bookkeeping: ReadonlySet<string>;
}

export interface WriteImpact {
  action: 'create' | 'update' | 'delete';
  /** Payload keys whose value may change; null: any. */
  keys: ReadonlySet<string> | null;
  /** True if tags may be added or removed. */
  tags: boolean;
}

/** Which events a kind of record sends, and when. */
export interface KindRules {
  /** The events that such a write may cause; without subscribers nothing is read. */
  possible(impact: WriteImpact): string[];
  /** The events that a change did cause, in the order in which they are sent. */
  derive(change: Change): CrmEvent[];
}

export const KINDS = [
  'contact',
  'tag',
  'company',
  'deal',
  'deal-stage',
  'task',
  'campaign',
] as const;
export type Kind = (typeof KINDS)[number];

/** The status that a record came into by a change; null: it is in the same one. */
const statusReached = ({ before, after }: Change): unknown => {
  if (!after || (before && !before.keys.includes('status'))) return null;
  const { status } = after.payload;
  return (before?.payload.status ?? null) === status ? null : status;
};

const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

const campaignRules: KindRules = {
  possible: ({ action, keys }) =>
    action !== 'delete' && (!keys || keys.has('status')) ? ['campaign.sent'] : [],
  derive(change) {
    if (!change.after || statusReached(change) !== 'sent') return [];
    const { id, title, subject, total, sent, failed } = change.after.payload;
    const counts = { total: count(total), sent: count(sent), failed: count(failed) };
    return [{ event: 'campaign.sent', data: { id, title, subject, ...counts } }];
  },
};

const changedNames = (before: unknown, after: unknown): string[] => {
  const old = isRecord(before) ? before : {};
  const now = isRecord(after) ? after : {};
  const names = new Set([...Object.keys(old), ...Object.keys(now)]);
  return [...names].filter((name) => !isDeepStrictEqual(old[name] ?? null, now[name] ?? null));
};

/**
 * The top-level keys whose value differs, custom fields as `fields.<name>`.
 * @param keys the keys to compare; others may not have been read
 * @param bookkeeping dates that change with any other key, and do not count by themselves
 */
export const changedKeys = (
  before: Readonly<Record<string, unknown>>,
  after: Payload,
  keys: Iterable<string>,
  bookkeeping: ReadonlySet<string>
): string[] => {
  const changed: string[] = [];
  for (const key of keys) {
    if (key === 'fields') {
      changed.push(...changedNames(before.fields, after.fields).map((name) => `fields.${name}`));
    } else if (key === 'dates') {
      const names = changedNames(before.dates, after.dates);
      if (names.some((name) => !bookkeeping.has(`dates.${name}`))) changed.push('dates');
    } else if (!isDeepStrictEqual(before[key] ?? null, after[key] ?? null)) {
      changed.push(key);
    }
  }
  return changed;
};

/** The events of a record that was created, changed or deleted; `deleted` and `updated` make their data. */
const lifeEvents = (
  kind: Kind,
  { before, after, bookkeeping }: Change,
  data: {
    deleted(record: Before['payload']): unknown;
    updated(record: Payload, changed: string[]): unknown;
  }
): CrmEvent[] => {
  if (!after)
    return before ? [{ event: `${kind}.deleted`, data: data.deleted(before.payload) }] : [];
  if (!before) return [{ event: `${kind}.created`, data: after.payload }];
  const changed = changedKeys(before.payload, after.payload, before.keys, bookkeeping);
  if (changed.length === 0) return [];
  return [{ event: `${kind}.updated`, data: data.updated(after.payload, changed) }];
};

const companyRules: KindRules = {
  possible({ action, keys }) {
    if (action === 'create') return ['company.created'];
    if (action === 'delete') return ['company.deleted'];
    return keys?.size === 0 ? [] : ['company.updated'];
  },
  derive: (change) =>
    lifeEvents('company', change, { deleted: (company) => company, updated: (company) => company }),
};

const tagEvents = ({ before, after, origin }: Change): CrmEvent[] => {
  if (!after?.tags) return [];
  const old = new Map((before?.tags ?? []).map((tag) => [tag.id, tag]));
  const now = new Map(after.tags.map((tag) => [tag.id, tag]));
  const event = (name: string) => (tag: unknown) => ({
    event: name,
    data: { contact: after.payload, tag, source: origin() },
  });
  const gone = [...old.values()].filter((tag) => !now.has(tag.id));
  const come = [...now.values()].filter((tag) => !old.has(tag.id));
  return [...gone.map(event('contact.untagged')), ...come.map(event('contact.tagged'))];
};

/** The seven contact events; docs/contract-webhooks.md#events. */
const contactRules: KindRules = {
  possible({ action, keys, tags }) {
    if (action === 'delete') return ['contact.deleted'];
    const events = [action === 'create' ? 'contact.created' : 'contact.updated'];
    if (!keys || keys.has('status')) events.push('contact.subscribed', 'contact.unsubscribed');
    if (tags) events.push('contact.tagged');
    if (tags && action === 'update') events.push('contact.untagged');
    return keys?.size === 0 ? events.slice(1) : events;
  },
  derive(change) {
    const events = lifeEvents('contact', change, {
      deleted: ({ id, email }) => ({ id, email }),
      updated: (contact, changed) => ({ contact, changed }),
    });
    const status = statusReached(change);
    if (status === 'subscribed' || status === 'unsubscribed') {
      events.push({ event: `contact.${status}`, data: change.after?.payload });
    }
    return [...events, ...tagEvents(change)];
  },
};

const closing = (change: Change): CrmEvent[] => {
  const deal = change.after?.payload;
  const status = statusReached(change);
  if (status === 'won') return [{ event: 'deal.won', data: deal }];
  if (status !== 'lost') return [];
  return [{ event: 'deal.lost', data: { ...deal, reason: deal?.lost_reason ?? null } }];
};

const stageChange = ({ before, after }: Change): CrmEvent[] => {
  if (!before || !after || !before.keys.includes('stage_id')) return [];
  const from = before.payload.stage_id ?? null;
  const to = after.payload.stage_id ?? null;
  if (from === to) return [];
  const data = { deal: after.payload, from_stage_id: from, to_stage_id: to };
  return [{ event: 'deal.stage_changed', data }];
};

const dealRules: KindRules = {
  possible({ action, keys }) {
    if (action === 'delete') return ['deal.deleted'];
    if (keys?.size === 0) return [];
    const events = [action === 'create' ? 'deal.created' : 'deal.updated'];
    if (action === 'update' && (!keys || keys.has('stage_id'))) events.push('deal.stage_changed');
    if (!keys || keys.has('status')) events.push('deal.won', 'deal.lost');
    return events;
  },
  derive(change) {
    const events = lifeEvents('deal', change, {
      deleted: ({ id, title }) => ({ id, title }),
      updated: (deal, changed) => ({ ...deal, changed }),
    });
    return events.length === 0 ? [] : [...events, ...stageChange(change), ...closing(change)];
  },
};

/** With or without subscribers, `forms.ts` adds the sender of a new entry to the CRM. */
const formRules: KindRules = {
  possible: ({ action }) => (action === 'create' ? ['form.submitted'] : []),
  derive: () => [],
};

const taskRules: KindRules = {
  possible({ action, keys }) {
    if (action === 'delete') return [];
    const completed = !keys || keys.has('status') ? ['task.completed'] : [];
    return action === 'create' ? ['task.created', ...completed] : completed;
  },
  derive(change) {
    const task = change.after?.payload;
    if (!task) return [];
    const events: CrmEvent[] = change.before ? [] : [{ event: 'task.created', data: task }];
    if (statusReached(change) === 'done') {
      events.push({ event: 'task.completed', data: { ...task, outcome: task.outcome ?? null } });
    }
    return events;
  },
};

/** Kinds without rules send no events of their own. */
export const KIND_RULES: Readonly<Partial<Record<Kind | 'form', KindRules>>> = {
  contact: contactRules,
  company: companyRules,
  deal: dealRules,
  task: taskRules,
  campaign: campaignRules,
  form: formRules,
};

/** Every event that a write to a record of a kind may cause. */
export const eventsOfKind = (kind: Kind | 'form'): readonly string[] => {
  const actions = ['create', 'update', 'delete'] as const;
  const possible = (action: WriteImpact['action']) =>
    KIND_RULES[kind]?.possible({ action, keys: null, tags: true }) ?? [];
  return [...new Set(actions.flatMap(possible))];
};

const LABEL_MAX = 200;
const ID_MAX = 255;
const LABEL_KEYS = ['name', 'title', 'email'] as const;

/** The record that an event is about; null: none. docs/contract-webhooks.md#deliveries */
export const subjectOf = ({ event, data }: CrmEvent): Subject | null => {
  const kind = event.split('.', 1)[0] ?? '';
  const isOfContact = kind === 'form' || kind === 'email';
  const type = isOfContact ? 'contact' : SUBJECT_TYPES.find((one) => one === kind);
  if (!type || !isRecord(data)) return null;
  const record = isRecord(data[type]) ? data[type] : data;
  const id = lineOf(record.id, ID_MAX);
  if (id === '') return null;
  let label = '';
  for (const key of LABEL_KEYS) label ||= lineOf(record[key], LABEL_MAX);
  return { type, id, label: label || lineOf(id, LABEL_MAX) };
};
