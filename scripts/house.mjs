// npm run house [-- folder]: the size and structure of the server, next to the goals. Exit code: 1 if a
// goal is missed, except for durations.
// `folder` is another checkout to look at; `--no-ways` leaves out the two ways, which start a site;
// `--list` names the circles and the interfaces. Durations are those of the last whole runs here.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { EVERYTHING, ON_SQLITE, readDurations } from './lib/durations.mjs';
import { ROOT } from './lib/paths.mjs';
import { filesOf, measureWays, sumOf } from './ways.mjs';

const require = createRequire(import.meta.url);
const ts = require('typescript');

const given = process.argv.slice(2);
const source = path.resolve(given.find((one) => !one.startsWith('--')) ?? ROOT);
const SERVER = path.join(source, 'server/src');

const files = fs
  .readdirSync(SERVER, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith('.ts'))
  .sort();
const sources = new Map(
  files.map((name) => [
    name,
    ts.createSourceFile(
      name,
      fs.readFileSync(path.join(SERVER, name), 'utf8'),
      ts.ScriptTarget.ES2022,
      true
    ),
  ])
);
const linesOf = (names) =>
  names.reduce((sum, name) => sum + sources.get(name).text.split('\n').length - 1, 0);

/**
 * From the claim of a delivery until its outcome is recorded: without the log, limits (of which order and
 * caps are in the queue), what else happens to deliveries, and BullMQ.
 */
const CORE = [
  /^queue\/(?!limited)/,
  /^scheduling\/(?!bullmq\/)/,
  /^webhooks\/sending\//,
  /^database\/lease/,
  /^webhooks\/deliveries\/(?!log|limits|changes)/,
];
const core = files.filter((name) => CORE.some((one) => one.test(name)));

/** Features whose folders are modules of their own; elsewhere the first folder is the module. */
const FEATURES = ['crm', 'entries', 'pos', 'stock', 'webhooks'];
const folderOf = (name) => {
  const folders = path.dirname(name).split('/');
  return folders.slice(0, FEATURES.includes(folders[0]) ? 2 : 1).join('/');
};
/** A folder may import its subfolders: the root the features, a feature its folders. */
const holds = (one, other) => one === '.' || other.startsWith(`${one}/`);

const importsOf = (name) =>
  ts.preProcessFile(sources.get(name).text).importedFiles.flatMap(({ fileName }) => {
    if (!fileName.startsWith('.')) return [];
    const full = path.join(path.dirname(name), fileName);
    const found = [`${full}.ts`, `${full}/index.ts`].find((one) => sources.has(one));
    return found ? [found] : [];
  });

/** Folders that import each other, types included. */
const pairsInCircles = () => {
  const known = new Map();
  for (const name of files) {
    const from = folderOf(name);
    for (const other of importsOf(name)) {
      const to = folderOf(other);
      if (to !== from && !holds(from, to) && !holds(to, from))
        known.set(from, (known.get(from) ?? new Set()).add(to));
    }
  }
  return [...known].flatMap(([from, all]) =>
    [...all].filter((to) => from < to && known.get(to)?.has(from)).map((to) => `${from} and ${to}`)
  );
};

const walk = (node, see) => {
  see(node);
  ts.forEachChild(node, (child) => walk(child, see));
};

const typeName = (type) =>
  type && ts.isTypeReferenceNode(type) && ts.isIdentifier(type.typeName)
    ? type.typeName.text
    : null;

/** Interfaces of methods that are made by exactly one function and implemented by no class. */
const withOneMaker = () => {
  const interfaces = new Map();
  const makers = new Map();
  const implemented = new Set();
  for (const [name, file] of sources) {
    walk(file, (node) => {
      if (ts.isInterfaceDeclaration(node)) {
        const methods = node.members.filter(
          (member) =>
            ts.isMethodSignature(member) ||
            (ts.isPropertySignature(member) && member.type && ts.isFunctionTypeNode(member.type))
        );
        if (methods.length > 0) interfaces.set(node.name.text, name);
      }
      if (ts.isClassLike(node)) {
        for (const clause of node.heritageClauses ?? [])
          for (const { expression } of clause.types) implemented.add(expression.getText(file));
      }
      const isFunction = ts.isArrowFunction(node) || ts.isFunctionDeclaration(node);
      if (!isFunction) return;
      const owner = ts.isArrowFunction(node) ? node.parent : node;
      const made = typeName(node.type);
      const called = owner.name && ts.isIdentifier(owner.name) ? owner.name.text : '';
      if (made !== null && /^create[A-Z]/.test(called))
        makers.set(made, (makers.get(made) ?? new Set()).add(`${name}|${called}`));
    });
  }
  return [...interfaces]
    .filter(([name]) => makers.get(name)?.size === 1 && !implemented.has(name))
    .map(([name, file]) => `${name} (${file})`);
};

const architecture = fs.readFileSync(path.join(source, 'ARCHITECTURE.md'), 'utf8');
/** ARCHITECTURE.md leads a reader along both ways: files that run on one, and that its section leaves out. */
const notNamed = (title, way) => {
  const section = architecture.split(`### ${title}\n`)[1]?.split(/^##/m)[0] ?? '';
  return filesOf(way).filter((file) => !section.includes(`\`${file}\``));
};

/** True if a figure is above its goal; a goal in words is left to the reader. */
const isMissed = ([, now, goal]) => Number(now) > Number(goal.replace(/^<= |,/g, ''));

const rowsOfWays = ({ contact, sale }) => {
  const [one, other] = [sumOf(contact), sumOf(sale)];
  const ground = new Set([...one.ground, ...other.ground]);
  const leftOut = [
    ...notNamed('From a contact to its signed post', contact),
    ...notNamed('From a sale to its level', sale),
  ];
  for (const file of leftOut) process.stderr.write(`ARCHITECTURE.md does not name ${file}\n`);
  return [
    ["contact's way: files outside the ground", one.files, '<= 28'],
    ["contact's way: functions", one.functions, '<= 200'],
    ["sale's way: files outside the ground", other.files, '<= 33'],
    ["sale's way: functions", other.functions, '<= 200'],
    ['the ground of both: files', ground.size, '<= 16'],
    ['files of the ways that ARCHITECTURE.md leaves out', leftOut.length, '0'],
  ];
};

const rows = [
  ['files of the server', files.length, '<= 300'],
  ['lines of the server', linesOf(files), '<= 44,000'],
];
if (!given.includes('--no-ways')) {
  let ways = rowsOfWays(await measureWays(source));
  // Late work of a busy machine falls into the wrong windows.
  if (ways.some(isMissed)) ways = rowsOfWays(await measureWays(source));
  rows.push(...ways);
}
const durations = readDurations();
/** Only for this checkout, because its tests run here. */
const minutesOf = (run) =>
  run in durations && source === ROOT ? (durations[run] / 60).toFixed(1) : 'not run here';
const kilobytes = (text) => (Buffer.byteLength(text) / 1000).toFixed(1);
const circles = pairsInCircles();
const alone = withOneMaker();
rows.push(
  ['delivery core: lines', linesOf(core), '<= 3,000'],
  ['delivery core: files', core.length, '<= 20'],
  ['pairs of folders in circles', circles.length, '0'],
  ['interfaces with one maker', alone.length, 'those with two implementations'],
  ['ARCHITECTURE.md, kB', kilobytes(architecture), '<= 20'],
  [
    'CONTRIBUTING.md, kB',
    kilobytes(fs.readFileSync(path.join(source, 'CONTRIBUTING.md'), 'utf8')),
    '<= 10',
  ]
);
const missed = rows.filter(isMissed);
rows.push(
  [`${ON_SQLITE}, minutes`, minutesOf(ON_SQLITE), '<= 6'],
  [`${EVERYTHING}, minutes`, minutesOf(EVERYTHING), '<= 25']
);
const width = Math.max(...rows.map(([what]) => what.length));
for (const [what, now, goal] of rows)
  process.stdout.write(`${what.padEnd(width)}  ${String(now).padStart(12)}  ${goal}\n`);
if (given.includes('--list'))
  process.stdout.write(`\n${circles.join('\n')}\n\n${alone.join('\n')}\n`);
if (missed.length > 0) {
  process.stderr.write(`missed: ${missed.map(([what]) => what).join(', ')}\n`);
  process.exitCode = 1;
}
