import type { OpenHours } from '../../../shared/contracts/pos';
import { isoTime, logFailure } from '../runtime/text';
import { getPublisher } from '../webhooks/publish';
import { mailOwner } from '../webhooks/alarms';
import { timeZoneOf } from './sales-figures';
import { isOpenAt, openMinutesBetween } from './rules/shop-time';
import { type ConnectionRow, CONNECTIONS_TABLE } from './tables';
import type { App } from '../app';

export const openHoursOf = ({ open_hours: text }: Pick<ConnectionRow, 'open_hours'>) =>
  text ? (JSON.parse(text) as OpenHours[] | null) : null;

const expectationOf = (row: ConnectionRow): { minutes: number; hours: OpenHours[] } | null => {
  const isOff = row.mode !== 'live' || !row.active || row.revoked_at !== null;
  const hours = openHoursOf(row);
  if (isOff || row.deleted_at !== null || row.expected_every_minutes === null) return null;
  return hours === null ? null : { minutes: Number(row.expected_every_minutes), hours };
};

/** Start of a silence, epoch milliseconds: the last request, or when it was created, live or activated, if later. */
export const countedFrom = (row: ConnectionRow): number =>
  Math.max(Number(row.last_seen_at ?? row.created_at), Number(row.watched_from ?? 0));

/** True if its current silence was reported; any request ends a silence. */
const isReported = (row: ConnectionRow): boolean =>
  row.silent_since !== null && Number(row.silent_since) >= countedFrom(row);

/** True if a connection is silent and that was not reported yet. */
export const isNewlySilent = (row: ConnectionRow, zone: string, now: number): boolean => {
  const expected = expectationOf(row);
  if (!expected || isReported(row) || !isOpenAt(expected.hours, zone, now)) return false;
  const { minutes, hours } = expected;
  return openMinutesBetween(hours, zone, countedFrom(row), now, minutes) > minutes;
};

const lastHeard = (row: ConnectionRow): number =>
  row.last_seen_at === null ? countedFrom(row) : Number(row.last_seen_at);

/** Start of a connection's reported silence, epoch milliseconds; null if none is reported. */
export const silentSince = (row: ConnectionRow, zone: string, now: number): number | null => {
  const expected = expectationOf(row);
  const isSaid = expected !== null && isReported(row) && isOpenAt(expected.hours, zone, now);
  return isSaid ? lastHeard(row) : null;
};

/**
 * Marks the silence and publishes its event together; true if this call did. If several nodes or the till's next
 * request compete, the first changes the row, and it no longer matches for the others.
 */
const tellOnce = (app: App, row: ConnectionRow): Promise<boolean> =>
  app.db.retrying(async (tx) => {
    const from = countedFrom(row);
    const marked = (await tx
      .table(CONNECTIONS_TABLE)
      .where({
        id: row.id,
        last_seen_at: row.last_seen_at,
        watched_from: row.watched_from,
        expected_every_minutes: row.expected_every_minutes,
        active: true,
      })
      .where((untold) => {
        untold.whereNull('silent_since').orWhere('silent_since', '<', from);
      })
      .update({ silent_since: from })) as number;
    if (marked === 0) return false;
    const data = {
      connection: { id: Number(row.id), name: row.name },
      silent_since: isoTime(lastHeard(row)),
      expected_every_minutes: Number(row.expected_every_minutes),
    };
    const subject = { type: 'till', id: String(row.id), label: row.name } as const;
    await getPublisher(app).publish([{ event: 'pos.till_silent', data, subject }]);
    return true;
  });

const shopTime = (at: number, zone: string): string =>
  `${new Intl.DateTimeFormat('en-GB', { timeZone: zone, dateStyle: 'medium', timeStyle: 'short' }).format(at)} (${zone})`;

const announce = (app: App, row: ConnectionRow, zone: string): void => {
  const since = `has been silent since ${shopTime(lastHeard(row), zone)}`;
  const reason = `${row.name} ${since}; expected every ${row.expected_every_minutes} minutes.`;
  app.log.warn(`switchboard: till connection ${row.id}: ${reason}`);
  mailOwner(app, {
    about: 'a till',
    subject: `The till "${row.name}" is silent`,
    text: `${reason}\n\nYou will not be notified again until the till has contacted the site.`,
  });
};

const look = async (app: App): Promise<void> => {
  const zone = timeZoneOf(app);
  const now = app.clock.now();
  const db = await app.db.current();
  // Most sites have none that may be silent: then each look costs only this statement.
  const watched: ConnectionRow[] = await db
    .table(CONNECTIONS_TABLE)
    .whereNotNull('expected_every_minutes')
    .where({ mode: 'live', active: true, revoked_at: null, deleted_at: null })
    .orderBy('id');
  for (const row of watched) {
    if (app.site.isForeign(row) || !isNewlySilent(row, zone, now)) continue;
    if (await tellOnce(app, row)) announce(app, row, zone);
  }
};

/** Reports every connection that was silent for longer than expected: once, on any number of nodes. */
export const tellOfSilentTills = (app: App): Promise<void> =>
  // The next look comes soon, and finds what this one did not tell.
  look(app).catch(logFailure(app, 'the check for silent tills failed'));
