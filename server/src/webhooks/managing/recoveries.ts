import { randomUUID } from 'node:crypto';
import { errors } from '@strapi/utils';
import type {
  Page,
  Recovery,
  RecoveryFilter,
  RecoveryPreview,
  Webhook,
} from '../../../../shared/contracts/webhooks';
import { firstOrNotFound } from '../../database/retry';
import { type PageRequest, readList } from '../../http/pagination';
import { Refused } from '../../runtime/refusal';
import { isoTime, isoTimeOrNull } from '../../runtime/text';
import { deliveriesAt, matchingDeliveries } from '../deliveries/log';
import { isAfter, type LogPlace } from '../deliveries/log-filter';
import { JOURNAL_TABLE, matchingEntries, type ReplayRange } from '../journal';
import { announceRecoveries, lockRecovery, recoveries, started } from '../recoveries/job';
import { matchingOf, type ReplayFilter } from '../recoveries/sources';
import { DELIVERIES_TABLE, type RecoveryKind, type RecoveryRow } from '../tables';
import type { Replay } from './inputs';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** Sending failed deliveries again, many at a time; docs/contract-webhooks.md#recoveries. Unknown ids: 404. */

const SAMPLE = 10;

const PREVIEW_USED = new Refused(
  'This preview was started before. Make another one.',
  'preview_used'
);
const ENDED = new Refused('This recovery has ended.', 'recovery_ended');

const byToken = async (db: Db, token: string): Promise<RecoveryRow | undefined> =>
  (await recoveries(db).where({ token }).first()) as RecoveryRow | undefined;

/** Stores a preview, or a recovery that begins now. @param filter as its source understands it */
const insertRecovery = (
  app: App,
  { filter, ...given }: { kind: RecoveryKind; filter: unknown; boundary: number; matching: number },
  state: 'preview' | 'running'
): Promise<RecoveryRow> =>
  app.db.retrying(async (tx) => {
    const token = randomUUID();
    const at = app.clock.now();
    await recoveries(tx).insert({
      ...given,
      token,
      state,
      filter: JSON.stringify(filter),
      queued: 0,
      sent: 0,
      failed: 0,
      created_at: at,
      moved_at: at,
      due_at: state === 'running' ? at : null,
    });
    return (await byToken(tx, token)) as RecoveryRow;
  });

const toRecovery = (row: RecoveryRow): Recovery => ({
  id: Number(row.id),
  state: row.state as Recovery['state'],
  matching: Number(row.matching),
  queued: Number(row.queued),
  sent: Number(row.sent),
  failed: Number(row.failed),
  created_at: isoTime(Number(row.created_at)),
  finished_at: isoTimeOrNull(row.finished_at),
});

const begun = (app: App, row: RecoveryRow): Recovery => {
  announceRecoveries(app, Number(row.id));
  return toRecovery(row);
};

/** The deliveries that a filter would send again now. */
const match = async (app: App, filter: RecoveryFilter) => {
  const boundary = await (await app.db.current()).newestId(DELIVERIES_TABLE);
  const byWebhook = new Map<number, number>();
  let matching = 0;
  let oldest: number | null = null;
  let sample: LogPlace[] = [];
  for await (const part of matchingDeliveries(app, matchingOf(filter), boundary)) {
    for (const { at, webhook } of part) {
      matching += 1;
      byWebhook.set(webhook, (byWebhook.get(webhook) ?? 0) + 1);
      oldest = Math.min(oldest ?? at, at);
    }
    sample = [...sample, ...part]
      .sort((one, other) => (isAfter(one, other) ? 1 : -1))
      .slice(0, SAMPLE);
  }
  const made = { kind: 'deliveries', filter, boundary, matching } as const;
  return { made, byWebhook, oldest, sample };
};

/** Shows what a recovery would send, and stores it to be started; nothing is sent. */
export const previewRecovery = async (
  app: App,
  filter: RecoveryFilter
): Promise<RecoveryPreview> => {
  const { made, byWebhook, oldest, sample } = await match(app, filter);
  const { token } = await insertRecovery(app, made, 'preview');
  return {
    preview_id: token,
    matching: made.matching,
    by_webhook: [...byWebhook]
      .map(([webhook_id, count]) => ({ webhook_id, count }))
      .sort((one, other) => other.count - one.count || one.webhook_id - other.webhook_id),
    oldest_at: isoTimeOrNull(oldest),
    sample: await deliveriesAt(await app.db.current(), app, sample),
  };
};

/** Begins to send again what a filter leaves now. */
export const startRecovery = async (app: App, filter: RecoveryFilter): Promise<Recovery> => {
  const { made } = await match(app, filter);
  return begun(app, await insertRecovery(app, made, 'running'));
};

/** Makes a preview the recovery that it showed, once. NotFoundError (404) for an unknown one. */
export const startPreview = async (app: App, token: string): Promise<Recovery | Refused> => {
  const { row, isStarted } = await app.db.retrying(async (tx) => {
    const at = app.clock.now();
    const changed = await recoveries(tx)
      .where({ token, state: 'preview' })
      .update({ state: 'running', created_at: at, moved_at: at, due_at: at });
    return { row: await byToken(tx, token), isStarted: changed === 1 };
  });
  if (!row) throw new errors.NotFoundError('Preview not found');
  return isStarted ? begun(app, row) : PREVIEW_USED;
};

/** Newest first. */
export const listRecoveries = async (app: App, page: PageRequest): Promise<Page<Recovery>> => {
  const db = await app.db.current();
  return readList(db, started(db).select('*').orderBy('id', 'desc'), page, toRecovery);
};

export const getRecovery = async (app: App, id: number): Promise<Recovery> => {
  const query = started(await app.db.current()).where({ id });
  return toRecovery(await firstOrNotFound<RecoveryRow>(query, 'Recovery'));
};

/** Pauses, resumes or cancels a recovery; cancelling is final. Queued deliveries stay queued. */
export const changeRecovery = async (
  app: App,
  id: number,
  state: 'paused' | 'running' | 'cancelled'
): Promise<Recovery | Refused> => {
  const changed = await app.db.retrying(async (tx) => {
    const row = await lockRecovery(tx, id);
    if (!row) throw new errors.NotFoundError('Recovery not found');
    if (row.state !== 'running' && row.state !== 'paused') return null;
    if (row.state === state) return row;
    const at = app.clock.now();
    const next = {
      state,
      ...(state !== 'paused' && { moved_at: at, due_at: at }),
      ...(state === 'cancelled' && { finished_at: at }),
    };
    await recoveries(tx).where({ id }).update(next);
    tx.onCommit(() => announceRecoveries(app, id));
    return { ...row, ...next };
  });
  return changed ? toRecovery(changed) : ENDED;
};

/** Sends a webhook what it wants of the journal and has not had, or counts that; docs/management-api.md#replaying. */
export const replay = async (
  app: App,
  webhook: Webhook,
  { from, to, events, dry_run: isDry }: Replay
): Promise<Recovery | { matching: number }> => {
  const range: ReplayRange = { from: Date.parse(from), to: Date.parse(to), events: events ?? null };
  const boundary = await (await app.db.current()).newestId(JOURNAL_TABLE);
  let matching = 0;
  for await (const part of matchingEntries(app, webhook, range, boundary)) matching += part.length;
  if (isDry) return { matching };
  const filter: ReplayFilter = { webhook: webhook.id, ...range };
  const made = { kind: 'journal', filter, boundary, matching } as const;
  return begun(app, await insertRecovery(app, made, 'running'));
};
