'use strict';

// The arrows of ARCHITECTURE.md: who may know whom, types included. `npm run lint` runs it.

const SERVER = '^server/src/';
const features = [
  'crm',
  'entries',
  'pos',
  'stock',
  'webhooks',
  'access',
  'modules',
  'observability',
  'overview',
  'doctor',
];
const ground = [
  'config',
  'database',
  'hooks',
  'http',
  'net',
  'queue',
  'runtime',
  'scheduling',
  'secrets',
];
const folders = (names) => `${SERVER}(${names.join('|')})/`;

const mayKnow = (feature, known) => ({
  name: `${feature}-knows-only-what-it-may`,
  severity: 'error',
  from: { path: folders([feature]) },
  to: { path: folders(features.filter((one) => one !== feature && !known.includes(one))) },
});

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-circle',
      comment: 'Nothing is loaded before what it needs.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-circle-of-types-between-folders',
      comment: 'Files of one folder may use each other’s types, and all of them that of the app.',
      severity: 'error',
      from: { path: '^(.+)/[^/]+$', pathNot: `${SERVER}app\\.ts$` },
      to: { circular: true, via: { pathNot: `^$1/[^/]+$|${SERVER}app\\.ts$` } },
    },
    {
      name: 'no-circle-of-folders',
      comment:
        'A folder is a module: those that know each other are one, or have a third one below them.',
      severity: 'error',
      scope: 'folder',
      from: { path: SERVER },
      to: { circular: true },
    },
    {
      name: 'ground-knows-no-feature',
      comment: 'What lies below the features serves them all and knows none of them.',
      severity: 'error',
      from: { path: folders(ground) },
      to: { path: folders(features) },
    },
    mayKnow('access', ['modules']),
    mayKnow('modules', ['access']),
    mayKnow('observability', ['access']),
    mayKnow('webhooks', ['access', 'modules', 'observability']),
    mayKnow('stock', ['access', 'modules', 'webhooks']),
    mayKnow('pos', ['access', 'modules', 'observability', 'stock', 'webhooks']),
    mayKnow('crm', ['access', 'modules', 'webhooks']),
    mayKnow('entries', ['access', 'modules', 'webhooks']),
    {
      name: 'rules-know-no-host',
      comment: 'Rules are said without Strapi and without what captures, stores or sends.',
      severity: 'error',
      from: { path: `${SERVER}[^/]+/rules/` },
      to: {
        path: `${SERVER}`,
        pathNot: ['/rules/', `${SERVER}(net|runtime)/`],
      },
    },
    {
      name: 'contracts-know-nobody',
      severity: 'error',
      from: { path: '^shared/' },
      to: { path: '^(server|admin)/' },
    },
    {
      name: 'server-and-admin-apart',
      severity: 'error',
      from: { path: '^server/' },
      to: { path: '^admin/' },
    },
    {
      name: 'admin-and-server-apart',
      severity: 'error',
      from: { path: '^admin/' },
      to: { path: '^server/' },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
  },
};
