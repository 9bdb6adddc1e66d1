import type { LeasedRows } from '../../../database/lease-types';
import { LEASE_MS } from './lease-times';

const EVERY_MS = 1000;
/** A lease that ended less long ago may be one that is being prolonged. */
const SLACK_MS = 250;
/** What ended longer ago is as old as what has come since. */
const LONGEST_MS = 30_000;
/** What two processes take for the time differs a little. */
const OVERLAP_MS = 2000;
const WEBHOOKS_AT_ONCE = 50;
const ROWS_AT_ONCE = 1000;

/**
 * What a process held that died is due when its lease ends: behind everything that was queued before. Where
 * a webhook has so much to do that it would wait, it gets back its place. Each sweep reads what became due
 * of such webhooks since the last one.
 */
export const createLapsedSweep = (
  leased: Pick<LeasedRows, 'now' | 'releaseLapsed'>
): ((due: ReadonlyMap<number, number>) => Promise<void>) => {
  let swept = Number.NEGATIVE_INFINITY;
  return async (due) => {
    const now = leased.now();
    const until = now - SLACK_MS;
    // The clock may have gone back.
    if (Math.abs(until - swept) < EVERY_MS) return;
    const since = swept <= until ? swept - OVERLAP_MS : Number.NEGATIVE_INFINITY;
    const from = Math.max(since, now - LONGEST_MS);
    swept = until;
    const behind = [...due].filter(([, at]) => at < now - LEASE_MS).sort((a, b) => a[1] - b[1]);
    for (const [webhook] of behind.slice(0, WEBHOOKS_AT_ONCE)) {
      await leased.releaseLapsed(webhook, { from, until }, ROWS_AT_ONCE);
    }
  };
};
