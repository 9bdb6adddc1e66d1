import { LIMITS, RECORD_KINDS, SCHEMA_IDS } from '../states';
import { DRAFT, type SchemaNode } from './common';

/** `GET /schema/batch`: what `POST /batch` takes (docs/contract-pos.md#batch). */
export const batchSchema: SchemaNode = {
  $schema: DRAFT,
  $id: SCHEMA_IDS.batch,
  title: 'Batch',
  description:
    'Records that are sent together. Each body is judged by the schema of its kind and answered by ' +
    'itself: an entry that does not fit is refused in its place and never refuses its neighbours. ' +
    'What no schema can say is checked as well: the bytes are UTF-8 without a byte order mark, at ' +
    `most ${LIMITS.batchBytes} in all; no key stands twice beside the records. Fields that are not ` +
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
