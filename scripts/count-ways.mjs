// Counts the named calls, files and changes of file on the two ways of ARCHITECTURE.md: a contact to
// its post, and a sale to its stock.
//
//   node scripts/count-ways.mjs [folder]     a checkout, this one by default
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { ROOT } from './lib/paths.mjs';

const require = createRequire(import.meta.url);
const ts = require('typescript');
const SOURCE = path.resolve(process.argv[2] ?? ROOT);

const nameOf = (node) => {
  if (node.name && ts.isIdentifier(node.name)) return node.name.text;
  const { parent } = node;
  if (parent && (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)))
    return ts.isIdentifier(parent.name) ? parent.name.text : null;
  return null;
};

/** Writes down each call of a function that has a name. */
const tracing = (file) => (context) => {
  const { factory } = context;
  const note = (name) =>
    factory.createExpressionStatement(
      factory.createCallChain(
        factory.createPropertyAccessChain(
          factory.createPropertyAccessExpression(factory.createIdentifier('globalThis'), '__calls'),
          factory.createToken(ts.SyntaxKind.QuestionDotToken),
          'push'
        ),
        undefined,
        undefined,
        [factory.createStringLiteral(`${file}|${name}`)]
      )
    );
  const visit = (node) => {
    const next = ts.visitEachChild(node, visit, context);
    const { parent } = node;
    if (!parent || !ts.isFunctionLike(parent) || parent.body !== node) return next;
    const name = nameOf(parent);
    if (name === null) return next;
    const statements = ts.isBlock(next)
      ? next.statements
      : [factory.createReturnStatement(factory.createParenthesizedExpression(next))];
    return factory.createBlock([note(name), ...statements], true);
  };
  return (sourceFile) => ts.visitNode(sourceFile, visit);
};

const filesBelow = (folder) =>
  fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(full) : [full];
  });

const compile = (target) => {
  for (const full of ['server/src', 'shared'].flatMap((one) =>
    filesBelow(path.join(SOURCE, one))
  )) {
    const name = path.relative(SOURCE, full);
    if (!name.endsWith('.ts')) continue;
    const { outputText } = ts.transpileModule(fs.readFileSync(full, 'utf8'), {
      fileName: full,
      compilerOptions: {
        module: ts.ModuleKind.Node16,
        target: ts.ScriptTarget.ES2022,
        esModuleInterop: true,
      },
      transformers: { before: name.startsWith('server/') ? [tracing(name)] : [] },
    });
    const file = path.join(target, name.replace(/\.ts$/, '.js'));
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, outputText);
  }
  const manifest = {
    version: '0.0.0',
    strapi: { kind: 'plugin', name: 'switchboard', displayName: 'Switchboard' },
    exports: { './strapi-server': './server/src/index.js', './package.json': './package.json' },
  };
  fs.writeFileSync(path.join(target, 'package.json'), JSON.stringify(manifest));
  fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(target, 'node_modules'));
};

const featureOf = (file) => {
  const [first, second] = path.relative('server/src', file).split('/');
  return second === undefined ? '' : first;
};

const tell = (title, calls, feature) => {
  const files = calls.map((call) => call.split('|')[0]);
  const changes = files.filter((file, index) => index > 0 && file !== files[index - 1]).length;
  const features = files.map(featureOf);
  const entered = features.filter(
    (one, index) => one === feature && features[index - 1] !== feature
  ).length;
  const text = [
    `${title}: ${calls.length} named calls, ${new Set(files).size} files, ${changes} changes of file,`,
    `${feature} entered ${entered} times`,
  ];
  process.stdout.write(`${text.join(' ')}\n`);
  if (process.env.LIST) process.stdout.write(`${[...new Set(files)].join('\n')}\n`);
};

const target = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-ways-'));
compile(target);
process.env.SWITCHBOARD_PATH = target;
const { support } = await import('../bench/lib/support.mjs');
const { startSite } = support('site');
const receiver = await support('receiver').startReceiver();
const site = await startSite({ database: 'sqlite', options: {} });
try {
  const calls = () => site.evaluate(() => globalThis.__calls.splice(0));
  const url = receiver.url;
  await site.request('POST', '/api/fw-crm/v1/webhooks', {
    body: { name: 'r', url, events: ['contact.created'] },
  });
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  await pause(1500);
  await site.evaluate(() => void (globalThis.__calls = []));
  await site.evaluate(async ({ strapi }) => {
    await strapi
      .documents('plugin::switchboard.contact')
      .create({ data: { email: 'a@example.test' } });
  });
  await pause(700);
  const contact = await calls();
  const queued = contact.findIndex((call) => /\|(enqueue|insertRows)$/.test(call));
  tell('contact, write to post', contact, 'webhooks');
  tell('contact, before the queue', contact.slice(0, queued), 'webhooks');

  const { createItem, createTill, saleBody } = support('../api/pos-till');
  const till = await createTill(site);
  await createItem(site, 'TEA', 5);
  await pause(500);
  await calls();
  const answer = await till.send('sale', saleBody([['TEA', 1]]));
  if (answer.status !== 202) throw new Error(`${answer.status} ${answer.text}`);
  await pause(700);
  tell('sale, request to stock', await calls(), 'stock');
} finally {
  await site.stop();
  await receiver.close();
  fs.rmSync(target, { recursive: true, force: true });
}
