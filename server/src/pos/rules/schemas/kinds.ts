import { type EventKind, RECORD_KINDS, type RecordKind } from '../states';
import type { SchemaNode } from './common';

/** The fields that a body of each kind must have. */
export const REQUIRED_FIELDS = {
  sale: ['external_id', 'occurred_at', 'currency', 'total', 'line_items'],
  refund: ['external_id', 'sale_external_id', 'occurred_at'],
  inventory: ['external_id', 'occurred_at', 'mode', 'counts'],
  closing: ['external_id', 'occurred_at', 'from', 'to', 'totals'],
} as const satisfies Record<EventKind, readonly string[]>;

/**
 * A refund may tell all that a sale has (`currency`, `total` and its lines) and still be none: it
 * names its sale, and a sale must not.
 */
const MAY_HAVE_ALL_OF: Readonly<Record<EventKind, readonly RecordKind[]>> = {
  sale: [],
  refund: ['sale'],
  inventory: [],
  closing: [],
};

/** The fields that a kind needs and another one does not: those that tell them apart. */
export const tellingFields = (kind: EventKind, other: RecordKind): string[] =>
  REQUIRED_FIELDS[other].filter(
    (field) => !(REQUIRED_FIELDS[kind] as readonly string[]).includes(field)
  );

/**
 * The kinds that a body of this kind must not be complete for. None excludes closings, which came
 * later: what was a sale stays one, and a closing excludes the others.
 */
export const excludedKinds = (kind: EventKind): RecordKind[] =>
  RECORD_KINDS.filter((other) => other !== kind && !MAY_HAVE_ALL_OF[kind].includes(other));

/**
 * The signature is over time and body, not over the path, so a body must be valid at one route only:
 * what was signed for one would else pass at another. One `not` for each other kind.
 */
export const noOtherKind = (kind: EventKind): SchemaNode[] =>
  excludedKinds(kind).map((other) => ({
    not: {
      type: 'object',
      required: REQUIRED_FIELDS[other],
      // Named again for ajv's strict mode: it takes a required one it cannot see for a typo.
      properties: Object.fromEntries(REQUIRED_FIELDS[other].map((field) => [field, true])),
    },
  }));
