import { type Attribute, isComputed, KIND_DEFINITIONS } from './mapping/kinds';
import { type Kind, KINDS } from './rules';

const CONTACT = KIND_DEFINITIONS.contact.uid;

const related = (
  relation: 'oneToMany' | 'manyToMany',
  kind: Kind,
  end: { inversedBy: string } | { mappedBy: string }
): Attribute => ({ type: 'relation', relation, target: `plugin::switchboard.${kind}`, ...end });

/** The other ends of the relations that records of any kind have to those of this one. */
const inverseEnds = (kind: Kind): Record<string, Attribute> => {
  const target = `plugin::switchboard.${kind}`;
  const ends = KINDS.flatMap((other) =>
    KIND_DEFINITIONS[other].fields
      .filter(({ column }) => column?.target === target)
      .map(({ attribute, column }) => [
        column?.inversedBy,
        related('oneToMany', other, { mappedBy: attribute }),
      ])
  );
  return Object.fromEntries(ends);
};

/** The unique key of an address or a slug; see `emailKey` in `contact-integrity.ts`. */
const uniqueKey = (): Attribute => ({
  type: 'string',
  private: true,
  pluginOptions: { 'content-manager': { visible: false } },
  visible: false,
  configurable: false,
  writable: false,
});

interface TypeInput {
  /** Attributes besides those of the kind's fields, and the other ends of relations to it. */
  more?: Record<string, Attribute>;
  /** Attributes to place before another one, by name. The host recreates permissions if the order of fields differs. */
  before?: Record<string, string>;
  indexes?: { name: string; columns: string[]; type?: 'unique' }[];
  /** The content manager's list, on a site that has not arranged it itself; sorted by the main field. */
  list: string[];
  sortBy?: string;
  /** Rows of the form: attributes and how many of the twelve columns each takes. The bin has actions of its own. */
  edit: Record<string, number>[];
}

/** `visitDate` -> `Visit date`. */
export const labelOf = (name: string): string => {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[\s_-]+/)
    .filter(Boolean)
    .join(' ')
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** Labels that say more than the name of their attribute. */
const LABELS: Readonly<Record<string, string>> = {
  display_name: 'Name',
  fields: 'Custom fields',
  trashed_at: 'In the bin since',
};

/** The attribute that represents a record, or an admin user, in selection fields. */
export const mainFieldOf = (target: string): string => {
  if (target === CONTACT) return 'display_name';
  const kind = KINDS.find((one) => KIND_DEFINITIONS[one].uid === target);
  const names = kind ? KIND_DEFINITIONS[kind].fields.map(({ attribute }) => attribute) : [];
  return ['name', 'title'].find((name) => names.includes(name)) ?? 'email';
};

const screenConfig = (
  kind: Kind,
  attributes: Record<string, Attribute>,
  { list, sortBy, edit }: TypeInput
) => {
  const { uid, fields } = KIND_DEFINITIONS[kind];
  const mainField = mainFieldOf(uid);
  const fixed = ['display_name', 'trashed_at'];
  fixed.push(...fields.filter(isComputed).map(({ attribute }) => attribute));
  return {
    settings: {
      bulkable: true,
      filterable: true,
      searchable: true,
      pageSize: 20,
      mainField,
      defaultSortBy: sortBy ?? mainField,
      defaultSortOrder: 'ASC',
    },
    metadatas: Object.fromEntries(
      Object.entries(attributes).map(([name, { target }]) => {
        const label = LABELS[name] ?? labelOf(name);
        const chosen = target === undefined ? {} : { mainField: mainFieldOf(String(target)) };
        return [
          name,
          { edit: { label, editable: !fixed.includes(name), ...chosen }, list: { label } },
        ];
      })
    ),
    layouts: {
      list,
      edit: edit.map((row) => Object.entries(row).map(([name, size]) => ({ name, size }))),
    },
  };
};

/** A CRM content type. The payload key `status` needs another attribute name: the content manager reserves `status`. */
const crmType = (kind: Kind, input: TypeInput) => {
  const { more, before = {}, indexes } = input;
  const { label, plural, fields } = KIND_DEFINITIONS[kind];
  const own = {
    ...Object.fromEntries(
      fields.flatMap(({ attribute, column }) => (column ? [[attribute, column]] : []))
    ),
    ...more,
    ...inverseEnds(kind),
  };
  const names = Object.keys(own).filter((name) => !(name in before));
  for (const [name, next] of Object.entries(before)) names.splice(names.indexOf(next), 0, name);
  const attributes = Object.fromEntries(names.map((name) => [name, own[name] as Attribute]));
  return {
    schema: {
      kind: 'collectionType',
      collectionName: `switchboard_${plural.replaceAll('-', '_')}`,
      info: { singularName: kind, pluralName: plural, displayName: label },
      options: { draftAndPublish: false },
      pluginOptions: { 'content-type-builder': { visible: false } },
      attributes,
      indexes,
      config: screenConfig(kind, attributes, input),
    },
  };
};

/** By singular name, as the host wants them. */
export const contentTypes = {
  contact: crmType('contact', {
    more: {
      email_key: uniqueKey(),
      // See `displayName` in `contact-integrity.ts`: a first and a last name, with the space between them.
      display_name: { type: 'string', columnType: { type: 'string', args: [511] }, private: true },
      tags: related('manyToMany', 'tag', { inversedBy: 'contacts' }),
    },
    before: { tags: 'address' },
    indexes: [{ name: 'switchboard_contacts_email', columns: ['email_key'], type: 'unique' }],
    list: ['display_name', 'email', 'phone', 'contact_status', 'company', 'tags'],
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
    ],
  }),
  tag: crmType('tag', {
    more: {
      slug_key: uniqueKey(),
      contacts: related('manyToMany', 'contact', { mappedBy: 'tags' }),
    },
    before: { name: 'slug' },
    indexes: [{ name: 'switchboard_tags_slug', columns: ['slug_key'], type: 'unique' }],
    list: ['name', 'slug', 'contacts'],
    edit: [{ name: 6, slug: 6 }, { contacts: 12 }],
  }),
  company: crmType('company', {
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
      { tasks: 6 },
    ],
  }),
  deal: crmType('deal', {
    list: ['title', 'value', 'currency', 'stage', 'deal_status', 'expected_close_date'],
    edit: [
      { title: 12 },
      { value: 4, currency: 4, expected_close_date: 4 },
      { stage: 6, deal_status: 6 },
      { lost_reason: 12 },
      { contact: 6, company: 6 },
      { owner: 6, tasks: 6 },
      { fields: 12 },
      { closed_at: 6 },
    ],
  }),
  'deal-stage': crmType('deal-stage', {
    sortBy: 'position',
    list: ['name', 'position', 'probability', 'deals'],
    edit: [{ name: 12 }, { position: 4, probability: 4 }, { deals: 12 }],
  }),
  task: crmType('task', {
    before: { completed_at: 'contact', owner: 'contact' },
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
      { completed_at: 6 },
    ],
  }),
  campaign: crmType('campaign', {
    list: ['title', 'subject', 'campaign_status', 'total', 'sent', 'failed'],
    edit: [
      { title: 6, subject: 6 },
      { campaign_status: 6, sent_at: 6 },
      { total: 4, sent: 4, failed: 4 },
    ],
  }),
};
