import { LIMITS, SCHEMA_IDS } from '../states';
import {
  BEYOND_SCHEMA,
  DRAFT,
  externalId,
  freeText,
  identifier,
  lineItem,
  locationRef,
  occurredAt,
  type SchemaNode,
} from './common';
import { noOtherKind, REQUIRED_FIELDS } from './kinds';

/** `GET /schema/refund`: the document that `POST /refund` validates against (docs/contract-pos.md#refund). */
export const refundSchema: SchemaNode = {
  $schema: DRAFT,
  $id: SCHEMA_IDS.refund,
  title: 'Refund',
  description:
    'A refund of a whole sale or of some of its lines. It may come before its sale. ' +
    'Fields that are not listed are accepted and kept (it may carry the currency and total of what ' +
    'was paid back), but not all that an inventory message needs: the signature does not say which ' +
    `kind was meant. ${BEYOND_SCHEMA}`,
  type: 'object',
  required: REQUIRED_FIELDS.refund,
  allOf: noOtherKind('refund'),
  properties: {
    external_id: externalId,
    sale_external_id: identifier('The external_id of the sale that is refunded.'),
    occurred_at: occurredAt,
    location_ref: {
      ...locationRef,
      description:
        'Where the goods came back, as the connection maps it. Default: where the sale was.',
    },
    reason: freeText('Why, in free words.'),
    restock: {
      type: 'boolean',
      default: true,
      description: 'false for damaged goods that do not go back on the shelf.',
    },
    line_items: {
      type: 'array',
      minItems: 1,
      maxItems: LIMITS.lines,
      items: { $ref: '#/$defs/line_item' },
      description: 'What came back. Left out: everything the sale still has.',
    },
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
};
