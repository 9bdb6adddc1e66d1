/** What an object of each kind consists of, and which attribute of the plugin's own type holds it. */

import type { Kind } from '../rules/types';

/**
 * `ref`: the document id of a related record. `owner`: the id of an admin user. `bag`: an object of
 * the site's own making. `list`: a relation to many that is no payload key itself.
 */
export type FieldType = 'text' | 'number' | 'time' | 'date' | 'ref' | 'owner' | 'bag';

export interface FieldDefinition {
  /** Where it is in the payload: `email`, `dates.created_at`, `fields`. */
  readonly path: string;
  /** The attribute of the plugin's own content type. */
  readonly attribute: string;
  readonly type: FieldType;
  /** Moves by itself, as a consequence of another change: never named in `changed`. */
  readonly bookkeeping?: true;
}

export interface KindDefinition {
  readonly kind: Kind;
  readonly uid: string;
  readonly fields: readonly FieldDefinition[];
  /** A `fields` object of custom fields is part of the payload. */
  readonly custom: boolean;
}

const field = (path: string, attribute: string, type: FieldType = 'text'): FieldDefinition => ({
  path,
  attribute,
  type,
});

const bookkeeping = (name: string, attribute: string): FieldDefinition => ({
  ...field(`dates.${name}`, attribute, 'time'),
  bookkeeping: true,
});

const stamps = [bookkeeping('created_at', 'createdAt'), bookkeeping('updated_at', 'updatedAt')];
const trashedAt = field('dates.trashed_at', 'trashed_at', 'time');
const ownerId = field('owner_id', 'owner', 'owner');
const companyId = field('company_id', 'company', 'ref');
const custom = field('fields', 'fields', 'bag');

const same = (...names: string[]): FieldDefinition[] => names.map((name) => field(name, name));

const define = (kind: Kind, fields: FieldDefinition[]): KindDefinition => ({
  kind,
  uid: `plugin::switchboard.${kind}`,
  fields,
  custom: fields.includes(custom),
});

/** In the order in which a payload lists its keys; `id` comes first in each. */
export const KIND_DEFINITIONS: Readonly<Record<Kind, KindDefinition>> = {
  contact: define('contact', [
    ...same('email', 'first_name', 'last_name'),
    field('name', ''),
    ...same('phone', 'job_title'),
    field('status', 'contact_status'),
    field('lifecycle_stage', 'lifecycle_stage'),
    ownerId,
    companyId,
    field('address', 'address', 'bag'),
    field('score', 'score', 'number'),
    field('lifetime_value', 'lifetime_value', 'number'),
    field('source', 'source'),
    ...stamps,
    bookkeeping('subscribed_at', 'subscribed_at'),
    bookkeeping('unsubscribed_at', 'unsubscribed_at'),
    trashedAt,
    custom,
  ]),
  tag: define('tag', same('slug', 'name')),
  company: define('company', [
    ...same('name', 'domain', 'email', 'phone', 'website', 'industry'),
    field('employees', 'employees', 'number'),
    field('description', 'description'),
    ownerId,
    field('address', 'address', 'bag'),
    ...stamps,
    trashedAt,
    custom,
  ]),
  deal: define('deal', [
    field('title', 'title'),
    field('value', 'value', 'number'),
    field('currency', 'currency'),
    field('status', 'deal_status'),
    field('lost_reason', 'lost_reason'),
    field('stage_id', 'stage', 'ref'),
    field('contact_id', 'contact', 'ref'),
    companyId,
    ownerId,
    field('expected_close_date', 'expected_close_date', 'date'),
    ...stamps,
    bookkeeping('closed_at', 'closed_at'),
    trashedAt,
    custom,
  ]),
  'deal-stage': define('deal-stage', [
    field('name', 'name'),
    field('position', 'position', 'number'),
    field('probability', 'probability', 'number'),
  ]),
  task: define('task', [
    ...same('title', 'type'),
    field('status', 'task_status'),
    ...same('outcome', 'description'),
    field('due_at', 'due_at', 'time'),
    field('contact_id', 'contact', 'ref'),
    companyId,
    field('deal_id', 'deal', 'ref'),
    ownerId,
    ...stamps,
    bookkeeping('completed_at', 'completed_at'),
    trashedAt,
  ]),
  campaign: define('campaign', [
    ...same('title', 'subject'),
    field('status', 'campaign_status'),
    field('total', 'total', 'number'),
    field('sent', 'sent', 'number'),
    field('failed', 'failed', 'number'),
    ...stamps,
    bookkeeping('sent_at', 'sent_at'),
  ]),
};
