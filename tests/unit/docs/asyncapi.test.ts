import { type AsyncAPIDocumentInterface, type MessageInterface, Parser } from '@asyncapi/parser';
import Ajv, { type ValidateFunction } from 'ajv';
import type { EventDeclaration, EventMap } from '../../../server/src/hooks';
import { REPLAYED } from '../../../server/src/webhooks/sending/post';
import {
  generateSecret,
  signatureHeaders,
} from '../../../server/src/webhooks/rules/request-headers';
import { thinEvent } from '../../../server/src/webhooks/rules/thin-payload';
import { catalogue } from './support/catalogue';
import { readDocument } from './support/markdown';

const ERROR = 0;

/** The parts of the document that the copies below are broken in. */
interface Draft {
  info?: unknown;
  channels: { webhook: { messages: Record<string, unknown> } };
  operations: { sendEvent: { action: string; messages: { $ref: string }[] } };
  components: {
    messages: Record<string, { payload: { type: string }; examples: { payload: unknown }[] }>;
  };
}

const draft = (): Draft => JSON.parse(readDocument('docs/asyncapi.json')) as Draft;

/** The same with one message alone, which takes the parser a fraction of the time. */
const draftOfPing = (): Draft => {
  const copy = draft();
  const { webhook } = copy.channels;
  const { sendEvent } = copy.operations;
  const { ping } = copy.components.messages;
  webhook.messages = { ping: webhook.messages.ping };
  sendEvent.messages = sendEvent.messages.filter(({ $ref }) => $ref.endsWith('/ping'));
  copy.components.messages = { ping: ping! };
  return copy;
};

/** Makes itself ready once for all that it reads. */
const parser = new Parser();

/** Read as any receiver's tool would: by a parser that knows nothing of the plugin. */
const read = async (source: Draft) => {
  const { document, diagnostics } = await parser.parse(JSON.stringify(source));
  return {
    document,
    errors: diagnostics
      .filter(({ severity }) => severity === ERROR)
      .map(({ path, message }) => `${path.join('.')}: ${message}`),
    advice: diagnostics.filter(({ severity }) => severity !== ERROR).map(({ code }) => code),
  };
};

const compiled = new Map<string, ValidateFunction>();

// AsyncAPI's own schema language is a superset of JSON Schema draft 7, which is Ajv's default.
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
const compile = (schema: object): ValidateFunction => {
  const text = JSON.stringify(schema);
  const validate = compiled.get(text) ?? ajv.compile(schema);
  compiled.set(text, validate);
  return validate;
};

const complaints = (schema: object, value: unknown): string[] => {
  const validate = compile(schema);
  validate(value);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
};

interface PayloadSchema {
  properties: { event: { const: string }; data: { anyOf: [{ properties: object }, object] } };
}

const payloadSchema = (message: MessageInterface): PayloadSchema =>
  message.payload()!.json() as unknown as PayloadSchema;

let events: EventMap;
let document: AsyncAPIDocumentInterface;
let errors: string[];
let advice: unknown[];

const sent = (): MessageInterface[] =>
  document.operations().get('sendEvent')?.messages().all() ?? [];

const messageOf = (event: string): MessageInterface => {
  const found = sent().filter((message) => message.name() === event);
  expect(found).toHaveLength(1);
  return found[0]!;
};

beforeAll(async () => {
  events = await catalogue();
  const result = await read(draft());
  ({ errors, advice } = result);
  if (!result.document) throw new Error(errors.join('\n'));
  document = result.document;
}, 30_000);

describe('docs/asyncapi.json, read by the parser of the AsyncAPI initiative', () => {
  it('has no error, and no advice but to name a later version', () => {
    // Nothing of 3.1 is used, and more tools read 3.0.
    expect([errors, advice]).toEqual([[], ['asyncapi-latest-version']]);
  });

  it('sends one message for each declared event and no other, in one operation', () => {
    const names = Object.keys(events).sort();
    const namesOf = (messages: MessageInterface[]) => messages.map((one) => one.name()).sort();
    expect(names.length).toBeGreaterThan(30);
    expect(namesOf(sent())).toEqual(names);
    expect(namesOf(document.channels().get('webhook')?.messages().all() ?? [])).toEqual(names);
    expect(document.operations().all()).toHaveLength(1);
    expect(document.operations().get('sendEvent')?.isSend()).toBe(true);
  });

  it('describes each message in the words of its declaration', () => {
    for (const [event, { label, group, description }] of Object.entries(events)) {
      const message = messageOf(event);
      expect([message.title(), message.summary(), message.tags().all()[0]?.name()]).toEqual([
        label,
        description,
        group,
      ]);
    }
  });

  it('gives each message a payload schema that names the event and the keys of its data', () => {
    for (const [event, { schema }] of Object.entries(events) as [string, EventDeclaration][]) {
      const { properties } = payloadSchema(messageOf(event));
      const declared = schema as { properties?: object };
      expect(properties.event.const).toBe(event);
      expect(Object.keys(declared.properties ?? {}).length).toBeGreaterThan(0);
      expect(Object.keys(properties.data.anyOf[0].properties)).toEqual(
        Object.keys(declared.properties ?? {})
      );
    }
  });

  it('gives each message the declared example, which fits its payload schema', () => {
    for (const [event, { example }] of Object.entries(events)) {
      const message = messageOf(event);
      const examples = message.examples().all();
      expect(examples).toHaveLength(1);
      const payload = examples[0]!.payload() as { event: string; data: unknown };
      expect(payload.data).toEqual(example);
      expect([event, complaints(payloadSchema(message), payload)]).toEqual([event, []]);
    }
  });

  it('takes what a webhook with a thin payload is sent, and no other lack', () => {
    for (const [event, { example }] of Object.entries(events)) {
      const schema = payloadSchema(messageOf(event));
      const payload = messageOf(event).examples().all()[0]!.payload() as { data: unknown };
      expect([event, complaints(schema, { ...payload, data: thinEvent(event, example) })]).toEqual([
        event,
        [],
      ]);
    }
    const { data, ...rest } = messageOf('contact.created').examples().all()[0]!.payload() as {
      data: object;
    };
    const wrong = { ...rest, data: { ...data, id: 17 } };
    expect(complaints(payloadSchema(messageOf('contact.created')), wrong)).not.toEqual([]);
  });

  it('declares the headers that a delivery is signed with, that of a replay, and no other', () => {
    const parts = {
      secret: generateSecret(),
      deliveryId: '0192d4c1-7a3e-7c11-9d55-1f2e3d4c5b6a',
      event: 'ping',
      timestamp: 1_772_373_900,
      body: '{}',
    };
    const headers = signatureHeaders(parts);
    const whileReplaced = signatureHeaders({ ...parts, previousSecret: generateSecret() });
    for (const message of sent()) {
      const declared = message.headers()!.json() as { properties: object; required: string[] };
      expect(Object.keys(declared.properties).sort()).toEqual(
        [...Object.keys(whileReplaced), ...Object.keys(REPLAYED)].sort()
      );
      expect(declared.required).toEqual(Object.keys(headers));
      expect(complaints(declared, headers)).toEqual([]);
      expect(complaints(declared, { ...whileReplaced, ...REPLAYED })).toEqual([]);
    }
  });
});

describe('a broken copy', () => {
  type Breakage = (copy: Draft) => void;

  it('is one of a document that is not', async () => {
    expect((await read(draftOfPing())).errors).toEqual([]);
  }, 30_000);

  it.each<[string, RegExp, Breakage]>([
    ['without its title and version', /must have required property "info"/, (c) => delete c.info],
    [
      'with an action of AsyncAPI 2',
      /operations\.sendEvent\.action: .*allowed values/,
      (c) => (c.operations.sendEvent.action = 'publish'),
    ],
    [
      'with an operation that sends a message nobody declared',
      /operations\.sendEvent\.messages\.0.*does not exist/,
      (c) => (c.operations.sendEvent.messages[0]!.$ref = '#/channels/webhook/messages/nothing'),
    ],
    [
      'with a payload of no JSON type',
      /messages\.ping\.payload\.type: .*allowed values/,
      (c) => (c.components.messages.ping!.payload.type = 'sentence'),
    ],
  ])(
    '%s is refused',
    async (_, complaint, damage) => {
      const copy = draftOfPing();
      damage(copy);
      const result = await read(copy);
      expect(result.document).toBeUndefined();
      expect(result.errors.join('\n')).toMatch(complaint);
    },
    30_000
  );

  it('whose example lacks a key is found by its payload schema', () => {
    const message = messageOf('ping');
    const { id: _, ...rest } = message.examples().all()[0]!.payload() as { id: string };
    expect(complaints(payloadSchema(message), rest)).toEqual([" must have required property 'id'"]);
  });
});
