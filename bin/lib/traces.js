'use strict';

/** The plugin's traces in a database. All of it is found by name: the plugin need not be on. */

const TABLE_PREFIX = 'switchboard_';
const OURS = 'plugin::switchboard.';
const STORE = 'strapi_core_store_settings';
const STORE_KEYS = [
  'plugin_switchboard_',
  `plugin_content_manager_configuration_content_types::${OURS}`,
];
const PERSISTED_KEY = 'core_persisted_tables';
const ROLE_CODE = 'switchboard-crm-manager';
const CHUNK = 500;

const tableOf = (strapi, executor, name) => {
  const schema = strapi.db.getSchemaName();
  return schema ? executor(name).withSchema(schema) : executor(name);
};

/** Tables with that prefix which are the site's own: a collection of that name and its relations. */
const isOfTheSite = (strapi, name) =>
  Object.values(strapi.contentTypes).some(
    ({ uid, collectionName }) =>
      !uid.startsWith(OURS) && (name === collectionName || name.startsWith(`${collectionName}_`))
  );

const startsWithAny = (text, prefixes) => prefixes.some((prefix) => text?.startsWith(prefix));

/** Ids of the rows that are about the plugin; none if the table is not there. */
const findIds = async (strapi, table, columns, prefixes) => {
  const knex = strapi.db.connection;
  if (!(await strapi.db.getSchemaConnection().hasTable(table))) return [];
  const rows = await tableOf(strapi, knex, table).select('id', ...columns);
  return rows
    .filter((row) => columns.some((column) => startsWithAny(row[column], prefixes)))
    .map(({ id }) => id);
};

const findRole = async (strapi) => {
  const knex = strapi.db.connection;
  if (!(await strapi.db.getSchemaConnection().hasTable('admin_roles'))) return null;
  const role = await tableOf(strapi, knex, 'admin_roles').where({ code: ROLE_CODE }).first();
  if (!role) return null;
  const [{ n }] = await tableOf(strapi, knex, 'admin_users_roles_lnk')
    .where({ role_id: role.id })
    .count({ n: '*' });
  return { id: role.id, name: role.name, users: Number(n) };
};

const PERMISSIONS = {
  admin: ['admin_permissions', ['action', 'subject']],
  api_tokens: ['strapi_api_token_permissions', ['action']],
  end_users: ['up_permissions', ['action']],
};

const findTables = async (strapi) => {
  const names = (await strapi.db.dialect.schemaInspector.getTables()).filter(
    (name) => name.startsWith(TABLE_PREFIX) && !isOfTheSite(strapi, name)
  );
  const tables = [];
  for (const name of names.sort()) {
    const [{ n }] = await tableOf(strapi, strapi.db.connection, name).count({ n: '*' });
    tables.push({ name, rows: Number(n) });
  }
  return tables;
};

/** Lists the traces with the numbers of rows. Changes nothing. */
const inspect = async (strapi) => {
  const permissions = {};
  for (const [name, [table, columns]] of Object.entries(PERMISSIONS))
    permissions[name] = (await findIds(strapi, table, columns, [OURS])).length;
  const role = await findRole(strapi);
  return {
    tables: await findTables(strapi),
    permissions,
    settings: (await findIds(strapi, STORE, ['key'], STORE_KEYS)).length,
    role: role && { name: role.name, users: role.users },
  };
};

const deleteIds = async (strapi, trx, table, ids) => {
  for (let from = 0; from < ids.length; from += CHUNK)
    await tableOf(strapi, trx, table)
      .whereIn('id', ids.slice(from, from + CHUNK))
      .delete();
};

const DROPPERS = {
  async postgres(strapi, names) {
    const schema = strapi.db.getSchemaName() ?? 'public';
    await strapi.db.connection.transaction(async (trx) => {
      for (const name of names) await trx.raw('DROP TABLE IF EXISTS ??.?? CASCADE', [schema, name]);
    });
  },
  async mysql(strapi, names) {
    // In one transaction only because that is one connection: each of these commits by itself.
    await strapi.db.connection.transaction(async (trx) => {
      await trx.raw('SET FOREIGN_KEY_CHECKS = 0');
      for (const name of names) await trx.raw('DROP TABLE IF EXISTS ??', [name]);
      await trx.raw('SET FOREIGN_KEY_CHECKS = 1');
    });
  },
  async sqlite(strapi, names) {
    const knex = strapi.db.connection;
    // Has no effect within a transaction; the host's pool has one connection.
    await knex.raw('PRAGMA foreign_keys = OFF');
    await knex.transaction(async (trx) => {
      for (const name of names) await trx.raw('DROP TABLE IF EXISTS ??', [name]);
    });
  },
};

const releasePersisted = async (strapi) => {
  const rows = () => tableOf(strapi, strapi.db.connection, STORE).where({ key: PERSISTED_KEY });
  const isOurs = (name) => name.startsWith(TABLE_PREFIX) && !isOfTheSite(strapi, name);
  for (const { id, value } of await rows().select('id', 'value')) {
    const entries = JSON.parse(value ?? '[]');
    const left = entries.filter((entry) => !isOurs(entry.name ?? entry));
    if (left.length === entries.length) continue;
    await rows()
      .where({ id })
      .update({ value: JSON.stringify(left) });
  }
};

/** Removes what `inspect` found. Should it fail on the way, running it again removes the rest. */
const drop = async (strapi, { tables }) => {
  // Read before the transaction: on SQLite it holds the only connection.
  const doomed = [[STORE, await findIds(strapi, STORE, ['key'], STORE_KEYS)]];
  for (const [table, columns] of Object.values(PERMISSIONS))
    doomed.push([table, await findIds(strapi, table, columns, [OURS])]);
  const role = await findRole(strapi);
  if (role && role.users === 0) doomed.push(['admin_roles', [role.id]]);
  await strapi.db.connection.transaction(async (trx) => {
    for (const [table, ids] of doomed) await deleteIds(strapi, trx, table, ids);
  });
  await DROPPERS[strapi.db.dialect.client](
    strapi,
    tables.map(({ name }) => name)
  );
  await releasePersisted(strapi);
};

module.exports = { drop, inspect };
