import { isoTime } from '../runtime/text';
import type { LeasedDelivery } from './deliveries/store';
import type { NewDelivery } from './publish';
import type { LoggedAttempt } from './deliveries/attempts';
import type { NextState } from './rules/delivery-state';
import type { WebhookRow } from './tables';

/** A delivery's `debug` log lines, in order: ids, states, causes, times. docs/logs.md#one-delivery-in-the-log */

export const queuedLine = ({ deliveryId, event, isTest, webhook }: NewDelivery): string =>
  `delivery ${deliveryId} queued: ${isTest ? 'a test with ' : ''}${event} for webhook ${webhook}`;

const nameOf = ({ delivery }: LeasedDelivery): string => `delivery ${delivery.deliveryId}`;

export const claimedLine = (lease: LeasedDelivery): string =>
  `${nameOf(lease)} claimed for attempt ${lease.delivery.tries + 1}, lease until ${isoTime(lease.leaseUntil)}`;

/** Why a delivery that was claimed is not sent now. */
export type UnsentReason =
  | 'no time left'
  | 'given back'
  | 'webhook deleted'
  | 'webhook switched off'
  | 'webhook paused'
  | 'module switched off';

export const unsentLine = (lease: LeasedDelivery, why: UnsentReason): string =>
  `${nameOf(lease)} not sent: ${why}`;

export const startedLine = (id: string, { id: webhook }: WebhookRow, manual: boolean): string =>
  `delivery ${id}: attempt started${manual ? ' by hand' : ''}, to webhook ${webhook}`;

export const endedLine = (id: string, { status, duration_ms: took, error }: LoggedAttempt) =>
  `delivery ${id}: attempt ended after ${took} ms: ${error ?? 'delivered'}, status ${status ?? 'none'}`;

/** @param held whether the lease still held, so that the outcome counts */
export const recordedLine = (
  lease: LeasedDelivery,
  { status, tries, nextAttemptAt }: NextState,
  held: boolean
): string => {
  if (!held) return `${nameOf(lease)} not recorded: its lease was lost`;
  const again = nextAttemptAt === null ? '' : `, due again at ${isoTime(nextAttemptAt)}`;
  return `${nameOf(lease)} recorded: ${status} after ${tries} ${tries === 1 ? 'attempt' : 'attempts'}${again}`;
};

export const switchedOffLine = (webhook: { id: number }): string =>
  `webhook ${webhook.id} switched off: its deliveries stay queued`;
