'use strict';

const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');

const COMMAND = 'switchboard create-plugin';
const TEMPLATE = path.join(__dirname, '../plugin-template');

const usage = `Usage, in the folder of a Strapi site: switchboard create-plugin <name> [--json]

Writes src/plugins/<name>: a local plugin that declares two events, with schemas and examples, and a
service that sends them. It needs no build. Prints the lines to add to config/plugins. Overwrites nothing.

  <name>   words in lower case with hyphens between, such as loyalty or gift-cards; at most 50 characters
  --json   print { "name", "folder", "files", "events", "config": { "file", "lines" } }

Exit code: 0, or 2 if it could not run: the name is not valid, or the folder exists.
`;

/** The host's rule for the name of a plugin. */
const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const LONGEST = 50;

/** Plugins that a site has anyway, or may have from elsewhere. */
const TAKEN = new Set([
  'admin',
  'api',
  'cloud',
  'content-manager',
  'content-releases',
  'content-type-builder',
  'documentation',
  'email',
  'graphql',
  'i18n',
  'plugin',
  'review-workflows',
  'sentry',
  'strapi',
  'switchboard',
  'upload',
  'users-permissions',
]);

const checkName = (name) => {
  if (!NAME.test(name) || name.length > LONGEST)
    throw new Error(
      `${COMMAND}: the name must be words in lower case with hyphens between, at most ${LONGEST} characters, not ${JSON.stringify(name)}`
    );
  if (TAKEN.has(name)) throw new Error(`${COMMAND}: the name ${name} is another plugin's`);
};

const checkSite = () => {
  const file = path.resolve('package.json');
  try {
    if (!fs.existsSync(file)) throw new Error('no package');
    createRequire(file).resolve('@strapi/strapi');
  } catch {
    throw new Error(`This is not the folder of a Strapi site: ${process.cwd()}`);
  }
};

const titleOf = (name) => {
  const words = name.replaceAll('-', ' ');
  return words[0].toUpperCase() + words.slice(1);
};

const templateFiles = () =>
  fs
    .readdirSync(TEMPLATE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(TEMPLATE, path.join(entry.parentPath, entry.name)))
    .sort();

const eventsIn = (text) => [...text.matchAll(/^ {2}'([^']+)': \{$/gm)].map(([, event]) => event);

const write = (folder, name) => {
  fs.mkdirSync(path.dirname(folder), { recursive: true });
  try {
    // Fails where something of that name is there, whatever it is.
    fs.mkdirSync(folder);
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    throw new Error(`${COMMAND}: src/plugins/${name} already exists; nothing was written`);
  }
  const files = templateFiles();
  let events = [];
  for (const file of files) {
    const text = fs
      .readFileSync(path.join(TEMPLATE, file), 'utf8')
      .replaceAll('plugin-name', name)
      .replaceAll('Plugin title', titleOf(name));
    const target = path.join(folder, file);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.writeFileSync(target, text, { flag: 'wx' });
    if (path.basename(file) === 'declare-events.js') events = eventsIn(text);
  }
  return { files: files.map((file) => file.split(path.sep).join('/')), events };
};

/** The file of plugins that the site has; null if it has none. */
const configFile = () =>
  ['config/plugins.ts', 'config/plugins.js'].find((file) => fs.existsSync(path.resolve(file))) ??
  null;

const configLines = (name) => [
  `${NAME.test(name) && !name.includes('-') ? name : `'${name}'`}: {`,
  '  enabled: true,',
  `  resolve: './src/plugins/${name}',`,
  '},',
];

const describeConfig = ({ file, lines }) => {
  const indented = lines.map((line) => `  ${line}`);
  if (file !== null) return [`Add to the object that ${file} exports:`, '', ...indented];
  return [
    'Write config/plugins.ts of a TypeScript site:',
    '',
    ...['export default () => ({', ...indented, '});'].map((line) => `  ${line}`),
    '',
    'or config/plugins.js of a JavaScript one:',
    '',
    ...['module.exports = () => ({', ...indented, '});'].map((line) => `  ${line}`),
  ];
};

const run = ({ name, json = false }, output) => {
  checkName(name);
  checkSite();
  const { files, events } = write(path.resolve('src/plugins', name), name);
  const folder = `src/plugins/${name}`;
  const config = { file: configFile(), lines: configLines(name) };
  if (json) {
    output.json({ name, folder, files, events, config });
    return 0;
  }
  const [first] = events;
  output.result(
    [
      `Wrote ${folder}: ${files.join(', ')}`,
      `Events: ${events.join(', ')}`,
      '',
      ...describeConfig(config),
      '',
      'Restart the site. You can then choose the events in a webhook. To send one:',
      '',
      `  await strapi.plugin('${name}').service('events').itemAdded({ id: '1', label: 'First' });`,
      '',
      `The events are declared in ${folder}/server. Start with ${first}.`,
    ].join('\n')
  );
  return 0;
};

module.exports = {
  summary: 'write a local plugin that declares two events',
  usage,
  argument: 'name',
  options: {},
  run,
};
