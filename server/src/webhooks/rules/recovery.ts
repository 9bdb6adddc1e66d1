import type { DeliveryStatus } from '../../../../shared/contracts/webhooks';

/** Deliveries of one recovery that are queued and have not had their first attempt since, at most. */
export const UNTRIED_AT_MOST = 100;
/** The limit for one webhook that cannot be sent now: each look of the recovery looks at them. */
const STUCK_AT_MOST = 1000;

const SOONEST_MS = 100;
const LATEST_MS = 5000;

/** A delivery that a recovery has queued, as it is now. */
export interface QueuedAgain {
  status: DeliveryStatus;
  tries: number;
  /** It waits for an attempt, or one is under way. */
  isDue: boolean;
}

/**
 * The outcome of a delivery's first attempt since a recovery queued it; null: none yet. Ended without one, or gone:
 * failed.
 * @param before its attempts when it was queued
 * @param now its current state; undefined if the log no longer has it
 * @param ends success of each logged attempt, oldest first; used only after several attempts
 */
export const firstOutcome = (
  before: number,
  now: QueuedAgain | undefined,
  ends: readonly boolean[]
): 'sent' | 'failed' | null => {
  if (!now) return 'failed';
  const since = now.tries - before;
  if (since <= 0) return now.status === 'pending' || now.isDue ? null : 'failed';
  if (since === 1) return now.status === 'sent' ? 'sent' : 'failed';
  return ends.at(-since) ? 'sent' : 'failed';
};

/**
 * How many deliveries of each webhook a recovery may queue: sendable webhooks share the limit of untried ones, so a
 * slow one does not delay the others.
 * @param served webhooks with something left to queue
 * @param untried queued, untried and sendable ones of each
 * @param stuck unsendable ones: inactive or paused webhook, or waiting for another
 */
export const roomOf = (
  served: readonly number[],
  untried: ReadonlyMap<number, number>,
  stuck: ReadonlyMap<number, number> = new Map()
): Map<number, number> => {
  let left = UNTRIED_AT_MOST;
  for (const count of untried.values()) left -= count;
  const share = Math.max(1, Math.floor(UNTRIED_AT_MOST / Math.max(1, served.length)));
  const room = new Map<number, number>();
  for (const webhook of served) {
    const own = Math.min(
      left,
      share - (untried.get(webhook) ?? 0),
      STUCK_AT_MOST - (stuck.get(webhook) ?? 0)
    );
    if (own <= 0) continue;
    room.set(webhook, own);
    left -= own;
  }
  return room;
};

/** Webhooks with too much queued that cannot be sent: among the limited `served` ones they would block others. */
export const fullOf = (stuck: ReadonlyMap<number, number>): number[] =>
  [...stuck].filter(([, count]) => count >= STUCK_AT_MOST).map(([webhook]) => webhook);

/** The next look at a recovery: soon after progress (`movedAt`: last queued item or attempt), then ever less often. */
export const nextLook = (now: number, movedAt: number): number =>
  now + Math.min(LATEST_MS, Math.max(SOONEST_MS, Math.round((now - movedAt) / 4)));
