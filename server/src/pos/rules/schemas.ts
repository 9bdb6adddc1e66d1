import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';
import { OCCURRED_AT_PATTERN } from '../../stock/rules/occurred-at';
import {
  type ClosingTotals,
  type EventKind,
  INVENTORY_MODES,
  type InventoryMode,
  LIMITS,
  RECORD_KINDS,
  type RecordKind,
  schemaId,
} from './records';
import type { JsonObject } from './strict-json';

interface SchemaNode {
  readonly [keyword: string]: unknown;
}

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

/** No character of the Unicode category Cc. Hexadecimal escapes are what all dialects share. */
const NO_CONTROL_CHARACTERS = '^[^\\x00-\\x1F\\x7F-\\x9F]*$';

/** Line breaks and tabs may stand in free text; NUL may not (a database cannot store it). */
const FREE_TEXT = '^[^\\x00-\\x08\\x0B\\x0C\\x0E-\\x1F\\x7F]*$';

const identifier = (description: string): SchemaNode => ({
  type: 'string',
  minLength: 1,
  maxLength: LIMITS.idLength,
  pattern: NO_CONTROL_CHARACTERS,
  description,
});

const freeText = (description: string): SchemaNode => ({
  type: 'string',
  maxLength: LIMITS.reasonLength,
  pattern: FREE_TEXT,
  description,
});

const moneyAmount = (description: string): SchemaNode => ({
  type: 'integer',
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
  description: `${description} An integer in minor units, such as cents; never a fraction.`,
});

const occurredAt: SchemaNode = {
  type: 'string',
  pattern: OCCURRED_AT_PATTERN,
  description:
    'When it happened: ISO 8601 date and time with an explicit offset. Records are ordered by it, ' +
    'not by their arrival. The day must exist in the calendar.',
  examples: ['2025-03-01T14:05:00+01:00'],
};

const externalId = identifier(
  "The sender's own id of this record, the same in every retry. One connection uses an id once, " +
    'whatever the kind of record; letter case counts.'
);

const locationRef = identifier(
  'The location, as the connection maps it. Needed if the connection maps more than one.'
);

/** Rules for a body that a schema cannot express; part of each document's description. */
const BEYOND_SCHEMA =
  'Also checked, beyond this schema: the bytes are UTF-8 without a byte order mark and ' +
  `within the size that the site allows (${LIMITS.bodyBytes} bytes unless it says otherwise); no ` +
  `key appears twice in one object; objects and lists are nested at most ${LIMITS.depth} deep; ` +
  'whole numbers are whole as they are written (5.0 is, 1.00000000000000000001 is not); ids are ' +
  'valid Unicode; the day and time of occurred_at exist in the calendar; external_id is used once ' +
  'by a connection.';

/** One line of a sale or refund; used through `#/$defs/line_item` of each document. */
const lineItem: SchemaNode = {
  type: 'object',
  required: ['quantity'],
  // The properties are named again for ajv's strict mode: it takes a required one it cannot see for a typo.
  anyOf: [
    { properties: { sku: true }, required: ['sku'] },
    { properties: { gtin: true }, required: ['gtin'] },
  ],
  properties: {
    sku: identifier('The SKU. A line needs a sku, a gtin or both; the sku is looked up first.'),
    gtin: identifier('The GTIN barcode number, as a string.'),
    quantity: {
      type: 'integer',
      minimum: 1,
      maximum: LIMITS.quantity,
      description: 'How many; positive. Returned goods are a refund, not a negative sale.',
    },
    unit_price: moneyAmount('Recorded, not applied: the store owns the price.'),
  },
};

const lineItems = (description: string): SchemaNode => ({
  type: 'array',
  minItems: 1,
  maxItems: LIMITS.lines,
  items: { $ref: '#/$defs/line_item' },
  description,
});

/** `GET /schema/batch`; docs/contract-pos.md#batch. */
export const batchSchema: SchemaNode = {
  $schema: DRAFT,
  $id: schemaId('batch'),
  title: 'Batch',
  description:
    'Records that are sent together. Each body is judged by the schema of its kind and answered by ' +
    'itself: an invalid entry is refused in its place, and other entries are not affected. ' +
    'Also checked, beyond this schema: the bytes are UTF-8 without a byte order mark, at ' +
    `most ${LIMITS.batchBytes} in all; no key appears twice next to the records. Fields that are not ` +
    'listed are accepted, but not all that another route needs.',
  type: 'object',
  required: ['records'],
  properties: {
    records: {
      type: 'array',
      minItems: 1,
      maxItems: LIMITS.batch,
      items: {
        type: 'object',
        required: ['kind', 'body'],
        properties: {
          kind: { type: 'string', enum: RECORD_KINDS, description: 'The schema of the body.' },
          body: { type: 'object', description: 'The record, as its own route would take it.' },
        },
      },
    },
  },
  examples: [
    {
      records: [
        {
          kind: 'inventory',
          body: {
            external_id: 'count-2025-03-01',
            occurred_at: '2025-03-01T08:00:00+01:00',
            mode: 'absolute',
            counts: [{ sku: 'MUG-BLUE', quantity: 14 }],
          },
        },
        {
          kind: 'sale',
          body: {
            external_id: 'till-1-000123',
            occurred_at: '2025-03-01T14:05:00+01:00',
            currency: 'GBP',
            total: 1798,
            line_items: [{ sku: 'MUG-BLUE', quantity: 2, unit_price: 899 }],
          },
        },
      ],
    },
  ],
};

/** ISO 4217 list one: in use, funds, metals, testing (XTS) and "no currency" (XXX). */
const IN_USE =
  'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP ' +
  'BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB ' +
  'EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD ' +
  'JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP ' +
  'MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR ' +
  'RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND ' +
  'TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA ' +
  'XBB XBC XBD XCD XCG XDR XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWG';

/** ISO 4217 list three since 1999: a till with old software may go on printing them. */
const WITHDRAWN =
  'AFA ANG ATS AZM BEF BYR CSD CUC CYP DEM EEK ESP FIM FRF GHC GRD HRK IEP ITL LTL LUF LVL MGF ' +
  'MRO MTL MZM NLG PTE ROL SDD SIT SKK SLL SRG STD TMM TRL USS VEB VEF YUM ZMK ZWD ZWL ZWN ZWR';

/** Currency codes, withdrawn ones and those of the site's Node too: a wrong refusal loses a sale. */
export const CURRENCY_CODES: readonly string[] = [
  ...new Set([
    ...IN_USE.split(' '),
    ...WITHDRAWN.split(' '),
    ...Intl.supportedValuesOf('currency'),
  ]),
].sort();

const currency: SchemaNode = {
  type: 'string',
  enum: CURRENCY_CODES,
  description: 'ISO 4217 code in upper case.',
};

/** The fields that a body of each kind must have. */
export const REQUIRED_FIELDS = {
  sale: ['external_id', 'occurred_at', 'currency', 'total', 'line_items'],
  refund: ['external_id', 'sale_external_id', 'occurred_at'],
  inventory: ['external_id', 'occurred_at', 'mode', 'counts'],
  closing: ['external_id', 'occurred_at', 'from', 'to', 'totals'],
} as const satisfies Record<EventKind, readonly string[]>;

/** The fields that a kind requires and another does not: they distinguish the kinds. */
export const tellingFields = (kind: EventKind, other: RecordKind): string[] =>
  REQUIRED_FIELDS[other].filter(
    (field) => !(REQUIRED_FIELDS[kind] as readonly string[]).includes(field)
  );

/**
 * The kinds that a body of this kind must not be complete for. A refund may have everything of a sale and still be
 * none: it names its sale, and a sale must not. No kind excludes closings, which came later; they exclude all others.
 */
export const excludedKinds = (kind: EventKind): RecordKind[] =>
  RECORD_KINDS.filter((other) => other !== kind && !(kind === 'refund' && other === 'sale'));

/** A body must be valid at one route only, because the signature does not cover the path: one `not` per other kind. */
const noOtherKind = (kind: EventKind): SchemaNode[] =>
  excludedKinds(kind).map((other) => ({
    not: {
      type: 'object',
      required: REQUIRED_FIELDS[other],
      // Named again for ajv's strict mode: it takes a required one it cannot see for a typo.
      properties: Object.fromEntries(REQUIRED_FIELDS[other].map((field) => [field, true])),
    },
  }));

/** The document of a kind: of its own are its description, its further properties, and its examples. */
const recordSchema = (
  kind: EventKind,
  { description, properties, ...own }: SchemaNode & { properties: SchemaNode }
): SchemaNode => ({
  $schema: DRAFT,
  $id: schemaId(kind),
  title: kind.charAt(0).toUpperCase() + kind.slice(1),
  description,
  type: 'object',
  required: REQUIRED_FIELDS[kind],
  allOf: noOtherKind(kind),
  properties: { external_id: externalId, occurred_at: occurredAt, ...properties },
  ...own,
});

const sums = (what: string, total: SchemaNode): SchemaNode => {
  const limits = { minimum: 0, maximum: LIMITS.quantity };
  const count = { type: 'integer', ...limits, description: `How many ${what}.` };
  return { type: 'object', required: ['count', 'total'], properties: { count, total } };
};

const closingSchema = recordSchema('closing', {
  description:
    'The totals of a shift at the till: sums by currency, and the ids of its sales and refunds. The ' +
    'answer lists differences from the site. Fields that are not listed are accepted and kept, but ' +
    'not all that another kind of record needs: the signature does not say which kind was meant. ' +
    `${BEYOND_SCHEMA} A body has at most ${LIMITS.batchBytes} bytes; to is later than from, ` +
    'by 31 days and an hour at most, and no currency appears twice in totals.',
  properties: {
    from: {
      ...occurredAt,
      description: 'The beginning of the shift; records of then belong to it.',
    },
    to: { ...occurredAt, description: 'The end of the shift; records of then belong to the next.' },
    location_ref: {
      ...locationRef,
      description: 'The location of the till; kept with the closing.',
    },
    totals: {
      type: 'array',
      maxItems: LIMITS.closingCurrencies,
      description: 'Sums by currency. A currency that is left out had neither sales nor refunds.',
      items: {
        type: 'object',
        required: ['currency', 'sales', 'refunds'],
        properties: {
          currency,
          sales: sums('sales', moneyAmount('The total of the sales.')),
          refunds: sums('refunds', {
            ...moneyAmount('The total paid back; positive.'),
            minimum: 0,
          }),
        },
      },
    },
    external_ids: {
      type: 'array',
      maxItems: LIMITS.closingIds,
      items: identifier('The external_id of a sale or refund.'),
      description:
        'Every sale and refund of the shift. Left out: the answer has neither missing nor unexpected.',
    },
  },
  examples: [
    {
      external_id: 'till-1-z-000031',
      occurred_at: '2025-03-01T18:05:00+01:00',
      from: '2025-03-01T09:00:00+01:00',
      to: '2025-03-01T18:00:00+01:00',
      totals: [
        { currency: 'GBP', sales: { count: 2, total: 4396 }, refunds: { count: 1, total: 899 } },
      ],
      external_ids: ['till-1-000123', 'till-1-000124', 'till-1-r-000007'],
    },
  ],
});

const inventorySchema = recordSchema('inventory', {
  description:
    'A stocktake count (absolute) or an adjustment such as breakage or a delivery (relative). ' +
    'Fields that are not listed are accepted and kept, but not all that another kind of record ' +
    `needs: the signature does not say which kind was meant. ${BEYOND_SCHEMA} In an absolute body ` +
    'no sku appears twice in counts, and occurred_at is at most 5 minutes ahead of its receipt. ' +
    'location_ref is needed if the connection maps more than one location.',
  properties: {
    location_ref: locationRef,
    mode: {
      type: 'string',
      enum: INVENTORY_MODES,
      description:
        'absolute: the shelf held this many at occurred_at. relative: this many came or went. ' +
        'An absolute body names each sku once and is dated at most 5 minutes ahead.',
    },
    counts: {
      type: 'array',
      minItems: 1,
      maxItems: LIMITS.counts,
      items: {
        type: 'object',
        required: ['sku', 'quantity'],
        properties: {
          sku: identifier('The SKU.'),
          quantity: {
            type: 'integer',
            minimum: -LIMITS.quantity,
            maximum: LIMITS.quantity,
            description: 'How many; negative only in relative mode.',
          },
          reason: freeText('Why, in free words, for example on an adjustment.'),
        },
      },
    },
  },
  if: { required: ['mode'], properties: { mode: { type: 'string', const: 'absolute' } } },
  then: {
    properties: {
      counts: {
        type: 'array',
        items: { type: 'object', properties: { quantity: { type: 'integer', minimum: 0 } } },
      },
    },
  },
  examples: [
    {
      external_id: 'count-2025-03-01',
      occurred_at: '2025-03-01T20:00:00+01:00',
      location_ref: 'main-street',
      mode: 'absolute',
      counts: [
        { sku: 'MUG-BLUE', quantity: 14 },
        { sku: 'MUG-RED', quantity: 0 },
      ],
    },
    {
      external_id: 'adj-000042',
      occurred_at: '2025-03-02T08:15:00+01:00',
      mode: 'relative',
      counts: [
        { sku: 'MUG-BLUE', quantity: -1, reason: 'Breakage' },
        { sku: 'MUG-RED', quantity: 24, reason: 'Delivery' },
      ],
    },
  ],
});

const refundSchema = recordSchema('refund', {
  description:
    'A refund of a whole sale or of some of its lines. It may come before its sale. ' +
    'Fields that are not listed are accepted and kept (it may carry the currency and total of what ' +
    'was paid back), but not all that an inventory message needs: the signature does not say which ' +
    `kind was meant. ${BEYOND_SCHEMA}`,
  properties: {
    sale_external_id: identifier('The external_id of the sale that is refunded.'),
    location_ref: {
      ...locationRef,
      description:
        'The location of the return, as the connection maps it. Default: the location of the sale.',
    },
    reason: freeText('Why, in free words.'),
    restock: {
      type: 'boolean',
      default: true,
      description: 'false for damaged goods that do not go back on the shelf.',
    },
    line_items: lineItems('The returned lines. Left out: everything the sale still has.'),
  },
  $defs: { line_item: lineItem },
  examples: [
    {
      external_id: 'till-1-r-000007',
      sale_external_id: 'till-1-000123',
      occurred_at: '2025-03-02T10:30:00+01:00',
      reason: 'Handle broken',
      restock: false,
      line_items: [{ sku: 'MUG-BLUE', quantity: 1 }],
    },
    {
      external_id: 'till-1-r-000008',
      sale_external_id: 'till-1-000124',
      occurred_at: '2025-03-02T11:00:00+01:00',
    },
  ],
});

const saleSchema = recordSchema('sale', {
  description:
    'A completed sale. Fields that are not listed are accepted and kept, but not all that another ' +
    'kind of record needs: the signature does not say which kind was meant. ' +
    `${BEYOND_SCHEMA} location_ref is needed if the connection maps more than one location.`,
  properties: {
    location_ref: locationRef,
    currency,
    total: moneyAmount('The total that the customer paid.'),
    line_items: lineItems('The sold lines. An item may have several lines; they are added up.'),
    customer: {
      type: 'object',
      description: 'The customer, if known. Used only to attach the order.',
    },
    meta: { type: 'object', description: 'Anything else; stored verbatim and shown in the log.' },
  },
  $defs: { line_item: lineItem },
  examples: [
    {
      external_id: 'till-1-000123',
      occurred_at: '2025-03-01T14:05:00+01:00',
      location_ref: 'main-street',
      currency: 'GBP',
      total: 2598,
      line_items: [
        { sku: 'MUG-BLUE', quantity: 2, unit_price: 899 },
        { gtin: '4006381333931', quantity: 1, unit_price: 800 },
      ],
      customer: { email: 'ada@example.com' },
      meta: { cashier: 'Ada' },
    },
  ],
});

/** The published documents, by kind; the very objects that the validators are compiled from. */
export const RECORD_SCHEMAS = {
  sale: saleSchema,
  refund: refundSchema,
  inventory: inventorySchema,
} as const satisfies Record<RecordKind, SchemaNode>;

/** Every document under `/schema`, by the last part of its path. */
export const PUBLISHED_SCHEMAS = {
  ...RECORD_SCHEMAS,
  closing: closingSchema,
  batch: batchSchema,
} as const;

/** The bodies as the schemas let them through. */
export interface WireLine {
  sku?: string;
  gtin?: string;
  quantity: number;
  unit_price?: number;
}
type WireBody<Own> = Own & { external_id: string; occurred_at: string; location_ref?: string };

export interface WireBodies {
  sale: WireBody<{
    currency: string;
    total: number;
    line_items: WireLine[];
    customer?: JsonObject;
    meta?: JsonObject;
  }>;
  refund: WireBody<{
    currency?: unknown;
    total?: unknown;
    sale_external_id: string;
    reason?: string;
    restock?: boolean;
    line_items?: WireLine[];
  }>;
  inventory: WireBody<{
    mode: InventoryMode;
    counts: { sku: string; quantity: number; reason?: string }[];
  }>;
  closing: WireBody<{ from: string; to: string; totals: ClosingTotals[]; external_ids?: string[] }>;
}

const ajv = new Ajv2020({ strict: true, allErrors: false, verbose: true });

/** Compiled from the published documents themselves; each tells what a body is when it passes. */
export const VALIDATORS: { readonly [K in EventKind]: ValidateFunction<WireBodies[K]> } = {
  sale: ajv.compile<WireBodies['sale']>(saleSchema),
  refund: ajv.compile<WireBodies['refund']>(refundSchema),
  inventory: ajv.compile<WireBodies['inventory']>(inventorySchema),
  closing: ajv.compile<WireBodies['closing']>(closingSchema),
};
