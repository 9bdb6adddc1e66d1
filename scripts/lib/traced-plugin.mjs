import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { ROOT } from './paths.mjs';

const require = createRequire(import.meta.url);
const ts = require('typescript');

/** The list that functions add themselves to while a trace runs. */
const CALLS = '__calls';

const nameOf = (node) => {
  if (ts.isConstructorDeclaration(node)) return `new ${node.parent.name?.text ?? ''}`;
  if (node.name && !ts.isComputedPropertyName(node.name)) return node.name.text;
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
          factory.createPropertyAccessExpression(factory.createIdentifier('globalThis'), CALLS),
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

const MANIFEST = {
  version: '0.0.0',
  strapi: { kind: 'plugin', name: 'switchboard', displayName: 'Switchboard' },
  exports: { './strapi-server': './server/src/index.js', './package.json': './package.json' },
};

/**
 * Compiles the server of a checkout so that each named function notes its calls in
 * `globalThis.__calls`, as `server/src/file.ts|name`, where that is a list.
 * @param {string} source the checkout's folder
 * @param {string} target an empty folder
 */
export const compileTraced = (source, target) => {
  for (const folder of ['server/src', 'shared']) {
    for (const below of fs.readdirSync(path.join(source, folder), { recursive: true })) {
      const name = path.join(folder, String(below));
      if (!name.endsWith('.ts')) continue;
      const full = path.join(source, name);
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
  }
  fs.writeFileSync(path.join(target, 'package.json'), JSON.stringify(MANIFEST));
  fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(target, 'node_modules'));
};
