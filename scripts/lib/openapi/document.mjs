// Both namespaces as an OpenAPI 3.1 document, of what the sources declare.
import { foreignOperations, managementOperations, NAMED_SCHEMAS } from './management.mjs';
import { tillBodies, tillOperations, tillSchemas } from './tills.mjs';

const ref = (name) => ({ $ref: `#/components/schemas/${name}` });
const jsonOf = (schema) => ({ 'application/json': { schema } });
const pascal = (name) =>
  name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_match, first) => first.toUpperCase());
const camel = (name) => pascal(name).replace(/^./, (first) => first.toLowerCase());

/** Schemas of zod as JSON Schema; those that have an id become components, once. */
const createConverter = ({ z, components }) => {
  const remember = (name, schema) => {
    const known = components[name];
    if (known && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`${name} is two schemas: one that is taken and one that is answered`);
    }
    components[name] = schema;
  };
  return (schema, io) => {
    // Within another one, because what is converted is never a reference itself.
    const converted = z.toJSONSchema(z.object({ schema }), {
      io,
      unrepresentable: 'any',
      override: ({ jsonSchema }) => {
        delete jsonSchema.id;
        // Answers may gain fields.
        if (io === 'output' && jsonSchema.additionalProperties === false) {
          delete jsonSchema.additionalProperties;
        }
      },
    });
    const text = JSON.stringify(converted).replaceAll('#/$defs/', '#/components/schemas/');
    const { properties, $defs = {} } = JSON.parse(text);
    for (const [name, one] of Object.entries($defs)) remember(name, one);
    return properties.schema;
  };
};

/** Gives zod's objects the names of the constants that hold them. */
const nameSchemas = ({ load, z }) => {
  const named = new Map();
  const add = (schema, name) => {
    if (schema instanceof z.ZodObject && !named.has(schema)) named.set(schema, name);
  };
  for (const file of NAMED_SCHEMAS) {
    for (const [name, schema] of Object.entries(load(file)))
      add(schema, pascal(name.replace(/Output$/, '')));
  }
  const { INPUTS, SHAPES } = load('./server/src/crm/resources/schemas.js');
  for (const [kind, shape] of Object.entries(SHAPES)) add(shape, pascal(kind));
  for (const [kind, { create, update }] of Object.entries(INPUTS)) {
    add(create, `${pascal(kind)}Input`);
    add(update, `${pascal(kind)}Changes`);
  }
  for (const [schema, id] of named) z.globalRegistry.add(schema, { id });
};

const refusal = (description, schema) => ({ description, content: jsonOf(ref(schema)) });

const HOST_REFUSALS = {
  400: 'The request is not valid; `details.errors` names each field.',
  401: 'Missing or wrong credentials.',
  403: 'Not allowed to do this.',
  404: 'There is no such record, or its module is off.',
  409: 'Not now: it is under way, finished, or not to be sent from here.',
  429: 'Too many failed logins.',
  503: 'No process of the site sends now.',
};
const ALWAYS = [400, 401, 403, 404, 429];

const HOST_ERROR = {
  type: 'object',
  required: ['data', 'error'],
  properties: {
    data: { type: 'null' },
    error: {
      type: 'object',
      required: ['status', 'name', 'message', 'details'],
      properties: {
        status: { type: 'integer' },
        name: { type: 'string' },
        message: { type: 'string' },
        details: { type: 'object' },
      },
    },
  },
};

const parametersOf = (shape, place, convert, z) => {
  if (!shape) return [];
  const { properties = {}, required = [] } = convert(z.object(shape), 'input');
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema,
  }));
};

const foreign = (route) => ({
  operationId: camel(route.handler),
  ...foreignOperations[route.handler],
  tags: ['Management'],
  security: [],
  requestBody: { required: true, content: { '*/*': {} } },
  responses: {
    204: { description: 'Taken.' },
    400: { description: 'It cannot be read.' },
    401: { description: 'The signature is not the provider’s.' },
  },
});

const successes = ({ status = 200, media }, response, { convert, z }) => {
  if (response instanceof z.ZodNull) return { 204: { description: 'Done.' } };
  const content = media
    ? { [media]: { schema: { type: 'string' } } }
    : jsonOf(convert(response, 'output'));
  return Object.fromEntries([status].flat().map((one) => [one, { description: 'Done.', content }]));
};

const managementOperation = (route, { convert, z, operationId }) => {
  const known = managementOperations[route.handler] ?? {};
  const { request = {}, response } = route;
  if (foreignOperations[route.handler]) return foreign(route);
  if (!response && !known.media) {
    throw new Error(`${route.method} ${route.path} has no response schema`);
  }
  const body = request.body?.['application/json'];
  const refusals = [...ALWAYS, ...(known.refusals ?? [])].sort();
  const parameters = [
    ...parametersOf(request.params, 'path', convert, z),
    ...parametersOf(request.query, 'query', convert, z),
  ];
  return {
    operationId,
    summary: known.summary ?? route.handler,
    tags: ['Management'],
    security: [{ apiToken: [] }, { applicationPassword: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: jsonOf(convert(body, 'input')) } }),
    responses: {
      ...successes(known, response, { convert, z }),
      ...Object.fromEntries(
        refusals.map((status) => [status, { $ref: `#/components/responses/Host${status}` }])
      ),
    },
  };
};

/** `PUT` and `PATCH` share a handler, and lists may: then method and path name the operation. */
const operationIds = (routes) => {
  const uses = new Map();
  for (const { handler } of routes) uses.set(handler, (uses.get(handler) ?? 0) + 1);
  return ({ method, path, handler }) =>
    uses.get(handler) === 1 ? camel(handler) : camel(`${method.toLowerCase()} ${path}`);
};

const SIGNED = { posKey: [], posTimestamp: [], posSignature: [] };
const KEY_REFUSALS = [401, 404, 405, 429, 500, 503];
const SIGNED_REFUSALS = [400, 401, 403, 404, 405, 409, 413, 415, 429, 500, 503];

const tillOperation = (route) => {
  const name = `${route.method} ${route.path}`;
  const known = tillOperations[name];
  if (!known) throw new Error(`${name} is not described: add it to scripts/lib/openapi/tills.mjs`);
  const { operationId, summary, body, answers, open = false, keyOnly = false } = known;
  const refusals = open ? [404, 405, 500, 503] : keyOnly ? KEY_REFUSALS : SIGNED_REFUSALS;
  return {
    operationId,
    summary,
    tags: ['Tills'],
    security: open ? [] : [keyOnly ? { posKey: [] } : SIGNED],
    ...(body && { requestBody: { required: true, content: jsonOf(ref(body)) } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, [schema, description]]) => [
          status,
          { description, content: jsonOf(ref(schema)) },
        ])
      ),
      ...Object.fromEntries(
        refusals.map((status) => [status, { $ref: `#/components/responses/Till${status}` }])
      ),
    },
  };
};

const TILL_HOST_CODES = {
  404: 'There is no such route.',
  405: 'The route does not know this method.',
  500: 'Something went wrong; retrying is always safe.',
};

const tillResponses = ({ ERROR_STATUS }) => {
  const responses = {};
  for (const [status, description] of Object.entries(TILL_HOST_CODES)) {
    responses[`Till${status}`] = refusal(description, 'TillError');
  }
  for (const status of new Set(Object.values(ERROR_STATUS))) {
    const codes = Object.keys(ERROR_STATUS).filter((code) => ERROR_STATUS[code] === status);
    responses[`Till${status}`] = refusal(
      codes.map((code) => `\`${code}\``).join(', '),
      'TillError'
    );
    if (status !== 429 && status !== 503) continue;
    responses[`Till${status}`].headers = {
      'Retry-After': { description: 'Seconds.', schema: { type: 'integer' } },
    };
  }
  return responses;
};

/** A published schema as a component: its parts next to it, without an address. */
const published = (schema, name, components) => {
  const text = JSON.stringify(schema);
  const {
    $schema: _schema,
    $id: _id,
    $defs = {},
    ...rest
  } = JSON.parse(
    text.replace(/#\/\$defs\/(\w+)/g, (_match, part) => `#/components/schemas/${pascal(part)}`)
  );
  components[name] = rest;
  for (const [part, value] of Object.entries($defs)) components[pascal(part)] = value;
};

/** Takes away what nothing points at: answers of routes that there are not yet. */
const withoutUnused = (document) => {
  const { schemas } = document.components;
  for (;;) {
    const text = JSON.stringify(document);
    const unused = Object.keys(schemas).filter(
      (name) => !text.includes(`"#/components/schemas/${name}"`)
    );
    if (unused.length === 0) return document;
    for (const name of unused) delete schemas[name];
  }
};

const header = (name, description) => ({ type: 'apiKey', in: 'header', name, description });

const SECURITY_SCHEMES = {
  apiToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API token of the site, or a token of a user of its users-permissions plugin.',
  },
  applicationPassword: {
    type: 'http',
    scheme: 'basic',
    description: 'An admin user’s e-mail address and an application password.',
  },
  posKey: header('X-POS-Key', 'The connection’s public key.'),
  posTimestamp: header('X-POS-Timestamp', 'Unix seconds at which the request was signed.'),
  posSignature: header(
    'X-POS-Signature',
    '`sha256=` and the hex HMAC-SHA256, keyed with the connection’s secret, of the timestamp, a newline and the exact bytes of the body.'
  ),
};

const pathOf = (prefix, path) => `/api${prefix}${path.replace(/:(\w+)/g, '{$1}')}`;

/** @param load  a `require` of the server's sources */
export const openapi = ({ load, version }) => {
  const { z } = load('@strapi/utils');
  const plugin = load('./server/src/index.js').default;
  const words = {
    ...load('./shared/contracts/pos.js'),
    ...load('./server/src/pos/rules/records.js'),
  };
  const { PUBLISHED_SCHEMAS } = load('./server/src/pos/rules/schemas.js');

  const schemas = { HostError: HOST_ERROR, ...tillSchemas(words), ...tillBodies(words) };
  for (const [kind, schema] of Object.entries(PUBLISHED_SCHEMAS)) {
    published(schema, pascal(kind), schemas);
  }
  nameSchemas({ load, z });
  const convert = createConverter({ z, components: schemas });

  const paths = {};
  const add = (prefix, route, operation) => {
    const item = (paths[pathOf(prefix, route.path)] ??= {});
    item[route.method.toLowerCase()] = operation;
  };
  const { crm, pos } = plugin.routes;
  const idOf = operationIds(crm.routes);
  for (const route of crm.routes) {
    const operationId = idOf(route);
    add(crm.prefix, route, managementOperation(route, { convert, z, operationId }));
  }
  for (const route of pos.routes) add(pos.prefix, route, tillOperation(route));

  return withoutUnused({
    openapi: '3.1.0',
    info: {
      title: 'Switchboard',
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'Signed CRM webhooks out, signed point-of-sale records in. management-api.md and tills.md tell how to use it.',
    },
    servers: [{ url: 'https://{site}', variables: { site: { default: 'shop.example' } } }],
    tags: [
      { name: 'Management', description: 'Webhooks, their deliveries and the records of the CRM.' },
      { name: 'Tills', description: 'Sales, refunds and counts, signed.' },
    ],
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      responses: {
        ...Object.fromEntries(
          Object.entries(HOST_REFUSALS).map(([status, description]) => [
            `Host${status}`,
            refusal(description, 'HostError'),
          ])
        ),
        ...tillResponses(words),
      },
      securitySchemes: SECURITY_SCHEMES,
    },
  });
};
