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
 * How the first attempt ended that a delivery had since a recovery queued it.
 * @param before its attempts when it was queued
 * @param now as it is; undefined: the log no longer has it
 * @param ends whether each of the attempts that the log has succeeded, oldest first; only looked at
 * where it had several since
 * @returns null: it had none yet. A delivery that ended without one, or is gone, failed.
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
 * How many more deliveries of each webhook a recovery may queue: the webhooks that can be sent to share
 * what may be untried at once, so that a slow one does not keep the others waiting.
 * @param served webhooks of which something is left to be queued
 * @param untried how many of each are queued and untried, and can be sent now
 * @param stuck how many cannot: their webhook is off or paused, or they wait for another
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

/**
 * The webhooks of which so much is queued and cannot be sent that nothing is added. They must not be among
 * the `served` ones, of which there is a limited number: they would keep the others waiting.
 */
export const fullOf = (stuck: ReadonlyMap<number, number>): number[] =>
  [...stuck].filter(([, count]) => count >= STUCK_AT_MOST).map(([webhook]) => webhook);

/**
 * When a recovery is to be looked at again: soon while it moves, less and less often while it does not.
 * @param movedAt when something of it was queued or had its attempt for the last time
 */
export const nextLook = (now: number, movedAt: number): number =>
  now + Math.min(LATEST_MS, Math.max(SOONEST_MS, Math.round((now - movedAt) / 4)));
