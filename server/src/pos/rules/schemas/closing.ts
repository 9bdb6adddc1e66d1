import { CURRENCY_CODES } from '../currencies';
import { LIMITS, SCHEMA_IDS } from '../states';
import {
  BEYOND_SCHEMA,
  DRAFT,
  externalId,
  identifier,
  locationRef,
  moneyAmount,
  occurredAt,
  type SchemaNode,
} from './common';
import { noOtherKind, REQUIRED_FIELDS } from './kinds';

const count = (description: string): SchemaNode => ({
  type: 'integer',
  minimum: 0,
  maximum: LIMITS.quantity,
  description,
});

const sums = (what: string, total: SchemaNode): SchemaNode => ({
  type: 'object',
  required: ['count', 'total'],
  properties: { count: count(`How many ${what}.`), total },
});

/** `GET /schema/closing`: the document that `POST /closing` validates against (docs/contract-pos.md#closing). */
export const closingSchema: SchemaNode = {
  $schema: DRAFT,
  $id: SCHEMA_IDS.closing,
  title: 'Closing',
  description:
    'What a till believes of its shift: sums by currency, and the ids of its sales and refunds. The ' +
    'answer says what the site has otherwise. Fields that are not listed are accepted and kept, but ' +
    'not all that another kind of record needs: the signature does not say which kind was meant. ' +
    `${BEYOND_SCHEMA} A body has at most ${LIMITS.batchBytes} bytes; to is later than from, ` +
    'by 31 days and an hour at most, and no currency stands twice in totals.',
  type: 'object',
  required: REQUIRED_FIELDS.closing,
  allOf: noOtherKind('closing'),
  properties: {
    external_id: externalId,
    occurred_at: occurredAt,
    from: {
      ...occurredAt,
      description: 'The beginning of the shift; records of then belong to it.',
    },
    to: { ...occurredAt, description: 'The end of the shift; records of then belong to the next.' },
    location_ref: { ...locationRef, description: 'Where the till stands; kept with the closing.' },
    totals: {
      type: 'array',
      maxItems: LIMITS.closingCurrencies,
      description: 'Sums by currency. A currency that is left out had neither sales nor refunds.',
      items: {
        type: 'object',
        required: ['currency', 'sales', 'refunds'],
        properties: {
          currency: {
            type: 'string',
            enum: CURRENCY_CODES,
            description: 'ISO 4217 code in upper case.',
          },
          sales: sums('sales', moneyAmount('What was sold.')),
          refunds: sums('refunds', {
            ...moneyAmount('What was paid back; positive.'),
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
};
