import type { OpenHours } from '../../../../shared/contracts/pos';
import { isOpenAt, openMinutesBetween } from '../rules/open-hours';
import type { ConnectionRow } from '../tables';

/** What is looked at in a connection to tell whether it is silent. */
export type WatchedRow = Pick<
  ConnectionRow,
  | 'mode'
  | 'active'
  | 'revoked_at'
  | 'deleted_at'
  | 'created_at'
  | 'last_seen_at'
  | 'expected_every_minutes'
  | 'open_hours'
  | 'watched_from'
  | 'silent_since'
>;

export const openHoursOf = ({ open_hours: text }: Pick<ConnectionRow, 'open_hours'>) =>
  text ? (JSON.parse(text) as OpenHours[] | null) : null;

/** How often it should be heard of and when; null where it is never silent. */
const expectationOf = (row: WatchedRow): { minutes: number; hours: OpenHours[] } | null => {
  const isOff = row.mode !== 'live' || !row.active || row.revoked_at !== null;
  const hours = openHoursOf(row);
  if (isOff || row.deleted_at !== null || row.expected_every_minutes === null) return null;
  return hours === null ? null : { minutes: Number(row.expected_every_minutes), hours };
};

/**
 * The instant from which its silence is counted, epoch milliseconds: its last request, or when it was
 * made, live or on, where that was later.
 */
export const countedFrom = (row: WatchedRow): number =>
  Math.max(Number(row.last_seen_at ?? row.created_at), Number(row.watched_from ?? 0));

/** Whether its silence was told; heard of again, it is another one. */
const isTold = (row: WatchedRow): boolean =>
  row.silent_since !== null && Number(row.silent_since) >= countedFrom(row);

/** Whether somebody has to be told now that a connection is silent. */
export const isNewlySilent = (row: WatchedRow, zone: string, now: number): boolean => {
  const expected = expectationOf(row);
  if (!expected || isTold(row) || !isOpenAt(expected.hours, zone, now)) return false;
  const { minutes, hours } = expected;
  return openMinutesBetween(hours, zone, countedFrom(row), now, minutes) > minutes;
};

/** When a connection was last heard of, or since when it should have been. */
export const lastHeard = (row: WatchedRow): number =>
  row.last_seen_at === null ? countedFrom(row) : Number(row.last_seen_at);

/** Since when a connection is said to be silent, epoch milliseconds; null while nothing is said. */
export const silentSince = (row: WatchedRow, zone: string, now: number): number | null => {
  const expected = expectationOf(row);
  const isSaid = expected !== null && isTold(row) && isOpenAt(expected.hours, zone, now);
  return isSaid ? lastHeard(row) : null;
};
