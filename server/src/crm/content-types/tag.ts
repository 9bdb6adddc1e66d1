import { crmType } from './parts';

export const tag = crmType({
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
