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

const typeOf = (schema) => {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(', ');
  if (schema.const !== undefined) return `\`${schema.const}\``;
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return [...new Set(options.map(typeOf))].join(' or ');
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  if (schema.format) return `${schema.type}, ${schema.format}`;
  if (schema.type === 'array' && schema.items) return `array of ${typeOf(schema.items)}`;
  return schema.type ?? 'any';
};

const keysOf = (schema) =>
  Object.entries(schema.properties ?? {}).map(
    ([name, value]) => `| \`${name}\` | ${typeOf(value)} |`
  );

const section = (name, { label, module, description, schema, example }) => [
  `### \`${name}\``,
  '',
  `**${label}.** ${description}${module ? ` Module: ${MODULES[module] ?? module}.` : ''}`,
  '',
  ...(schema ? ['| key of `data` | type |', '| --- | --- |', ...keysOf(schema), ''] : []),
  '```json',
  JSON.stringify(example, null, 2),
  '```',
  '',
];

const INTRODUCTION = `# Events

Generated from the sources by \`node scripts/generate-event-docs.mjs\`; \`GET /api/fw-crm/v1/webhooks/events\` gives the same for a running site, with the events of its other plugins. [asyncapi.json](asyncapi.json) is the machine's version: AsyncAPI 3, each message with the JSON Schema of its \`data\`.

Every post has the envelope \`{ id, event, created_at, site, data }\`; see [receivers.md](receivers.md). An \`id\` inside \`data\` is the id that the REST routes know; \`owner_id\` is the number of an admin user. Times are ISO 8601 with an offset. Keys may be added; none is taken away.

Rules that hold for all of them:

- **One business change, one event.** Saving without a change sends nothing. A record in several languages speaks once, for the site's default language; a draft is silent until it is published, and unpublishing is no deletion.
- \`changed\` names the top-level keys whose value differs, custom fields as \`fields.<name>\`. \`dates\` is named only when a record goes to the bin or comes back: dates that follow another change are not news.
- **A record that is created in a state has come into it**: a contact created as \`subscribed\` sends \`contact.created\` and \`contact.subscribed\`, a deal created as \`won\` sends \`deal.created\` and \`deal.won\`. A contact created with tags sends one \`contact.tagged\` for each.
- \`deal.stage_changed\`, \`deal.won\` and \`deal.lost\` come beside \`deal.updated\`; \`contact.subscribed\` and \`contact.unsubscribed\` beside \`contact.updated\`.
- Bulk writes send one event a record. Deleting a tag untags its contacts; deleting a company, contact or stage changes the records that pointed at it.
- \`source\` of \`contact.tagged\` and \`contact.untagged\` is \`admin\`, \`api\`, \`form\`, \`import\` or \`code\`.
- Events of a module are offered and sent only while it is on.
- \`entry.*\` and \`media.*\` are offered where the option \`sources\` names content types, with a schema of those; below is that of an article. Their rules are in [any-content-type.md](any-content-type.md): of an entry, each language speaks for itself.
- Statements that bypass the host's query engine (raw SQL) are not seen.
`;

const markdown = (events) => {
  const groups = Map.groupBy
    ? Map.groupBy(Object.entries(events), ([, { group }]) => group)
    : Object.entries(events).reduce(
        (map, entry) => map.set(entry[1].group, [...(map.get(entry[1].group) ?? []), entry]),
        new Map()
      );
  const overview = Object.entries(events).map(
    ([name, { label, group, module }]) =>
      `| [\`${name}\`](#${name.replaceAll('.', '')}) | ${label} | ${group} | ${MODULES[module] ?? ''} |`
  );
  const lines = [
    INTRODUCTION,
    '| event | | group | module |',
    '| --- | --- | --- | --- |',
    ...overview,
    '',
  ];
  for (const [group, members] of groups) {
    lines.push(`## ${group}`, '', ...members.flatMap(([name, event]) => section(name, event)));
  }
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
