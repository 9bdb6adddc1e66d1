'use strict';

const { yup } = require('@strapi/utils');
const bcrypt = require('bcryptjs');

const CHANGES = ['afterCreate', 'afterCreateMany', 'afterUpdate', 'afterUpdateMany'];
const REMOVALS = ['afterDelete', 'afterDeleteMany'];
const MODELS = ['admin::permission', 'admin::role', 'admin::user', 'plugin::i18n.locale'];

/** The host's own functions, of modules that outlive a site. */
let generate;
let applies;
let validateSync;
let clean;
let reset;
let hash;

const isSuperAdmin = ({ roles = [] }) => roles.some(({ code }) => code === 'strapi-super-admin');

/**
 * Most requests of the tests are the first administrator's. The host works out for each of them what a
 * super administrator may do, from hundreds of rows: a third of the time of such a request. Here that is
 * kept until a user, a role, a permission or a locale changes. Other users are looked up each time.
 */
const keepAbilityOfSuperAdmins = (strapi) => {
  const { engine } = strapi.service('admin::permission');
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

const isSame = (some, others) =>
  new Set([...some, ...others]).size === some.length && some.length === others.length;

/**
 * The host goes through the panel's settings of each content type at each boot, which is a quarter of
 * it. On a copy of a database for which it has just done that, with the same types, it need not.
 */
const trustScreens = (strapi) => {
  const models = { 'content-types': strapi.contentTypes, components: strapi.components };
  for (const [name, types] of Object.entries(models)) {
    const service = strapi.plugin('content-manager').service(name);
    const synchronise = service.syncConfigurations.bind(service);
    const prefix = `plugin_content_manager_configuration_${name.replace('-', '_')}::`;
    service.syncConfigurations = async () => {
      const rows = await strapi.db
        .query('strapi::core-store')
        .findMany({ select: ['key'], where: { key: { $startsWith: prefix } } });
      const known = rows.map(({ key }) => key.slice(prefix.length));
      if (!isSame(known, Object.keys(types))) await synchronise();
    };
  }
};

/**
 * The host's permissions outlive a site, and so do the handlers that i18n adds to them at each boot: each
 * is called as often as the process has booted. Once is enough.
 */
const dropRepeatedHandlers = (strapi) => {
  const { engine, actionProvider } = strapi.service('admin::permission');
  const { hooks } = strapi.service('admin::role');
  for (const hook of [engine.hooks, actionProvider.hooks, hooks].flatMap(Object.values)) {
    for (const handler of new Set(hook.getHandlers())) hook.delete(handler).register(handler);
  }
};

/** Hashing passwords is made slow on purpose: a tenth of a second for each user that a test makes. */
const hashQuickly = () => {
  hash ??= bcrypt.hash;
  // With a salt in place of the rounds it compares.
  bcrypt.hash = (password, salt, ...rest) =>
    hash(password, typeof salt === 'number' ? 4 : salt, ...rest);
};

const pairsOf = (rows) => [
  ...new Set(rows.map(({ action, subject }) => `${action} ${subject ?? ''}`)),
];

/** What the roles of a site hold between them, because the first administrator's holds everything. */
const wholePairs = (strapi) =>
  pairsOf(
    strapi
      .service('admin::permission')
      .actionProvider.values()
      .filter(({ section }) => section !== 'internal')
      .flatMap(({ actionId, subjects }) =>
        Array.isArray(subjects)
          ? subjects.map((subject) => ({ action: actionId, subject }))
          : [{ action: actionId }]
      )
  );

/**
 * The host compares each permission of each role with what there is at each boot, a quarter of it. Where
 * there is one for each action and subject, and no other, as on a copy of a database, it need not.
 */
const trustPermissions = (strapi) => {
  const isWhole = async () =>
    isSame(
      pairsOf(await strapi.db.connection.distinct('action', 'subject').from('admin_permissions')),
      wholePairs(strapi)
    );
  const isTrusted = async () =>
    // A test that asks for it later has changed something.
    process.env.SITE_IS_COPY && !strapi.isLoaded && (await isWhole());
  const permissions = strapi.service('admin::permission');
  const roles = strapi.service('admin::role');
  clean ??= permissions.cleanPermissionsInDatabase;
  permissions.cleanPermissionsInDatabase = async () => {
    if (!(await isTrusted())) await clean();
  };
  reset ??= roles.resetSuperAdminPermissions;
  roles.resetSuperAdminPermissions = async () => {
    // Plugins wait for this moment of a boot.
    if (await isTrusted()) await roles.hooks.willResetSuperAdminPermissions.call([]);
    else await reset();
  };
};

/** Asked once for each permission of each role. */
const rememberProperties = (strapi) => {
  const { actionProvider } = strapi.service('admin::permission');
  applies ??= actionProvider.appliesToProperty;
  const known = new Map();
  actionProvider.appliesToProperty = async (...question) => {
    const key = question.join(' ');
    if (!known.has(key)) known.set(key, await applies(...question));
    return known.get(key);
  };
};

/**
 * The host hands a copy of all content types, made in depth, to each handler of these hooks at each boot: a
 * seventh of it. None of them changes what it is given.
 */
const handOverWithoutCopies = (strapi) => {
  for (const name of ['strapi::content-types.beforeSync', 'strapi::content-types.afterSync']) {
    const hook = strapi.hook(name);
    hook.call = (context) => Promise.all(hook.getHandlers().map((handler) => handler(context)));
  }
};

/**
 * The host has yup look at each route and action of its own at each boot, which is a fifth of it. On a copy
 * another process has looked at all of it, when it made what the copy is of.
 */
const trustShapes = () => {
  const { prototype } = Object.getPrototypeOf(yup.object().constructor);
  validateSync ??= prototype.validateSync;
  prototype.validateSync = function (value, options) {
    const isKnown =
      process.env.SITE_IS_COPY && global.strapi?.isLoaded === false && options?.strict;
    return isKnown && value instanceof Object ? value : validateSync.call(this, value, options);
  };
};

module.exports = {
  dropRepeatedHandlers,
  handOverWithoutCopies,
  hashQuickly,
  keepAbilityOfSuperAdmins,
  rememberProperties,
  trustPermissions,
  trustScreens,
  trustShapes,
};
