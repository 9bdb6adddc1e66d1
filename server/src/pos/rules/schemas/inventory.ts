import { INVENTORY_MODES, LIMITS, SCHEMA_IDS } from '../states';
import {
  BEYOND_SCHEMA,
  DRAFT,
  externalId,
  freeText,
  identifier,
  locationRef,
  occurredAt,
  type SchemaNode,
} from './common';
import { noOtherKind, REQUIRED_FIELDS } from './kinds';

/** `GET /schema/inventory`: the document that `POST /inventory` validates against (docs/contract-pos.md#inventory). */
export const inventorySchema: SchemaNode = {
  $schema: DRAFT,
  $id: SCHEMA_IDS.inventory,
  title: 'Inventory',
  description:
    'A stocktake count (absolute) or an adjustment such as breakage or a delivery (relative). ' +
    'Fields that are not listed are accepted and kept, but not all that another kind of record ' +
    `needs: the signature does not say which kind was meant. ${BEYOND_SCHEMA} In an absolute body ` +
    'no sku stands twice in counts, and occurred_at is at most 5 minutes ahead of its receipt. ' +
    'location_ref is needed if the connection maps more than one location.',
  type: 'object',
  required: REQUIRED_FIELDS.inventory,
  allOf: noOtherKind('inventory'),
  properties: {
    external_id: externalId,
    occurred_at: occurredAt,
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
  if: {
    required: ['mode'],
    properties: { mode: { type: 'string', const: 'absolute' } },
  },
  then: {
    properties: {
      counts: {
        type: 'array',
        items: {
          type: 'object',
          properties: { quantity: { type: 'integer', minimum: 0 } },
        },
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
};
