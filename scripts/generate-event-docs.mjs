// node scripts/generate-event-docs.mjs [--check]
//
// Writes docs/events.md and docs/asyncapi.json from the declarations in the sources, which are what
// `GET /webhooks/events` answers and what the tests hold every payload against. With --check it
// writes nothing and fails where they are stale.
import fs from 'node:fs';
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { asyncapi } from './lib/asyncapi.mjs';
import { withSources } from './lib/compiled-sources.mjs';
import { ROOT } from './lib/paths.mjs';
import { sampleEvents } from './lib/sample-events.mjs';

const HOOK = 'service_crm_webhook_events';
const MARKDOWN = path.join(ROOT, 'docs/events.md');
const ASYNCAPI = path.join(ROOT, 'docs/asyncapi.json');

/** As much of the host as the declarations need: one hook, which each room registers at. */
const fakeHost = () => {
  const handlers = [];
  const hook = {
    register: (handler) => handlers.push(handler),
    async call(map) {
      let value = map;
      for (const handler of handlers) value = await handler(value);
      return value;
    },
  };
  return {
    handlers,
    app: { hooks: { get: (name) => (name === HOOK ? hook : undefined) } },
  };
};

const readCatalogue = () =>
  withSources(async (load) => {
    const { app, handlers } = fakeHost();
    const { CRM_EVENTS } = load('./server/src/crm/catalogue.js');
    handlers.push((map) => ({ ...map, ...CRM_EVENTS }));
    load('./server/src/stock/ledger.js').declareStockEvents(app);
    load('./server/src/pos/processing/events.js').declarePosEvents(app);
    const files = ['catalogue', 'types', 'rules/index'];
    const entries = Object.assign(
      {},
      ...files.map((one) => load(`./server/src/entries/${one}.js`))
    );
    handlers.push((map) => ({ ...map, ...sampleEvents(entries) }));
    const { ping, ...events } = await load('./server/src/webhooks/catalogue.js').declaredEvents(
      app
    );
    return { ...events, ping };
  });

const MODULES = {
  companies: 'Companies',
  sales_pipeline: 'Sales pipeline',
  email_marketing: 'Email marketing',
  email_conversations: 'Email conversations',
};

/** As many values of a list as a reader takes in; longer ones are codes that have a name elsewhere. */
const VALUES_SHOWN = 12;

/** A type in words; `?` means that it may be null. */
const typeOf = (schema) => {
  if (schema.$ref) return schema.$ref.split('/').at(-1).replaceAll('_', ' ');
  if (schema.enum && schema.enum.length <= VALUES_SHOWN) {
    return schema.enum.map((value) => `\`${value}\``).join(', ');
  }
  if (schema.const !== undefined) return `\`${schema.const}\``;
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return orNull([...new Set(options.map(typeOf))]);
  if (Array.isArray(schema.type)) return orNull(schema.type);
  if (schema.format) return schema.format;
  if (schema.type === 'array' && schema.items) return `array of ${typeOf(schema.items)}`;
  return schema.type ?? 'any';
};

const orNull = (types) => {
  const others = types.filter((type) => type !== 'null');
  return others.join(' or ') + (others.length < types.length ? '?' : '');
};

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The keys of a schema; of entries those of the first content type, which is the only one here. */
const keysOf = (schema) => schema.anyOf?.[0].properties ?? schema.properties;

/**
 * The objects that several events carry. Each is shown once, with the values of an example.
 * @returns `{ name, schema, keys, example }`
 */
const objectsOf = (events) => {
  const whole = (name, event) => ({ name, ...events[event] });
  const part = (name, event, key = name) => ({
    name,
    schema: keysOf(events[event].schema)[key],
    example: events[event].example[key],
  });
  const { schema, example } = events['pos.sale'];
  const record = ['event_id', 'state', 'flags', 'connection'];
  const picked = (values) => Object.fromEntries(record.map((key) => [key, values[key]]));
  return [
    whole('contact', 'contact.created'),
    part('tag', 'contact.tagged'),
    whole('company', 'company.created'),
    whole('deal', 'deal.created'),
    whole('task', 'task.created'),
    whole('level', 'stock.changed'),
    { name: 'record', schema: { properties: picked(schema.properties) }, example: picked(example) },
    part('entry', 'entry.created'),
    part('file', 'media.created', 'media'),
    part('webhook', 'webhook.failing'),
  ].map((object) => ({ ...object, keys: keysOf(object.schema) }));
};

const link = (name) => `[${name}](#the-${name})`;

/** The object that has all of its keys in a schema, with the same types. */
const objectIn = (schema, objects) =>
  objects.find(({ keys }) =>
    Object.entries(keys).every(([key, value]) => same(keysOf(schema)[key], value))
  );

const NULL = { type: 'null' };

/** The type of a key, as a link if an object below describes it. */
const typeOfKey = (value, objects) => {
  const object = objects.find(
    ({ schema }) => same(schema, value) || same({ anyOf: [schema, NULL] }, value)
  );
  if (!object) return typeOf(value);
  return link(object.name) + (same(object.schema, value) ? '' : '?');
};

const keyTable = ({ properties, example, objects }) => {
  const rows = Object.entries(properties).map(([key, value]) => {
    const type = typeOfKey(value, objects);
    const isShown = !type.startsWith('[') && example[key] !== undefined;
    return `| \`${key}\` | ${type} | ${isShown ? `\`${JSON.stringify(example[key])}\`` : ''} |`;
  });
  return ['| Key | Type | Example |', '| --- | --- | --- |', ...rows, ''];
};

/** So many keys are a sentence; more of them are a table. */
const KEYS_IN_A_SENTENCE = 5;

const keys = (properties, example, objects, before) => {
  const entries = Object.entries(properties);
  if (entries.length > KEYS_IN_A_SENTENCE) {
    const table = keyTable({ properties, example, objects });
    return before ? [`\`data\`: ${before}, and`, '', ...table] : table;
  }
  const words = entries.map(([key, value]) => `\`${key}\` (${typeOfKey(value, objects)})`);
  return [`\`data\`: ${[before, ...words].filter(Boolean).join(', ')}`, ''];
};

const dataOf = ({ schema, example }, objects) => {
  const object = objectIn(schema, objects);
  const known = object?.keys ?? {};
  const properties = Object.fromEntries(
    Object.entries(keysOf(schema)).filter(([key]) => !(key in known))
  );
  return keys(properties, example, objects, object && link(object.name));
};

const section = (name, event, objects) => [
  `### \`${name}\``,
  '',
  `**${event.label}.** ${event.description}`,
  '',
  ...(event.schema ? dataOf(event, objects) : []),
];

const objectSection = ({ name, keys, example }, objects) => [
  `### The ${name}`,
  '',
  ...keyTable({
    properties: keys,
    example,
    objects: objects.filter((object) => object.name !== name),
  }),
];

const INTRODUCTION = `# Events

This page lists every event and its \`data\`. \`GET /api/fw-crm/v1/webhooks/events\` returns the same list for your site, with JSON Schemas, examples and the events of other plugins. [asyncapi.json](asyncapi.json) has the schemas for code generators.

Every delivery has the envelope \`{ id, event, created_at, site, data }\`, see [receiving webhooks](receivers.md). An \`id\` inside \`data\` is the id that the [REST API](management-api.md) uses; \`owner_id\` is the id of an admin user. Times are ISO 8601 with an offset. In the types below, \`?\` means that the value may be null. New keys may be added; none is removed.

## Rules

- **One change, one event.** Saving without a change sends nothing. Bulk writes send one event per record.
- **Languages and drafts.** A record in several languages sends events for the default language only. A draft sends nothing until it is published, and unpublishing is not a deletion. [Entries and files](any-content-type.md) have their own rules, and are sent only if the option \`sources\` names them.
- **\`changed\`** lists the top-level keys whose value differs, custom fields as \`fields.<name>\`. \`dates\` is listed only when a record is moved to or from the bin.
- **Created in a state.** A contact created as \`subscribed\` sends \`contact.created\` and \`contact.subscribed\`. A deal created as \`won\` sends \`deal.created\` and \`deal.won\`. A contact created with tags sends one \`contact.tagged\` per tag.
- **Sent together.** \`deal.stage_changed\`, \`deal.won\` and \`deal.lost\` are sent next to \`deal.updated\`; \`contact.subscribed\` and \`contact.unsubscribed\` next to \`contact.updated\`.
- **Deleted relations.** Deleting a tag sends \`contact.untagged\` for its contacts. Deleting a company, contact or stage changes the records that pointed to it.
- **Modules.** Events of a module are offered and sent only while [the module is on](management-api.md#modules).
- **Raw SQL** sends nothing.

## All events
`;

const OBJECTS =
  'The entry below is one of a content type `api::article.article`; yours has your attributes.';

const modulesOf = (members) => {
  const [module] = members.flatMap(([, event]) => event.module ?? []);
  return module ? [`Module: ${MODULES[module] ?? module}.`, ''] : [];
};

const markdown = (events) => {
  const objects = objectsOf(events);
  const groups = Map.groupBy
    ? Map.groupBy(Object.entries(events), ([, { group }]) => group)
    : Object.entries(events).reduce(
        (map, entry) => map.set(entry[1].group, [...(map.get(entry[1].group) ?? []), entry]),
        new Map()
      );
  const lines = [INTRODUCTION];
  for (const [group, members] of groups) {
    const names = members.map(([name]) => `[\`${name}\`](#${name.replaceAll('.', '')})`);
    lines.push(`- ${group}: ${names.join(', ')}`);
  }
  lines.push('');
  for (const [group, members] of groups) {
    lines.push(`## ${group}`, '', ...modulesOf(members));
    lines.push(...members.flatMap(([name, event]) => section(name, event, objects)));
  }
  lines.push(
    '## Objects',
    '',
    OBJECTS,
    '',
    ...objects.flatMap((object) => objectSection(object, objects))
  );
  return lines.join('\n');
};

const formatted = async (file, text) => {
  const options = (await resolveConfig(file)) ?? {};
  return format(text, { ...options, filepath: file });
};

const events = await readCatalogue();
const outputs = [
  [MARKDOWN, await formatted(MARKDOWN, markdown(events))],
  [ASYNCAPI, await formatted(ASYNCAPI, JSON.stringify(asyncapi(events)))],
];

if (process.argv.includes('--check')) {
  const stale = outputs.filter(
    ([file, text]) => !fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text
  );
  for (const [file] of stale) console.error(`${path.relative(ROOT, file)} is stale`);
  if (stale.length > 0) {
    console.error('Run: node scripts/generate-event-docs.mjs');
    process.exitCode = 1;
  }
} else {
  for (const [file, text] of outputs) {
    fs.writeFileSync(file, text);
    console.log(path.relative(ROOT, file));
  }
}
