// Answers to tills, and the body that each of their routes takes. A new route of the namespace
// needs a line in `tillOperations`; the generator fails without one.

const text = { type: 'string' };
const integer = { type: 'integer' };
const minorSum = {
  type: ['integer', 'string'],
  pattern: '^-?[0-9]+$',
  description:
    'Digits as a string where they are more than a JSON number holds exactly (2^53 − 1).',
};
const orNull = (schema) => ({ ...schema, type: [schema.type, 'null'] });
const list = (items) => ({ type: 'array', items });
const yes = { type: 'boolean', const: true };
const ref = (name) => ({ $ref: `#/components/schemas/${name}` });

/** Fields may be added within v1, so others are allowed. */
const object = (properties, optional = []) => ({
  type: 'object',
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  properties,
});

/** One of these today; others may be added, so no enumeration. */
const oneOf = (values, description) => ({
  ...text,
  description: `${description} ${values.map((value) => `\`${value}\``).join(', ')}.`,
});

/**
 * Schemas of answers, by name.
 * @param words  `shared/contracts/pos` and `server/src/pos/rules/records`
 */
export const tillSchemas = ({ POS_EVENT_STATES, EVENT_FLAGS, ERROR_CODES, CONNECTION_MODES }) => {
  const state = oneOf(POS_EVENT_STATES, 'State of the record:');
  const flags = list(oneOf(EVENT_FLAGS, 'A remark:'));
  const staleLines = list(object({ sku: text, quantity: integer }));
  const movements = list(ref('TillMovement'));
  return {
    TillError: object(
      {
        ok: { type: 'boolean', const: false },
        code: oneOf(ERROR_CODES, 'Cause:'),
        message: { ...text, description: 'For people; of a 400 it names the field and the rule.' },
        schema: { ...text, description: 'With a 400: the expected schema of the body.' },
        field: { ...text, description: 'Of a 400: the field.' },
        skew_seconds: {
          ...orNull(integer),
          description: 'With `timestamp_outside_window`: the clock of the till minus the server’s.',
        },
        required_scope: { ...text, description: 'Of `insufficient_scope`.' },
        stale: staleLines,
      },
      ['schema', 'field', 'skew_seconds', 'required_scope', 'stale']
    ),
    Ping: object({
      ok: yes,
      connection: text,
      mode: { ...text, enum: CONNECTION_MODES },
      schema: { ...text, const: 'v1' },
      server_time: { ...integer, description: 'Unix seconds.' },
    }),
    Accepted: object(
      {
        ok: yes,
        event_id: integer,
        state,
        duplicate: { type: 'boolean', description: 'The record had been accepted before.' },
        payload_mismatch: {
          ...yes,
          description: 'The id came before with another body; the first one counts.',
        },
        mode: {
          ...text,
          const: 'test',
          description:
            'With a duplicate: the record was accepted in test mode, and moves no stock.',
        },
        stale: {
          ...staleLines,
          description: 'Lines of a count that are older than an accepted one.',
        },
      },
      ['payload_mismatch', 'mode', 'stale']
    ),
    BatchAnswer: object({
      ok: yes,
      results: list({
        description: 'The HTTP status and the answer of the record’s own route.',
        type: 'object',
        required: ['status', 'ok'],
        properties: { status: integer, ok: { type: 'boolean' } },
        anyOf: [ref('Accepted'), ref('TillError')],
      }),
    }),
    TillMovement: object(
      {
        sku: text,
        location_ref: orNull(text),
        quantity: integer,
        effect: {
          ...integer,
          description: 'Change of the quantity; 0 if a later count covers it.',
        },
        quantity_after: { ...integer, description: 'With the scope `stock:read` only.' },
      },
      ['quantity_after']
    ),
    Validated: object({
      ok: yes,
      state,
      duplicate: { type: 'boolean' },
      stale: staleLines,
      flags,
      movements,
      unknown: list(
        object({ sku: text, gtin: text, location_ref: text }, ['sku', 'gtin', 'location_ref'])
      ),
    }),
    StatusAnswer: object({
      ok: yes,
      records: list(
        object(
          {
            external_id: text,
            state: {
              ...state,
              description: `${state.description} \`unknown\`: never accepted; no other key is set.`,
            },
            event_id: integer,
            kind: text,
            flags,
            accepted_at: { ...text, format: 'date-time' },
            movements,
          },
          ['event_id', 'kind', 'flags', 'accepted_at', 'movements']
        )
      ),
    }),
    CatalogueAnswer: object({
      ok: yes,
      items: list(
        object({
          sku: text,
          gtin: orNull(text),
          name: orNull(text),
          price: { ...orNull(integer), description: 'Minor units.' },
          currency: { ...orNull(text), description: 'ISO 4217.' },
          stock: list(object({ location_ref: orNull(text), quantity: integer })),
          deleted: { type: 'boolean' },
        })
      ),
      cursor: text,
      has_more: { type: 'boolean' },
    }),
    Closed: object(
      {
        ok: yes,
        event_id: integer,
        state: oneOf(['matched', 'differs'], 'Result of the comparison of till and site:'),
        duplicate: { type: 'boolean' },
        missing: { ...list(text), description: 'With `external_ids`: what the site has not.' },
        unexpected: {
          ...list(text),
          description: 'With `external_ids`: what the till did not name, 5,000 at most.',
        },
        unexpected_count: {
          ...integer,
          description: 'How many those are in all, where more are than are listed.',
        },
        differences: list(object({ currency: text, field: text, till: minorSum, site: minorSum })),
      },
      ['missing', 'unexpected', 'unexpected_count']
    ),
    JsonSchema: { type: 'object', description: 'A JSON Schema document (2020-12).' },
  };
};

/** Bodies that have no published schema, by name. */
export const tillBodies = ({ LIMITS, RECORD_KINDS }) => ({
  Validation: object({
    kind: { ...text, enum: RECORD_KINDS },
    body: { anyOf: [ref('Sale'), ref('Refund'), ref('Inventory')] },
  }),
  StatusRequest: object({
    external_ids: { ...list(text), minItems: 1, maxItems: LIMITS.statusIds },
  }),
  CatalogueRequest: object(
    {
      cursor: {
        ...text,
        description: 'Cursor of the previous page. Leave it out to start from the beginning.',
      },
      limit: { ...integer, minimum: 1, maximum: LIMITS.catalogueItems, default: 500 },
    },
    ['cursor', 'limit']
  ),
});

const record = (operationId, body, summary, answer = 'Accepted') => ({
  operationId,
  summary,
  body,
  answers: {
    202: [answer, 'Accepted and queued.'],
    200: [answer, 'Seen before (`duplicate: true`): nothing has changed.'],
  },
});

const asking = (operationId, body, summary, answer) => ({
  operationId,
  summary,
  body,
  answers: { 200: [answer, 'The answer.'] },
});

const schemaOf = (kind) => ({
  operationId: `${kind}Schema`,
  summary: `The JSON Schema of a ${kind} body`,
  open: true,
  answers: { 200: ['JsonSchema', 'The document that validates.'] },
});

/** Every route that the namespace may have. `open`: without a key; `keyOnly`: without a signature. */
export const tillOperations = {
  'GET /ping': {
    operationId: 'ping',
    summary: 'Check the credentials and read the server’s time',
    keyOnly: true,
    answers: { 200: ['Ping', 'The key is right.'] },
  },
  'POST /sale': record('sendSale', 'Sale', 'Report a completed sale'),
  'POST /refund': record('sendRefund', 'Refund', 'Report a refund'),
  'POST /inventory': record('sendInventory', 'Inventory', 'Report a count or an adjustment'),
  'POST /closing': record('closeShift', 'Closing', 'Compare a shift with the site', 'Closed'),
  'POST /batch': asking('sendBatch', 'Batch', 'Report up to 100 records', 'BatchAnswer'),
  'POST /validate': asking(
    'validate',
    'Validation',
    'Validate a record without storing it',
    'Validated'
  ),
  'POST /status': asking('status', 'StatusRequest', 'States of records', 'StatusAnswer'),
  'POST /catalogue': asking(
    'catalogue',
    'CatalogueRequest',
    'Items and stock since a cursor',
    'CatalogueAnswer'
  ),
  ...Object.fromEntries(
    ['sale', 'refund', 'inventory', 'closing', 'batch'].map((kind) => [
      `GET /schema/${kind}`,
      schemaOf(kind),
    ])
  ),
};
