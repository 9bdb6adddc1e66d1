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

interface TypeInput {
  singularName: string;
  pluralName: string;
  displayName: string;
  attributes: Record<string, Attribute>;
  indexes?: { name: string; columns: string[]; type?: 'unique' }[];
}

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
  },
});
