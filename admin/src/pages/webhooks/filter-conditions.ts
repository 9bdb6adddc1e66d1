/** The filters that most want, and the JSON Schema that says the same. */

export const OPERATORS = [
  'is',
  'isNot',
  'oneOf',
  'atLeast',
  'atMost',
  'startsWith',
  'endsWith',
  'includes',
  'contains',
  'exists',
] as const;
export type Operator = (typeof OPERATORS)[number];

/** One condition on what an event says; all of them have to hold. */
export interface Condition {
  /** The path in `data`, with dots between keys: `contact.status`. */
  path: string;
  operator: Operator;
  /** As it is typed; several with commas between them for `oneOf`. */
  value: string;
}

type Schema = Record<string, unknown>;

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @returns the filter of a text; null for none, undefined for what is no JSON object */
export const parseFilter = (text: string): Schema | null | undefined => {
  if (text.trim() === '') return null;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/**
 * The data values that typed text may stand for: true, false and null are themselves. Digits may be a
 * number or a text such as a postcode, so both match; unless a number would be written differently
 * (`007`) or is not exact.
 */
const formsOf = (typed: string): unknown[] => {
  const text = typed.trim();
  if (/^(true|false|null)$/.test(text)) return [JSON.parse(text)];
  const number = Number(text);
  const isNumber = /^-?\d+(\.\d+)?$/.test(text) && String(number) === text;
  return isNumber && Math.abs(number) <= Number.MAX_SAFE_INTEGER ? [text, number] : [text];
};

/** The number comes first, which tells one value from a list. */
const oneValue = (typed: string): Schema => {
  const [text, ...number] = formsOf(typed);
  return number.length === 0 ? { const: text } : { enum: [...number, text] };
};

const typedOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

const leafOf = ({ operator, value }: Condition): Schema => {
  switch (operator) {
    case 'is':
      return oneValue(value);
    case 'isNot':
      return { not: oneValue(value) };
    case 'oneOf':
      return { enum: value.split(',').flatMap(formsOf) };
    case 'atLeast':
      return { type: 'number', minimum: Number(value) };
    case 'atMost':
      return { type: 'number', maximum: Number(value) };
    case 'startsWith':
    case 'endsWith':
    case 'includes':
      return { type: 'string', [operator]: value };
    case 'contains':
      return { type: 'array', contains: oneValue(value) };
    case 'exists':
      return {};
  }
};

/** Both conditions, in one schema if their keywords do not overlap. */
const both = (schema: Schema, leaf: Schema): Schema => {
  const isFree = Object.entries(leaf).every(
    ([key, value]) => !(key in schema) || schema[key] === value
  );
  if (isFree) return { ...schema, ...leaf };
  const others = Array.isArray(schema.allOf) ? (schema.allOf as unknown[]) : [];
  return { ...schema, allOf: [...others, leaf] };
};

interface Node {
  type: 'object';
  required: string[];
  properties: Record<string, Schema>;
}

const emptyNode = (): Node => ({ type: 'object', required: [], properties: {} });

/** The JSON Schema of `data` that holds where all conditions do; null without any. */
export const schemaOf = (conditions: readonly Condition[]): Schema | null => {
  if (conditions.length === 0) return null;
  const root = emptyNode();
  for (const condition of conditions) {
    const keys = condition.path.split('.');
    const last = keys.pop() ?? '';
    let node = root;
    for (const key of keys) {
      if (!node.required.includes(key)) node.required.push(key);
      const child = node.properties[key];
      const next = isObject(child?.properties)
        ? (child as unknown as Node)
        : { ...child, ...emptyNode() };
      node.properties[key] = next as unknown as Schema;
      node = next;
    }
    if (!node.required.includes(last)) node.required.push(last);
    node.properties[last] = both(node.properties[last] ?? {}, leafOf(condition));
  }
  return root as unknown as Schema;
};

const isPair = (values: readonly unknown[]): values is [number, string] =>
  values.length === 2 && typeof values[0] === 'number' && String(values[0]) === values[1];

/** The one value that a schema asks for, as it is typed; undefined for another schema. */
const oneTyped = (schema: Schema): string | undefined => {
  if ('const' in schema) return typedOf(schema.const);
  return Array.isArray(schema.enum) && isPair(schema.enum) ? schema.enum[1] : undefined;
};

/** Without the numbers that stand for the digits before them. */
const listTyped = (values: readonly unknown[]): string =>
  values
    .filter((value, at) => typeof value !== 'number' || values[at - 1] !== String(value))
    .map(typedOf)
    .join(',');

const conditionsAt = (path: string, schema: unknown): Condition[] => {
  if (!isObject(schema)) return [];
  if (isObject(schema.properties)) {
    return Object.entries(schema.properties).flatMap(([key, child]) =>
      conditionsAt(path === '' ? key : `${path}.${key}`, child)
    );
  }
  const found: Condition[] = [];
  const add = (operator: Operator, value: unknown) =>
    found.push({ path, operator, value: typedOf(value) });
  const is = oneTyped(schema);
  if (is !== undefined) add('is', is);
  else if (Array.isArray(schema.enum)) add('oneOf', listTyped(schema.enum));
  const isNot = isObject(schema.not) ? oneTyped(schema.not) : undefined;
  if (isNot !== undefined) add('isNot', isNot);
  if ('minimum' in schema) add('atLeast', schema.minimum);
  if ('maximum' in schema) add('atMost', schema.maximum);
  for (const operator of ['startsWith', 'endsWith', 'includes'] as const) {
    if (operator in schema) add(operator, schema[operator]);
  }
  const contains = isObject(schema.contains) ? oneTyped(schema.contains) : undefined;
  if (contains !== undefined) add('contains', contains);
  const more = Array.isArray(schema.allOf) ? schema.allOf : [];
  found.push(...more.flatMap((one) => conditionsAt(path, one)));
  return found.length > 0 ? found : [{ path, operator: 'exists', value: '' }];
};

/** Equal whatever the order of keys: a database may keep another one. */
const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [
        key,
        key === 'required' && Array.isArray(value[key])
          ? [...(value[key] as unknown[])].sort()
          : canonical(value[key]),
      ])
  );
};

/** The conditions that a filter consists of; null if it says more than conditions can. */
export const conditionsOf = (schema: Schema | null): Condition[] | null => {
  if (schema === null) return [];
  const conditions = conditionsAt('', schema);
  const again = schemaOf(conditions);
  return JSON.stringify(canonical(again)) === JSON.stringify(canonical(schema)) ? conditions : null;
};

const isComplete = ({ path, operator, value }: Condition): boolean => {
  if (path === '') return false;
  if (operator === 'exists') return true;
  if (value.trim() === '') return false;
  return !/^at(Least|Most)$/.test(operator) || Number.isFinite(Number(value));
};

/** The conditions that say something already. */
export const completeOf = (conditions: readonly Condition[]): Condition[] =>
  conditions.filter(isComplete);

/** The first condition that lacks a path or a value, counted from 1; 0: none does. */
export const firstIncomplete = (conditions: readonly Condition[]): number =>
  conditions.findIndex((condition) => !isComplete(condition)) + 1;

/** The paths that lead to a value in an example, as deep as a filter is likely to look. */
export const pathsOf = (example: unknown, depth = 3): string[] => {
  if (!isObject(example) || depth === 0) return [];
  return Object.entries(example).flatMap(([key, value]) => {
    const below = pathsOf(value, depth - 1).map((path) => `${key}.${path}`);
    return below.length > 0 ? below : [key];
  });
};
