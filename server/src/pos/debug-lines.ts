import { isoTime } from '../runtime/iso-time';
import type { Lease } from '../scheduling/types';
import type { Acceptance } from './intake/accept';
import type { Submission } from './intake/submission';
import { type EventState, stateAfter, WAITING_STATES } from './rules/states';
import type { ProcessingContext } from './processing/processing-context';

/**
 * What the log says of a till's record at the level `debug`, in the order in which it happens: the
 * `event_id` that the till was answered, states and times, and nothing that the till sent.
 * docs/operations.md#one-record-in-the-log.
 */

export const acceptedLine = ({ connection, record }: Submission, given: Acceptance): string => {
  switch (given.outcome) {
    case 'accepted':
      return `POS event ${given.eventId} accepted: ${record.kind} of connection ${connection.id}`;
    case 'duplicate':
      return `POS event ${given.eventId} was sent again by connection ${connection.id}`;
    case 'invalid':
      return `${record.kind} of connection ${connection.id} refused: schema_invalid`;
    case 'stale':
      return `${record.kind} of connection ${connection.id} refused: stale_count`;
  }
};

export const claimedLine = ({ id, leaseUntil }: Lease): string =>
  `POS event ${id} claimed, lease until ${isoTime(leaseUntil)}`;

/** Why an event that was claimed is not applied now. */
export const unappliedLine = (id: number, why: 'no time left' | 'lease lost'): string =>
  `POS event ${id} not applied: ${why}`;

const isWaiting = (state: EventState): boolean =>
  (WAITING_STATES as readonly EventState[]).includes(state);

/** A relative of an event is spoken of only where it came out otherwise than before. */
export const isNews = ({ mine, row, state }: ProcessingContext): boolean =>
  mine || stateAfter(row.state, state) !== row.state;

/** @param dueAt when it is looked at again by itself, epoch milliseconds; null: never */
export const settledLine = (
  { id, row, state }: ProcessingContext,
  dueAt: number | null
): string => {
  const after = stateAfter(row.state, state);
  const again = dueAt === null ? '' : `, due again at ${isoTime(dueAt)}`;
  return `POS event ${id} ${isWaiting(after) ? 'waits:' : 'is'} ${after}${again}`;
};

/** @param dueAt when it is tried again; null: its owner has to have it processed */
export const failedLine = (id: number, tries: number, dueAt: number | null): string =>
  `POS event ${id} failed on try ${tries}, ${dueAt === null ? 'the last' : `due again at ${isoTime(dueAt)}`}`;

export const wokenLine = (id: number): string => `POS event ${id} woken`;
