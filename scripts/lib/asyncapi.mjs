// The events as an AsyncAPI 3 document: one channel, a receiver's address, and a message an event.

/** Every header of docs/contract-webhooks.md#requests-to-receivers. Later versions may add some, so others are allowed. */
const HEADERS = {
  type: 'object',
  required: [
    'X-Service-Event',
    'X-Service-Delivery',
    'X-Service-Timestamp',
    'X-Service-Signature',
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
  ],
  properties: {
    'X-Service-Event': { type: 'string', description: "The event's name." },
    'X-Service-Delivery': {
      type: 'string',
      format: 'uuid',
      description: 'Equals `id` of the body; the same on every try.',
    },
    'X-Service-Timestamp': {
      type: 'string',
      pattern: '^[0-9]+$',
      description: 'Unix seconds at which this attempt was signed.',
    },
    'X-Service-Signature': {
      type: 'string',
      pattern: '^sha256=[0-9a-f]{64}$',
      description: '`sha256=` + hex HMAC-SHA256 of `timestamp.body` under the secret.',
    },
    'X-Service-Signature-Previous': {
      type: 'string',
      pattern: '^sha256=[0-9a-f]{64}$',
      description: 'Signature with the old secret, while it is replaced with an overlap.',
    },
    'X-Service-Replayed': {
      type: 'string',
      const: '1',
      description: 'Only where it is sent later, from the journal.',
    },
    'webhook-id': { type: 'string', description: 'Standard Webhooks: equals `id` of the body.' },
    'webhook-timestamp': {
      type: 'string',
      pattern: '^[0-9]+$',
      description: 'Standard Webhooks: Unix seconds at which this attempt was signed.',
    },
    'webhook-signature': {
      type: 'string',
      description:
        'Standard Webhooks: `v1,` + base64 HMAC-SHA256 of `id.timestamp.body` under the bytes that the secret encodes; two of them with a space between while a secret is replaced with an overlap.',
    },
  },
};

/** Local references would point into the document around them. */
const inlined = (schema) => {
  const { $defs = {}, ...rest } = schema;
  const walk = (node) => {
    if (Array.isArray(node)) return node.map(walk);
    if (typeof node !== 'object' || node === null) return node;
    const local = typeof node.$ref === 'string' && /^#\/\$defs\/(.+)$/.exec(node.$ref)?.[1];
    if (local) return walk($defs[local]);
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, walk(value)]));
  };
  return walk(rest);
};

/** Keys that a thin payload keeps; server/src/webhooks/publish.ts says the same of data. */
const KEPT = /^(?:id|changed|source|type)$|_ids?$/;

const isObject = (node) => typeof node === 'object' && node !== null && !Array.isArray(node);

/** True if a schema may describe an object, or a list of them. */
const mayBeContainer = (schema) =>
  [schema.type].flat().some((type) => type === undefined || /^(object|array)$/.test(type));

/** The schema of a thin payload's data: everything may be missing, and most of it is. */
const thinned = (schema) => {
  if (!isObject(schema)) return schema;
  const { required: _, ...rest } = schema;
  const entries = Object.entries(rest).map(([key, value]) => {
    if (key === 'properties') {
      const kept = Object.entries(value).filter(
        ([name, property]) => KEPT.test(name) || mayBeContainer(property)
      );
      return [key, Object.fromEntries(kept.map(([name, one]) => [name, thinned(one)]))];
    }
    if (key === 'items') return [key, thinned(value)];
    if (/^(anyOf|oneOf|allOf)$/.test(key)) return [key, value.map(thinned)];
    return [key, value];
  });
  return Object.fromEntries(entries);
};

/** An event's data, whole, or as a webhook with `payload: 'thin'` is sent it. */
const dataOf = (schema) =>
  schema === undefined || schema === null
    ? {}
    : {
        anyOf: [
          inlined(schema),
          {
            ...thinned(inlined(schema)),
            description: 'For a webhook with `payload: "thin"`: ids, and what changed.',
          },
        ],
      };

const message = (name, { label, group, description, schema, example }) => ({
  name,
  title: label,
  summary: description,
  tags: [{ name: group }],
  headers: { $ref: '#/components/schemas/headers' },
  payload: {
    type: 'object',
    required: ['id', 'event', 'created_at', 'site', 'data'],
    properties: {
      id: {
        type: 'string',
        format: 'uuid',
        description: 'The delivery id, the same on every try.',
      },
      event: { type: 'string', const: name },
      created_at: { type: 'string', format: 'date-time' },
      site: { type: 'string', description: "The site's address." },
      data: dataOf(schema),
    },
  },
  examples: [
    {
      name,
      payload: {
        id: '0192d4c1-7a3e-7c11-9d55-1f2e3d4c5b6a',
        event: name,
        created_at: '2026-03-09T14:30:00.000+00:00',
        site: 'https://shop.example.com',
        data: example,
      },
    },
  ],
});

const messageKey = (name) => name.replaceAll('.', '_');

export const asyncapi = (events) => ({
  asyncapi: '3.0.0',
  info: {
    title: 'Switchboard: CRM event webhooks',
    version: '1.0.0',
    description:
      'Signed posts to the addresses that a site owner chose. Generated from the sources.',
    license: { name: 'MIT' },
  },
  defaultContentType: 'application/json',
  channels: {
    webhook: {
      address: null,
      title: 'Webhook',
      description: "A receiver's address; each post carries one event.",
      messages: Object.fromEntries(
        Object.keys(events).map((name) => [
          messageKey(name),
          { $ref: `#/components/messages/${messageKey(name)}` },
        ])
      ),
      bindings: { http: {} },
    },
  },
  operations: {
    sendEvent: {
      action: 'send',
      channel: { $ref: '#/channels/webhook' },
      summary: 'Post an event to a webhook.',
      bindings: { http: { method: 'POST' } },
      messages: Object.keys(events).map((name) => ({
        $ref: `#/channels/webhook/messages/${messageKey(name)}`,
      })),
    },
  },
  components: {
    messages: Object.fromEntries(
      Object.entries(events).map(([name, event]) => [messageKey(name), message(name, event)])
    ),
    schemas: {
      headers: HEADERS,
    },
  },
});
