import { CURRENCY_CODES } from '../currencies';
import { LIMITS, SCHEMA_IDS } from '../states';
import {
  BEYOND_SCHEMA,
  DRAFT,
  externalId,
  lineItem,
  locationRef,
  moneyAmount,
  occurredAt,
  type SchemaNode,
} from './common';
import { noOtherKind, REQUIRED_FIELDS } from './kinds';

/** `GET /schema/sale`: the document that `POST /sale` validates against (docs/contract-pos.md#sale). */
export const saleSchema: SchemaNode = {
  $schema: DRAFT,
  $id: SCHEMA_IDS.sale,
  title: 'Sale',
  description:
    'A completed sale. Fields that are not listed are accepted and kept, but not all that another ' +
    'kind of record needs: the signature does not say which kind was meant. ' +
    `${BEYOND_SCHEMA} location_ref is needed if the connection maps more than one location.`,
  type: 'object',
  required: REQUIRED_FIELDS.sale,
  allOf: noOtherKind('sale'),
  properties: {
    external_id: externalId,
    occurred_at: occurredAt,
    location_ref: locationRef,
    currency: {
      type: 'string',
      enum: CURRENCY_CODES,
      description: 'ISO 4217 code in upper case.',
    },
    total: moneyAmount('What the customer paid.'),
    line_items: {
      type: 'array',
      minItems: 1,
      maxItems: LIMITS.lines,
      items: { $ref: '#/$defs/line_item' },
      description: 'What was sold. An item may stand in several lines; they are added up.',
    },
    customer: {
      type: 'object',
      description: 'Who bought, if known. Used only to attach the order.',
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
};
