import ts from 'typescript';

const find = (node, wanted) =>
  wanted(node) ? node : ts.forEachChild(node, (child) => find(child, wanted));

const unwrapped = (node) =>
  node && (ts.isParenthesizedExpression(node) || ts.isAsExpression(node))
    ? unwrapped(node.expression)
    : node;

/** The value of `export default` or `module.exports =`. */
const exported = (file) => {
  const assignment = find(
    file,
    (node) =>
      (ts.isExportAssignment(node) && !node.isExportEquals) ||
      (ts.isBinaryExpression(node) && node.left.getText(file) === 'module.exports')
  );
  const value = assignment && unwrapped(assignment.expression ?? assignment.right);
  if (!value || !ts.isIdentifier(value)) return value;
  const declaration = find(
    file,
    (node) => ts.isVariableDeclaration(node) && node.name.getText(file) === value.text
  );
  return unwrapped(declaration?.initializer);
};

/** The object that a configuration is, or that its function returns. */
const returned = (file) => {
  const value = exported(file);
  if (!value || !ts.isArrowFunction(value)) return value;
  if (!ts.isBlock(value.body)) return unwrapped(value.body);
  return unwrapped(value.body.statements.findLast(ts.isReturnStatement)?.expression);
};

const named = (file, key) => {
  const property = find(
    file,
    (node) => ts.isPropertyAssignment(node) && node.name.getText(file) === key
  );
  return unwrapped(property?.initializer);
};

const parse = (text) => ts.createSourceFile('config.ts', text, ts.ScriptTarget.Latest, true);

const keysOf = (object, file) =>
  object.properties.flatMap(({ name }) =>
    name ? [name.getText(file).replace(/^['"]|['"]$/g, '')] : []
  );

/**
 * Adds an entry to what is in a configuration, as a reader of "next to host and port" does.
 * @param {string} source a file of `config/`
 * @param {string} entry such as `url: env('PUBLIC_URL', ''),`, with comments or without
 * @param {string} [key] the property of whose object it becomes part; without one, the whole
 * @returns {string} the source, unchanged where the entry is there already
 */
export const addTo = (source, entry, key) => {
  const file = parse(source);
  const target = key === undefined ? returned(file) : named(file, key);
  if (!target || !ts.isObjectLiteralExpression(target)) {
    throw new Error(`no object ${key ?? 'is returned'} in:\n${source}`);
  }
  const part = parse(`({${entry}});`);
  const names = keysOf(find(part, ts.isObjectLiteralExpression), part);
  const there = keysOf(target, file);
  if (names.every((name) => there.includes(name))) return source;
  const end = target.getEnd() - 1;
  const comma = target.properties.length > 0 && !target.properties.hasTrailingComma ? ',' : '';
  const last = /,\s*$/.test(entry) ? '' : ',';
  return `${source.slice(0, end)}${comma}\n${entry.trimEnd()}${last}\n${source.slice(end)}`;
};
