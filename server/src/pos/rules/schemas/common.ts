import { OCCURRED_AT_PATTERN } from '../../../stock/rules/occurred-at';
import { LIMITS } from '../states';

/** A JSON Schema document or a part of one. */
export interface SchemaNode {
  readonly [keyword: string]: unknown;
}

export const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

/** No character of the Unicode category Cc. Hexadecimal escapes are what all dialects share. */
const NO_CONTROL_CHARACTERS = '^[^\\x00-\\x1F\\x7F-\\x9F]*$';

/** Line breaks and tabs may stand in free text; NUL may not (a database cannot store it). */
const FREE_TEXT = '^[^\\x00-\\x08\\x0B\\x0C\\x0E-\\x1F\\x7F]*$';

export const identifier = (description: string): SchemaNode => ({
  type: 'string',
  minLength: 1,
  maxLength: LIMITS.idLength,
  pattern: NO_CONTROL_CHARACTERS,
  description,
});

export const freeText = (description: string): SchemaNode => ({
  type: 'string',
  maxLength: LIMITS.reasonLength,
  pattern: FREE_TEXT,
  description,
});

export const moneyAmount = (description: string): SchemaNode => ({
  type: 'integer',
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
  description: `${description} An integer in minor units, such as cents; never a fraction.`,
});

export const occurredAt: SchemaNode = {
  type: 'string',
  pattern: OCCURRED_AT_PATTERN,
  description:
    'When it happened: ISO 8601 date and time with an explicit offset. Records are ordered by it, ' +
    'not by their arrival. The day must exist in the calendar.',
  examples: ['2025-03-01T14:05:00+01:00'],
};

export const externalId = identifier(
  "The sender's own id of this record, the same in every retry. One connection uses an id once, " +
    'whatever the kind of record; letter case counts.'
);

export const locationRef = identifier(
  'The location, as the connection maps it. Needed if the connection maps more than one.'
);

/** What a body must keep to beyond what a schema can say; part of each document's description. */
export const BEYOND_SCHEMA =
  'What no schema can say is checked as well: the bytes are UTF-8 without a byte order mark and ' +
  `within the size that the site allows (${LIMITS.bodyBytes} bytes unless it says otherwise); no ` +
  `key stands twice in one object; objects and lists are nested at most ${LIMITS.depth} deep; ` +
  'whole numbers are whole as they are written (5.0 is, 1.00000000000000000001 is not); ids are ' +
  'valid Unicode; the day and time of occurred_at exist in the calendar; external_id is used once ' +
  'by a connection.';

/** One line of a sale or refund; used through `#/$defs/line_item` of each document. */
export const lineItem: SchemaNode = {
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
      description: 'How many; positive. What comes back is a refund, not a negative sale.',
    },
    unit_price: moneyAmount('Recorded, not applied: the store owns the price.'),
  },
};
