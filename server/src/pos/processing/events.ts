import type { EventMap } from '../../hooks';
import { declareEvents } from '../../stock/ledger';
import { RECORD_SCHEMAS } from '../rules/schemas';
import { RECORD_KINDS, type RecordKind } from '../rules/records';
import type { App } from '../../app';

const GROUP = 'Point of sale';

const LABELS: Readonly<Record<RecordKind, { label: string; description: string }>> = {
  sale: { label: 'Sale at a till', description: 'A till’s sale was processed.' },
  refund: {
    label: 'Refund at a till',
    description: 'A till’s refund was processed. Its `state` is `held` while its sale is unknown.',
  },
  inventory: {
    label: 'Stock count or adjustment at a till',
    description: 'A till’s stock count or adjustment was processed.',
  },
};

const envelope = {
  event_id: { type: 'integer' },
  state: { type: 'string' },
  flags: { type: 'array', items: { type: 'string' } },
  connection: {
    type: 'object',
    properties: { id: { type: 'integer' }, name: { type: 'string' } },
  },
};

const declaration = (kind: RecordKind): EventMap[string] => {
  const schema = RECORD_SCHEMAS[kind] as {
    properties: Record<string, unknown>;
    $defs?: unknown;
    examples: Record<string, unknown>[];
  };
  return {
    ...LABELS[kind],
    group: GROUP,
    schema: {
      type: 'object',
      properties: { ...envelope, ...schema.properties },
      ...(schema.$defs !== undefined && { $defs: schema.$defs }),
    },
    example: {
      event_id: 1042,
      state: 'applied',
      flags: [],
      connection: { id: 1, name: 'Till 1' },
      ...schema.examples[0],
    },
  };
};

/** docs/shop.md#sales */
const MINOR_SUM = {
  anyOf: [{ type: 'integer' }, { type: 'string', pattern: '^-?[0-9]+$' }],
  description: 'Digits as a string where they are more than a JSON number holds exactly.',
};

const CLOSING: EventMap[string] = {
  label: 'Till closing',
  description:
    'A till’s closing was compared with its records, on arrival or because its state changed later.',
  group: GROUP,
  schema: {
    type: 'object',
    properties: {
      ok: { type: 'boolean', const: true },
      event_id: { type: 'integer' },
      state: { type: 'string', enum: ['matched', 'differs'] },
      duplicate: { type: 'boolean' },
      missing: { type: 'array', items: { type: 'string' } },
      unexpected: { type: 'array', items: { type: 'string' } },
      unexpected_count: {
        type: 'integer',
        description: 'How many are unexpected in all, where more are than are listed.',
      },
      differences: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            currency: { type: 'string' },
            field: {
              type: 'string',
              enum: ['sales.count', 'sales.total', 'refunds.count', 'refunds.total'],
            },
            till: MINOR_SUM,
            site: MINOR_SUM,
          },
        },
      },
      connection: envelope.connection,
    },
  },
  example: {
    ok: true,
    event_id: 1043,
    state: 'differs',
    duplicate: false,
    missing: ['till-1-000124'],
    unexpected: [],
    differences: [
      { currency: 'GBP', field: 'sales.count', till: 2, site: 1 },
      { currency: 'GBP', field: 'sales.total', till: 4396, site: 2598 },
    ],
    connection: { id: 1, name: 'Till 1' },
  },
};

const TILL_SILENT: EventMap[string] = {
  label: 'Till silent',
  description:
    'A live till was silent for longer than expected during its opening hours. Sent once until it contacts the site again.',
  group: GROUP,
  schema: {
    type: 'object',
    required: ['connection', 'silent_since', 'expected_every_minutes'],
    properties: {
      connection: { ...envelope.connection, required: ['id', 'name'] },
      silent_since: { type: 'string', format: 'date-time' },
      expected_every_minutes: { type: 'integer' },
    },
  },
  example: {
    connection: { id: 1, name: 'Front counter' },
    silent_since: '2026-11-22T12:04:00.000+00:00',
    expected_every_minutes: 30,
  },
};

/** `pos.sale`, `pos.refund`, `pos.inventory`, `pos.closing` and `pos.till_silent`, as any other plugin would declare them. */
export const declarePosEvents = (app: App): void => {
  declareEvents(app, {
    ...Object.fromEntries(RECORD_KINDS.map((kind) => [`pos.${kind}`, declaration(kind)])),
    'pos.closing': CLOSING,
    'pos.till_silent': TILL_SILENT,
  });
};
