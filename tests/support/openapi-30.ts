type Fields = Record<string, unknown>;

/** What 3.0 has no word for, or not the same one, and a client need not know. */
const UNKNOWN = new Set([
  'const',
  'default',
  'else',
  'examples',
  'if',
  'not',
  'propertyNames',
  'then',
]);

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isNull = (schema: unknown): boolean => isFields(schema) && schema.type === 'null';

const mapped = (fields: Fields, each: (value: unknown) => unknown): Fields =>
  Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, each(value)]));

/** Of several schemas it is whatever it may be. */
const onlyOne = (schemas: readonly unknown[]): Fields => {
  const [one, another] = schemas;
  if (another !== undefined || !isFields(one)) return {};
  return '$ref' in one ? { allOf: [one] } : one;
};

const withoutNull = (schemas: readonly unknown[]): unknown[] =>
  schemas.filter((schema) => !isNull(schema));

const partOf = (key: string, value: unknown): unknown => {
  if (key === 'properties' && isFields(value)) return mapped(value, schemaOf);
  if (Array.isArray(value)) return value.map((one) => (isFields(one) ? schemaOf(one) : one));
  return isFields(value) ? schemaOf(value) : value;
};

function schemaOf(schema: unknown): unknown {
  if (!isFields(schema)) return schema;
  const { type, anyOf, ...rest } = schema;
  const types = (Array.isArray(type) ? type : [type]).map((one: unknown) => ({ type: one }));
  const alternatives = Array.isArray(anyOf) ? anyOf : [];
  const known = Object.entries(rest).filter(([key]) => !UNKNOWN.has(key));
  return {
    ...(type !== undefined && onlyOne(withoutNull(types))),
    ...onlyOne(withoutNull(alternatives).map(schemaOf)),
    ...Object.fromEntries(known.map(([key, value]) => [key, partOf(key, value)])),
    ...([...types, ...alternatives].some(isNull) && { nullable: true }),
  };
}

/** Schemas of parameters, bodies and answers, wherever they stand. */
const withSchemas = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withSchemas);
  if (!isFields(value)) return value;
  // A body of any kind: it says so with nothing.
  if (isFields(value['*/*'])) return { '*/*': { schema: { type: 'string' } } };
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      key === 'schema' ? schemaOf(one) : withSchemas(one),
    ])
  );
};

/**
 * An OpenAPI 3.1 document as one of 3.0, for generators that read no other: null becomes `nullable`,
 * and what 3.0 cannot say is left out. It describes more than the document does, never less.
 */
export const asOpenApi30 = (document: Fields): Fields => {
  const { openapi: _version, info, components, ...rest } = document;
  const { license: _license, ...about } = info as Fields;
  const { schemas, ...others } = components as Fields;
  return {
    openapi: '3.0.3',
    info: about,
    ...(withSchemas(rest) as Fields),
    components: {
      ...(withSchemas(others) as Fields),
      schemas: mapped(schemas as Fields, schemaOf),
    },
  };
};
