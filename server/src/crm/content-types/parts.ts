/** Attributes that several CRM types share. */

type Attribute = Record<string, unknown>;

/** One-way to an admin user: many records may have the same owner. */
export const owner: Attribute = { type: 'relation', relation: 'oneToOne', target: 'admin::user' };

/** Set: the record lies in the bin. It is still there; deleting it for good is another thing. */
export const trashedAt: Attribute = { type: 'datetime' };

/** The site's custom fields, by name. */
export const customFields: Attribute = { type: 'json' };

export const belongsTo = (singularName: string, inversedBy: string): Attribute => ({
  type: 'relation',
  relation: 'manyToOne',
  target: `plugin::switchboard.${singularName}`,
  inversedBy,
});

export const hasMany = (singularName: string, mappedBy: string): Attribute => ({
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
export const crmType = (input: TypeInput): { schema: unknown } => ({
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
