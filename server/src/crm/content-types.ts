import { type Attribute, KIND_DEFINITIONS } from './mapping/kinds';
import type { Kind } from './rules';

const hasMany = (kind: Kind, mappedBy: string): Attribute => ({
  type: 'relation',
  relation: 'oneToMany',
  target: `plugin::switchboard.${kind}`,
  mappedBy,
});

const manyToMany = (
  kind: Kind,
  ends: { inversedBy: string } | { mappedBy: string }
): Attribute => ({
  type: 'relation',
  relation: 'manyToMany',
  target: `plugin::switchboard.${kind}`,
  ...ends,
});

/** The unique key of an address or a slug; see `digestOf` in `contact-integrity.ts`. */
const uniqueKey = (): Attribute => ({
  type: 'string',
  private: true,
  pluginOptions: { 'content-manager': { visible: false } },
  visible: false,
  configurable: false,
  writable: false,
});

/** How the content manager shows a type on a site that has not arranged it itself. */
interface Screen {
  mainField: string;
  /** `mainField`, if left out. */
  sortBy?: string;
  list: string[];
  /** Rows of the form: attributes and how many of the twelve columns each takes. */
  edit: Record<string, number>[];
  readOnly?: string[];
  /** The attribute by which people choose related records, if it is not the host's first guess. */
  chooseBy?: Record<string, string>;
}

interface TypeInput {
  /** Attributes that are no part of a payload; the others are those of the kind's fields. */
  more?: Record<string, Attribute>;
  /**
   * Attributes that stand before another one, by their names. The host compares the fields of permissions
   * in their order, and recreates its own if the order differs.
   */
  before?: Record<string, string>;
  indexes?: { name: string; columns: string[]; type?: 'unique' }[];
  screen: Screen;
}

const labelOf = (name: string): string => {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
};

const screenConfig = (names: readonly string[], screen: Screen) => ({
  settings: {
    bulkable: true,
    filterable: true,
    searchable: true,
    pageSize: 20,
    mainField: screen.mainField,
    defaultSortBy: screen.sortBy ?? screen.mainField,
    defaultSortOrder: 'ASC',
  },
  metadatas: Object.fromEntries(
    names.map((name) => [
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
const crmType = (
  kind: Kind,
  { more, before = {}, indexes, screen }: TypeInput
): { schema: unknown } => {
  const { label, plural, fields } = KIND_DEFINITIONS[kind];
  const own = {
    ...Object.fromEntries(
      fields.flatMap(({ attribute, column }) => (column ? [[attribute, column]] : []))
    ),
    ...more,
  };
  const names = Object.keys(own).filter((name) => !(name in before));
  for (const [name, next] of Object.entries(before)) names.splice(names.indexOf(next), 0, name);
  const attributes = Object.fromEntries(names.map((name) => [name, own[name]]));
  return {
    schema: {
      kind: 'collectionType',
      collectionName: `switchboard_${plural.replaceAll('-', '_')}`,
      info: { singularName: kind, pluralName: plural, displayName: label },
      options: { draftAndPublish: false },
      pluginOptions: { 'content-type-builder': { visible: false } },
      attributes,
      indexes,
      config: screenConfig(Object.keys(attributes), screen),
    },
  };
};

/** By singular name, as the host wants them. */
export const contentTypes = {
  contact: crmType('contact', {
    more: {
      email_key: uniqueKey(),
      tags: manyToMany('tag', { inversedBy: 'contacts' }),
      deals: hasMany('deal', 'contact'),
      tasks: hasMany('task', 'contact'),
    },
    before: { tags: 'address' },
    indexes: [{ name: 'switchboard_contacts_email', columns: ['email_key'], type: 'unique' }],
    screen: {
      mainField: 'email',
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
  }),
  tag: crmType('tag', {
    more: {
      slug_key: uniqueKey(),
      contacts: manyToMany('contact', { mappedBy: 'tags' }),
    },
    before: { name: 'slug' },
    indexes: [{ name: 'switchboard_tags_slug', columns: ['slug_key'], type: 'unique' }],
    screen: {
      mainField: 'name',
      list: ['name', 'slug', 'contacts'],
      edit: [{ name: 6, slug: 6 }, { contacts: 12 }],
      chooseBy: { contacts: 'email' },
    },
  }),
  company: crmType('company', {
    more: {
      contacts: hasMany('contact', 'company'),
      deals: hasMany('deal', 'company'),
      tasks: hasMany('task', 'company'),
    },
    screen: {
      mainField: 'name',
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
  }),
  deal: crmType('deal', {
    more: { tasks: hasMany('task', 'deal') },
    screen: {
      mainField: 'title',
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
      chooseBy: {
        stage: 'name',
        contact: 'email',
        company: 'name',
        owner: 'email',
        tasks: 'title',
      },
    },
  }),
  'deal-stage': crmType('deal-stage', {
    more: { deals: hasMany('deal', 'stage') },
    screen: {
      mainField: 'name',
      sortBy: 'position',
      list: ['name', 'position', 'probability', 'deals'],
      edit: [{ name: 12 }, { position: 4, probability: 4 }, { deals: 12 }],
      chooseBy: { deals: 'title' },
    },
  }),
  task: crmType('task', {
    before: { completed_at: 'contact', owner: 'contact' },
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
  }),
  campaign: crmType('campaign', {
    screen: {
      mainField: 'title',
      list: ['title', 'subject', 'campaign_status', 'total', 'sent', 'failed'],
      edit: [
        { title: 6, subject: 6 },
        { campaign_status: 6, sent_at: 6 },
        { total: 4, sent: 4, failed: 4 },
      ],
      readOnly: ['sent_at'],
    },
  }),
};
