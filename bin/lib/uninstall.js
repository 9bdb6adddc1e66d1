'use strict';

const { readsYes } = require('./confirm');
const { withDatabase } = require('./site');
const { drop, inspect } = require('./traces');

const usage = `Usage, in the folder of a Strapi site: switchboard uninstall [--drop [--yes]] [--json]

Lists what the plugin has in the site's database. Stop the site first, and make a backup.

  --drop   remove it; asks first, and only "yes" on standard input confirms
  --yes    with --drop: do not ask
  --json   print { "dropped", "tables": [{ "name", "rows" }], "permissions", "settings", "role", "left" }

Exit code: 0 if everything was listed or removed, 1 if it was not confirmed, 2 if it could not run. Run
it before "npm uninstall strapi-plugin-switchboard", which removes this command. The plugin may be on or
off.
`;

const LEFT = [
  'your own content types and their records, also those that were mapped',
  'admin users and API tokens, without the permissions above',
  'files outside the database: the entry in config/plugins, the package, .env',
];

const describe = ({ tables, permissions, settings, role }) => [
  ...tables.map(({ name, rows }) => `  table ${name}: ${rows} rows`),
  `  ${permissions.admin} permissions of admin roles, ${permissions.api_tokens} of API tokens, ${permissions.end_users} of users-permissions roles`,
  `  ${settings} settings in the core store, and the tables' entries under persisted_tables`,
  ...(role ? [role.users > 0 ? keptRole(role) : `  the role ${role.name}`] : []),
];

const keptRole = ({ name, users }) =>
  `  the role ${name} stays, without permissions: ${users} admin users have it`;

const leftOf = ({ role }) => [
  ...LEFT,
  ...(role && role.users > 0
    ? [`the role ${role.name}, which ${role.users} admin users have`]
    : []),
];

/** Asks on standard error, so that standard output stays the result's. */
const isConfirmed = async (plan, output) => {
  output.complain(`This will be removed permanently:\n${describe(plan).join('\n')}`);
  process.stderr.write('Type "yes" to remove it: ');
  return readsYes(process.stdin);
};

const isEmpty = ({ tables, permissions, settings, role }) =>
  tables.length === 0 &&
  settings === 0 &&
  !role &&
  Object.values(permissions).every((count) => count === 0);

const run = ({ drop: wanted = false, yes = false, json = false }, output) =>
  withDatabase(async (strapi) => {
    const plan = await inspect(strapi);
    const finish = (dropped, lines, code) => {
      if (json) output.json({ dropped, ...plan, left: leftOf(plan) });
      else output.result(lines.join('\n'));
      return code;
    };
    if (isEmpty(plan)) return finish(false, ['This database has no data of Switchboard.'], 0);
    if (!wanted) {
      const lines = [
        'Nothing was removed. "switchboard uninstall --drop" would remove:',
        ...describe(plan),
        'It would leave:',
        ...leftOf(plan).map((line) => `  ${line}`),
      ];
      return finish(false, lines, 0);
    }
    if (!yes && !(await isConfirmed(plan, output)))
      return finish(false, ['Not confirmed: nothing was removed.'], 1);
    await drop(strapi, plan);
    const lines = [
      'Removed:',
      ...describe(plan),
      'Left:',
      ...leftOf(plan).map((line) => `  ${line}`),
      'Before you start the site again (it would create the tables again, empty), remove switchboard',
      'from config/plugins and run: npm uninstall strapi-plugin-switchboard',
    ];
    return finish(true, lines, 0);
  });

module.exports = {
  summary: 'list what the plugin has in the database and, with --drop, remove it',
  usage,
  options: { drop: { type: 'boolean' }, yes: { type: 'boolean' } },
  run,
};
