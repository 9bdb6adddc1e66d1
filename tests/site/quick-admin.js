'use strict';

const CHANGES = ['afterCreate', 'afterCreateMany', 'afterUpdate', 'afterUpdateMany'];
const REMOVALS = ['afterDelete', 'afterDeleteMany'];
const MODELS = ['admin::permission', 'admin::role', 'admin::user', 'plugin::i18n.locale'];

let generate;

const isSuperAdmin = ({ roles = [] }) => roles.some(({ code }) => code === 'strapi-super-admin');

/**
 * Most requests of the tests are the first administrator's. The host works out for each of them what a
 * super administrator may do, from hundreds of rows: a third of the time of such a request. Here that is
 * kept until a user, a role, a permission or a locale changes. Other users are looked up each time.
 */
const keepAbilityOfSuperAdmins = (strapi) => {
  const { engine } = strapi.service('admin::permission');
  // The engine is the host's module's, and outlives the site.
  generate ??= engine.generateUserAbility;
  const known = new Map();
  const forget = () => known.clear();
  strapi.db.lifecycles.subscribe({
    models: MODELS,
    ...Object.fromEntries([...CHANGES, ...REMOVALS].map((name) => [name, forget])),
  });
  engine.generateUserAbility = async (user) => {
    if (!isSuperAdmin(user)) return generate(user);
    if (!known.has(user.id)) known.set(user.id, generate(user));
    return known.get(user.id);
  };
};

module.exports = { keepAbilityOfSuperAdmins };
