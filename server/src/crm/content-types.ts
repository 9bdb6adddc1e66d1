import {
  CAMPAIGN_STATUSES,
  CONTACT_STATUSES,
  DEAL_STATUSES,
  TASK_STATUSES,
  TASK_TYPES,
} from '../../../shared/contracts/crm';

/** Attributes that several CRM types share. */

type Attribute = Record<string, unknown>;

/** One-way to an admin user: many records may have the same owner. */
const owner: Attribute = { type: 'relation', relation: 'oneToOne', target: 'admin::user' };

/** Set: the record lies in the bin. It is still there; deleting it for good is another thing. */
const trashedAt: Attribute = { type: 'datetime' };

/** The site's custom fields, by name. */
const customFields: Attribute = { type: 'json' };

const belongsTo = (singularName: string, inversedBy: string): Attribute => ({
  type: 'relation',
  relation: 'manyToOne',
  target: `plugin::switchboard.${singularName}`,
  inversedBy,
});

const hasMany = (singularName: string, mappedBy: string): Attribute => ({
  type: 'relation',
  relation: 'oneToMany',
  target: `plugin::switchboard.${singularName}`,
  mappedBy,
});

/** How the content manager shows a type on a site that has not arranged it itself. */
interface Screen {
  /** What a record is called in relations and titles. */
  mainField: string;
  sortBy: string;
  /** Columns of the list. */
  list: string[];
  /** Rows of the form: attributes and how many of the twelve columns each takes. */
  edit: Record<string, number>[];
  /** Kept by the plugin, shown but not edited. */
  readOnly?: string[];
  /** What people choose related records by, where it is not the host's first guess. */
  chooseBy?: Record<string, string>;
}

interface TypeInput {
  singularName: string;
  pluralName: string;
  displayName: string;
  attributes: Record<string, Attribute>;
  indexes?: { name: string; columns: string[]; type?: 'unique' }[];
  screen: Screen;
}

const labelOf = (name: string): string => {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
};

const screenConfig = ({ attributes, screen }: TypeInput) => ({
  settings: {
    bulkable: true,
    filterable: true,
    searchable: true,
    pageSize: 20,
    mainField: screen.mainField,
    defaultSortBy: screen.sortBy,
    defaultSortOrder: 'ASC',
  },
  metadatas: Object.fromEntries(
    Object.keys(attributes).map((name) => [
      name,
      {
        edit: {
          label: labelOf(name),
          editable: !screen.readOnly?.includes(name),
          ...(screen.chooseBy?.[name] && { mainField: screen.chooseBy[name] }),
        },
        list: { label: labelOf(name) },
      },
    ])
  ),
  layouts: {
    list: screen.list,
    edit: screen.edit.map((row) => Object.entries(row).map(([name, size]) => ({ name, size }))),
  },
});

/**
 * A CRM content type. The attribute behind the payload key `status` is never called `status`: the
 * content manager takes that name of a request body for the publication status.
 */
const crmType = (input: TypeInput): { schema: unknown } => ({
  schema: {
    kind: 'collectionType',
    collectionName: `switchboard_${input.pluralName.replaceAll('-', '_')}`,
    info: {
      singularName: input.singularName,
      pluralName: input.pluralName,
      displayName: input.displayName,
    },
    options: { draftAndPublish: false },
    pluginOptions: { 'content-type-builder': { visible: false } },
    attributes: input.attributes,
    indexes: input.indexes,
    config: screenConfig(input),
  },
});

const campaign = crmType({
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

const company = crmType({
  singularName: 'company',
  pluralName: 'companies',
  displayName: 'Company',
  attributes: {
    name: { type: 'string', required: true, maxLength: 255 },
    domain: { type: 'string', maxLength: 255 },
    email: { type: 'email', maxLength: 254 },
    phone: { type: 'string', maxLength: 64 },
    website: { type: 'string', maxLength: 255 },
    industry: { type: 'string', maxLength: 255 },
    employees: { type: 'integer' },
    description: { type: 'text' },
    owner,
    address: { type: 'json' },
    trashed_at: trashedAt,
    fields: customFields,
    contacts: hasMany('contact', 'company'),
    deals: hasMany('deal', 'company'),
    tasks: hasMany('task', 'company'),
  },
  screen: {
    mainField: 'name',
    sortBy: 'name',
    list: ['name', 'domain', 'industry', 'contacts', 'deals'],
    edit: [
      { name: 6, domain: 6 },
      { email: 6, phone: 6 },
      { website: 6, industry: 6 },
      { employees: 4, owner: 8 },
      { description: 12 },
      { address: 12 },
      { fields: 12 },
      { contacts: 6, deals: 6 },
      { tasks: 6, trashed_at: 6 },
    ],
    chooseBy: { owner: 'email', contacts: 'email', deals: 'title', tasks: 'title' },
  },
});

const contact = crmType({
  singularName: 'contact',
  pluralName: 'contacts',
  displayName: 'Contact',
  attributes: {
    email: { type: 'email', maxLength: 254 },
    /** What makes an address unique whatever its case; see `emailKey`. */
    email_key: {
      type: 'string',
      private: true,
      pluginOptions: { 'content-manager': { visible: false } },
      visible: false,
      configurable: false,
      writable: false,
    },
    first_name: { type: 'string', maxLength: 255 },
    last_name: { type: 'string', maxLength: 255 },
    phone: { type: 'string', maxLength: 64 },
    job_title: { type: 'string', maxLength: 255 },
    contact_status: { type: 'enumeration', enum: [...CONTACT_STATUSES], default: 'pending' },
    lifecycle_stage: { type: 'string', maxLength: 64 },
    owner,
    company: belongsTo('company', 'contacts'),
    tags: {
      type: 'relation',
      relation: 'manyToMany',
      target: 'plugin::switchboard.tag',
      inversedBy: 'contacts',
    },
    address: { type: 'json' },
    score: { type: 'integer', default: 0 },
    // Wider than the host's decimals: sums of purchases are exact in every currency.
    lifetime_value: {
      type: 'decimal',
      default: 0,
      columnType: { type: 'decimal', args: [30, 4] },
    },
    source: { type: 'string', maxLength: 255 },
    subscribed_at: { type: 'datetime' },
    unsubscribed_at: { type: 'datetime' },
    trashed_at: trashedAt,
    fields: customFields,
    deals: hasMany('deal', 'contact'),
    tasks: hasMany('task', 'contact'),
  },
  screen: {
    mainField: 'email',
    sortBy: 'email',
    list: ['email', 'first_name', 'last_name', 'contact_status', 'company', 'tags'],
    edit: [
      { first_name: 6, last_name: 6 },
      { email: 6, phone: 6 },
      { job_title: 6, company: 6 },
      { contact_status: 6, lifecycle_stage: 6 },
      { tags: 6, owner: 6 },
      { score: 4, lifetime_value: 4, source: 4 },
      { address: 12 },
      { fields: 12 },
      { deals: 6, tasks: 6 },
      { subscribed_at: 6, unsubscribed_at: 6 },
      { trashed_at: 6 },
    ],
    readOnly: ['subscribed_at', 'unsubscribed_at'],
    chooseBy: { company: 'name', tags: 'name', owner: 'email', deals: 'title', tasks: 'title' },
  },
  indexes: [{ name: 'switchboard_contacts_email', columns: ['email_key'], type: 'unique' }],
});

const deal = crmType({
  singularName: 'deal',
  pluralName: 'deals',
  displayName: 'Deal',
  attributes: {
    title: { type: 'string', required: true, maxLength: 255 },
    value: { type: 'decimal', default: 0 },
    currency: { type: 'string', maxLength: 3, minLength: 3 },
    deal_status: { type: 'enumeration', enum: [...DEAL_STATUSES], default: 'open' },
    lost_reason: { type: 'string', maxLength: 255 },
    stage: belongsTo('deal-stage', 'deals'),
    contact: belongsTo('contact', 'deals'),
    company: belongsTo('company', 'deals'),
    owner,
    expected_close_date: { type: 'date' },
    closed_at: { type: 'datetime' },
    trashed_at: trashedAt,
    fields: customFields,
    tasks: hasMany('task', 'deal'),
  },
  screen: {
    mainField: 'title',
    sortBy: 'title',
    list: ['title', 'value', 'currency', 'stage', 'deal_status', 'expected_close_date'],
    edit: [
      { title: 12 },
      { value: 4, currency: 4, expected_close_date: 4 },
      { stage: 6, deal_status: 6 },
      { lost_reason: 12 },
      { contact: 6, company: 6 },
      { owner: 6, tasks: 6 },
      { fields: 12 },
      { closed_at: 6, trashed_at: 6 },
    ],
    readOnly: ['closed_at'],
    chooseBy: { stage: 'name', contact: 'email', company: 'name', owner: 'email', tasks: 'title' },
  },
});

const dealStage = crmType({
  singularName: 'deal-stage',
  pluralName: 'deal-stages',
  displayName: 'Deal stage',
  attributes: {
    name: { type: 'string', required: true, maxLength: 255 },
    position: { type: 'integer', default: 0 },
    probability: { type: 'integer', min: 0, max: 100 },
    deals: hasMany('deal', 'stage'),
  },
  screen: {
    mainField: 'name',
    sortBy: 'position',
    list: ['name', 'position', 'probability', 'deals'],
    edit: [{ name: 12 }, { position: 4, probability: 4 }, { deals: 12 }],
    chooseBy: { deals: 'title' },
  },
});

const tag = crmType({
  singularName: 'tag',
  pluralName: 'tags',
  displayName: 'Tag',
  attributes: {
    name: { type: 'string', required: true, maxLength: 255 },
    slug: { type: 'uid', targetField: 'name', required: true },
    /** What makes a slug unique; see `tag-slugs.ts`. */
    slug_key: {
      type: 'string',
      private: true,
      pluginOptions: { 'content-manager': { visible: false } },
      visible: false,
      configurable: false,
      writable: false,
    },
    contacts: {
      type: 'relation',
      relation: 'manyToMany',
      target: 'plugin::switchboard.contact',
      mappedBy: 'tags',
    },
  },
  screen: {
    mainField: 'name',
    sortBy: 'name',
    list: ['name', 'slug', 'contacts'],
    edit: [{ name: 6, slug: 6 }, { contacts: 12 }],
    chooseBy: { contacts: 'email' },
  },
  indexes: [{ name: 'switchboard_tags_slug', columns: ['slug_key'], type: 'unique' }],
});

const task = crmType({
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

/** By singular name, as the host wants them. */
export const contentTypes = {
  contact,
  tag,
  company,
  deal,
  'deal-stage': dealStage,
  task,
  campaign,
};
