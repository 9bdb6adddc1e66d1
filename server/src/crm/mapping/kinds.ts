import { z } from '@strapi/utils';
import {
  CAMPAIGN_STATUSES,
  CONTACT_STATUSES,
  DEAL_STATUSES,
  TASK_STATUSES,
  TASK_TYPES,
} from '../../../../shared/contracts/crm';
import type { ModuleId } from '../../../../shared/contracts/modules';
import { readOnly } from '../../http/validation';
import type { Kind } from '../rules';

/** `ref`: the document id of a record. `owner`: the id of an admin user. `bag`: an object of the site's own. */
export type FieldType = 'text' | 'number' | 'time' | 'date' | 'ref' | 'owner' | 'bag';

export type Attribute = Record<string, unknown>;

/** A value as the plugin's own type keeps it, as REST takes it, and as REST and events show it. */
interface Value {
  readonly type: FieldType;
  /** null: the host keeps it itself, or nothing does. */
  readonly column: Attribute | null;
  /** Valid values of its column; null: it is not written. */
  readonly input: z.ZodType | null;
  /** Any text for a status: a site that maps types of its own may keep other ones. */
  readonly output: z.ZodType;
}

export interface FieldDefinition extends Value {
  /** The path in the payload: `email`, `dates.created_at`, `fields`. */
  readonly path: string;
  readonly attribute: string;
  /** Moves by itself, as a consequence of another change: never named in `changed`. */
  readonly bookkeeping?: true;
  /** The plugin adds to it, such as purchases: read-only in the admin panel. REST and imports may set it. */
  readonly kept?: true;
}

/** True if a value is read-only in the admin panel, because the plugin keeps it. */
export const isComputed = ({ bookkeeping, kept, column }: FieldDefinition): boolean =>
  column !== null && (bookkeeping ?? kept ?? false);

export interface KindDefinition {
  readonly kind: Kind;
  readonly uid: string;
  readonly label: string;
  readonly plural: string;
  /** Without which its routes do not answer. */
  readonly module?: ModuleId;
  readonly fields: readonly FieldDefinition[];
  readonly filters: readonly string[];
}

/*
 * Inputs are what the columns can hold, so that a wrong value is a 400 and no database has to refuse it:
 * PostgreSQL takes no NUL, a decimal has ten digits, MySQL's dates end with the year 9999.
 */

const noNul = { message: 'must not contain a NUL character' };
const hasNoNul = (value: string): boolean => !value.includes('\0');

const optional = (type: z.ZodType) => type.nullable().optional();

const text = (
  maximum = 255,
  column: Attribute = { type: 'string', maxLength: maximum }
): Value => ({
  type: 'text',
  column,
  input: optional(z.string().max(maximum).refine(hasNoNul, noNul)),
  output: z.string().nullable(),
});

const longText = (): Value => text(65_000, { type: 'text' });

const requiredText = (): Value => ({
  ...text(255, { type: 'string', required: true, maxLength: 255 }),
  input: z
    .string()
    .max(255)
    .refine((value) => value.trim() !== '', { message: 'must not be empty' })
    .refine(hasNoNul, noNul),
});

const email = (): Value => ({
  ...text(254, { type: 'email', maxLength: 254 }),
  input: optional(z.email().max(254)),
});

const slug = (): Value => ({
  ...text(255, { type: 'uid', targetField: 'name', required: true }),
  input: z
    .string()
    .max(255)
    .regex(/^[A-Za-z0-9-_.~]+$/, { message: 'may hold letters, digits, "-", "_", "." and "~"' })
    .optional(),
});

const currency = (): Value => ({
  ...text(3, { type: 'string', maxLength: 3, minLength: 3 }),
  input: optional(
    z.string().regex(/^[A-Z]{3}$/, { message: 'must be an ISO 4217 code such as EUR' })
  ),
});

const choice = <const V extends readonly [string, ...string[]]>(
  values: V,
  byDefault: V[number]
): Value => ({
  ...text(255, { type: 'enumeration', enum: [...values], default: byDefault }),
  input: optional(z.enum(values)),
});

const integer = (column = {}, minimum = -2_147_483_648, maximum = 2_147_483_647): Value => ({
  type: 'number',
  column: { type: 'integer', ...column },
  input: optional(z.number().int().min(minimum).max(maximum)),
  output: z.number().nullable(),
});

/** Money and the like: two decimals, eight digits before them. */
const decimal = (column: Attribute = {}): Value => ({
  type: 'number',
  column: { type: 'decimal', default: 0, ...column },
  input: optional(z.number().min(-99_999_999.99).max(99_999_999.99)),
  output: z.number().nullable(),
});

const within = (value: string): boolean => value >= '1900' && value < '9999-12-31';
const range = { message: 'must be a date from 1900 to 9998' };

const time = (): Value => ({
  type: 'time',
  column: { type: 'datetime' },
  input: optional(z.iso.datetime({ offset: true }).refine(within, range)),
  output: z.string().meta({ format: 'date-time' }).nullable(),
});

const date = (): Value => ({
  type: 'date',
  column: { type: 'date' },
  input: optional(z.iso.date().refine(within, range)),
  output: z.string().nullable(),
});

const object = () => z.record(z.string(), z.unknown());

/** Characters of a bag as JSON at most. */
export const BAG_MAX = 65_536;
/** A NUL, or half of a surrogate pair, in JSON notation; after an even number of backslashes it is literal text. */
const UNSTORED = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/** @param input of the custom fields that the plugin registers: inputs in the panel in place of JSON */
const bag = (input: 'address' | 'values', output: z.ZodType): Value => ({
  type: 'bag',
  column: { type: 'json', customField: `plugin::switchboard.${input}` },
  input: optional(
    object()
      .refine((value) => JSON.stringify(value).length <= BAG_MAX, {
        message: `must not be longer than ${BAG_MAX} characters`,
      })
      .refine((value) => !UNSTORED.test(JSON.stringify(value)), {
        message: 'must not contain a NUL character or half of a surrogate pair',
      })
  ),
  output,
});

/** A document id. A text of another shape names nothing, and never reaches a query. */
export const DOCUMENT_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** @param inversedBy the attribute of the related type that lists these records */
const ref = (kind: Kind, inversedBy: string): Value => ({
  type: 'ref',
  column: {
    type: 'relation',
    relation: 'manyToOne',
    target: `plugin::switchboard.${kind}`,
    inversedBy,
  },
  input: optional(z.string().regex(DOCUMENT_ID, { message: 'is not the id of a record' })),
  output: z.union([z.string(), z.number()]).nullable(),
});

const field = (path: string, value: Value, attribute = path): FieldDefinition => ({
  path,
  attribute,
  ...value,
});

/** Read-only in REST. */
const bookkeeping = (name: string, attribute: string, column: Attribute | null) => ({
  ...field(`dates.${name}`, time(), attribute),
  column,
  input: null,
  bookkeeping: true as const,
});

/** @param moments dates that the plugin sets by itself, besides the host's */
const stamps = (...moments: string[]): FieldDefinition[] => [
  bookkeeping('created_at', 'createdAt', null),
  bookkeeping('updated_at', 'updatedAt', null),
  ...moments.map((name) => bookkeeping(name, name, { type: 'datetime' })),
];

/** Set: the record is in the bin. It still exists; deleting it permanently is separate. */
const trashedAt = () => field('dates.trashed_at', time(), 'trashed_at');

/** One-way to an admin user: many records may have the same owner. */
const ownerId = (): FieldDefinition => {
  const column = { type: 'relation', relation: 'oneToOne', target: 'admin::user' };
  const output = z.number().int().nullable();
  return field('owner_id', { ...integer(column, 1), type: 'owner', output }, 'owner');
};

const address = () =>
  field('address', bag('address', z.union([object(), z.array(z.unknown())]).nullable()));
const custom = () => field('fields', bag('values', object()));

const define = (kind: Kind, given: Omit<KindDefinition, 'kind' | 'uid'>): KindDefinition => ({
  kind,
  uid: `plugin::switchboard.${kind}`,
  ...given,
});

/** Fields of each kind, in payload order after `id`: content type attribute, REST input, REST and event output. */
export const KIND_DEFINITIONS: Readonly<Record<Kind, KindDefinition>> = {
  contact: define('contact', {
    label: 'Contact',
    plural: 'contacts',
    fields: [
      field('email', email()),
      field('first_name', text()),
      field('last_name', text()),
      field('name', { ...text(), column: null, input: readOnly }, ''),
      field('phone', text(64)),
      field('job_title', text()),
      field('status', choice(CONTACT_STATUSES, 'pending'), 'contact_status'),
      field('lifecycle_stage', text(64)),
      ownerId(),
      field('company_id', ref('company', 'contacts'), 'company'),
      address(),
      field('score', integer({ default: 0 })),
      // Wider than the host's decimals: sums of purchases are exact in every currency.
      {
        ...field('lifetime_value', decimal({ columnType: { type: 'decimal', args: [30, 4] } })),
        kept: true,
      },
      field('source', text()),
      ...stamps('subscribed_at', 'unsubscribed_at'),
      trashedAt(),
      custom(),
    ],
    filters: ['email', 'status', 'company_id', 'tag_id'],
  }),
  tag: define('tag', {
    label: 'Tag',
    plural: 'tags',
    fields: [field('slug', slug()), field('name', requiredText())],
    filters: ['slug', 'contact_id'],
  }),
  company: define('company', {
    label: 'Company',
    plural: 'companies',
    module: 'companies',
    fields: [
      field('name', requiredText()),
      field('domain', text()),
      field('email', email()),
      field('phone', text(64)),
      field('website', text()),
      field('industry', text()),
      field('employees', integer({}, 0)),
      field('description', longText()),
      ownerId(),
      address(),
      ...stamps(),
      trashedAt(),
      custom(),
    ],
    filters: ['domain'],
  }),
  deal: define('deal', {
    label: 'Deal',
    plural: 'deals',
    module: 'sales_pipeline',
    fields: [
      field('title', requiredText()),
      field('value', decimal()),
      field('currency', currency()),
      field('status', choice(DEAL_STATUSES, 'open'), 'deal_status'),
      field('lost_reason', text()),
      field('stage_id', ref('deal-stage', 'deals'), 'stage'),
      field('contact_id', ref('contact', 'deals'), 'contact'),
      field('company_id', ref('company', 'deals'), 'company'),
      ownerId(),
      field('expected_close_date', date()),
      ...stamps('closed_at'),
      trashedAt(),
      custom(),
    ],
    filters: ['status', 'stage_id', 'contact_id', 'company_id'],
  }),
  'deal-stage': define('deal-stage', {
    label: 'Deal stage',
    plural: 'deal-stages',
    module: 'sales_pipeline',
    fields: [
      field('name', requiredText()),
      field('position', integer({ default: 0 })),
      field('probability', integer({ min: 0, max: 100 }, 0, 100)),
    ],
    filters: [],
  }),
  task: define('task', {
    label: 'Task',
    plural: 'tasks',
    fields: [
      field('title', requiredText()),
      field('type', choice(TASK_TYPES, 'task')),
      field('status', choice(TASK_STATUSES, 'open'), 'task_status'),
      field('outcome', text()),
      field('description', longText()),
      field('due_at', time()),
      field('contact_id', ref('contact', 'tasks'), 'contact'),
      field('company_id', ref('company', 'tasks'), 'company'),
      field('deal_id', ref('deal', 'tasks'), 'deal'),
      ownerId(),
      ...stamps('completed_at'),
      trashedAt(),
    ],
    filters: ['status', 'type', 'contact_id', 'company_id', 'deal_id'],
  }),
  campaign: define('campaign', {
    label: 'Campaign',
    plural: 'campaigns',
    module: 'email_marketing',
    fields: [
      field('title', requiredText()),
      field('subject', text()),
      field('status', choice(CAMPAIGN_STATUSES, 'draft'), 'campaign_status'),
      field('total', integer({ default: 0 }, 0)),
      field('sent', integer({ default: 0 }, 0)),
      field('failed', integer({ default: 0 }, 0)),
      ...stamps('sent_at'),
    ],
    filters: ['status'],
  }),
};
