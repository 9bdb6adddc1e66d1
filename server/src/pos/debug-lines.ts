import { isoTime } from '../runtime/text';
import type { Lease } from '../database/lease-types';
import { isWaiting, stateAfter } from './rules/states';
import type { ProcessingContext } from './processing/processing-context';

export const claimedLine = ({ id, leaseUntil }: Lease): string =>
  `POS event ${id} claimed, lease until ${isoTime(leaseUntil)}`;

/** Why an event that was claimed is not applied now. */
export const unappliedLine = (id: number, why: 'no time left' | 'lease lost'): string =>
  `POS event ${id} not applied: ${why}`;

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
