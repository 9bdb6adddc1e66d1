import { RECORD_KINDS, type RecordKind } from '../states';
import type { SchemaNode } from './common';

/** The fields that a body of each kind must have. */
export const REQUIRED_FIELDS = {
  sale: ['external_id', 'occurred_at', 'currency', 'total', 'line_items'],
  refund: ['external_id', 'sale_external_id', 'occurred_at'],
  inventory: ['external_id', 'occurred_at', 'mode', 'counts'],
} as const satisfies Record<RecordKind, readonly string[]>;

/**
 * A refund may tell all that a sale has (`currency`, `total` and its lines) and still be none: it
 * names its sale, and a sale must not.
 */
const MAY_HAVE_ALL_OF: Readonly<Record<RecordKind, readonly RecordKind[]>> = {
  sale: [],
  refund: ['sale'],
  inventory: [],
};

/** The fields that a kind needs and another one does not: those that tell them apart. */
export const tellingFields = (kind: RecordKind, other: RecordKind): string[] =>
  REQUIRED_FIELDS[other].filter(
    (field) => !(REQUIRED_FIELDS[kind] as readonly string[]).includes(field)
  );

/** The kinds that a body of this kind must not be complete for. */
export const excludedKinds = (kind: RecordKind): RecordKind[] =>
  RECORD_KINDS.filter((other) => other !== kind && !MAY_HAVE_ALL_OF[kind].includes(other));

/**
 * The signature is over time and body, not over the path, so a body must be valid at one route only:
 * what was signed for one would else pass at another. One `not` for each other kind.
 */
export const noOtherKind = (kind: RecordKind): SchemaNode[] =>
  excludedKinds(kind).map((other) => ({
    not: {
      type: 'object',
      required: REQUIRED_FIELDS[other],
      // Named again for ajv's strict mode: it takes a required one it cannot see for a typo.
      properties: Object.fromEntries(REQUIRED_FIELDS[other].map((field) => [field, true])),
    },
  }));
