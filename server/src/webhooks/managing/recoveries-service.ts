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
import { isoTime, isoTimeOrNull } from '../../runtime/text';
import { deliveriesAt, matchingDeliveries, newestDelivery } from '../deliveries/log';
import { isAfter, type LogPlace } from '../deliveries/log-filter';
import { matchingEntries, newestEntry, type ReplayRange } from '../journal';
import { announceRecoveries, lockRecovery, recoveries, started } from '../recoveries/job';
import { matchingOf, type ReplayFilter } from '../recoveries/sources';
import type { RecoveryKind, RecoveryRow } from '../tables';
import type { Replay } from './inputs';
import type { App } from '../../app';
import type { Db } from '../../database/db';

const SAMPLE = 10;

/** The values of a new recovery. */
interface NewRecovery {
  kind: RecoveryKind;
  /** As its source understands it; stored as JSON. */
  filter: unknown;
  boundary: number;
  matching: number;
}

const byToken = async (db: Db, token: string): Promise<RecoveryRow | undefined> =>
  (await recoveries(db).where({ token }).first()) as RecoveryRow | undefined;

/** Stores a preview, or a recovery that begins now, in the caller's transaction where there is one. */
const insertRecovery = (
  app: App,
  { filter, ...given }: NewRecovery,
  state: 'preview' | 'running' = 'running'
): Promise<RecoveryRow> =>
  app.db.retrying(async (tx) => {
    const token = randomUUID();
    const at = app.clock.now();
    await recoveries(tx).insert({
      ...{ ...given, token, state, filter: JSON.stringify(filter) },
      ...{ queued: 0, sent: 0, failed: 0 },
      ...{ created_at: at, moved_at: at, due_at: state === 'running' ? at : null },
    });
    return (await byToken(tx, token)) as RecoveryRow;
  });

/**
 * Makes a preview the recovery that it showed.
 * @returns `used` where it was started before, null if there is none
 */
const startPreview = (app: App, token: string): Promise<RecoveryRow | 'used' | null> =>
  app.db.retrying(async (tx) => {
    const at = app.clock.now();
    const started = await recoveries(tx)
      .where({ token, state: 'preview' })
      .update({ state: 'running', created_at: at, moved_at: at, due_at: at });
    const row = await byToken(tx, token);
    if (!row) return null;
    return started === 1 ? row : 'used';
  });

/** Why a recovery is not started or changed: its preview was started before, or it has ended. */
export type RecoveryRefusal = 'used' | 'ended';

/** A recovery as the management routes show it. */
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

interface Matching {
  boundary: number;
  count: number;
  byWebhook: Map<number, number>;
  oldest: number | null;
  /** The newest first. */
  sample: LogPlace[];
}

/** Sending failed deliveries again, many at a time; docs/contract-webhooks.md#recoveries. */
export class RecoveriesService {
  constructor(private readonly app: App) {}

  /** The deliveries that a filter would send again now; nothing is sent. */
  async preview(filter: RecoveryFilter): Promise<RecoveryPreview> {
    const { boundary, count, byWebhook, oldest, sample } = await this.match(filter);
    const { token } = await insertRecovery(
      this.app,
      { kind: 'deliveries', filter, boundary, matching: count },
      'preview'
    );
    return {
      preview_id: token,
      matching: count,
      by_webhook: [...byWebhook]
        .map(([webhook_id, ofWebhook]) => ({ webhook_id, count: ofWebhook }))
        .sort((one, other) => other.count - one.count || one.webhook_id - other.webhook_id),
      oldest_at: oldest === null ? null : isoTime(oldest),
      sample: await deliveriesAt(await this.app.db.current(), this.app, sample),
    };
  }

  /** Begins to send again what a filter leaves now. */
  async start(filter: RecoveryFilter): Promise<Recovery> {
    const { boundary, count } = await this.match(filter);
    return this.isBegun(
      await insertRecovery(this.app, { kind: 'deliveries', filter, boundary, matching: count })
    );
  }

  /** Starts the recovery of a preview, once. NotFoundError (404) for an unknown one. */
  async startPreview(previewId: string): Promise<Recovery | RecoveryRefusal> {
    const row = await startPreview(this.app, previewId);
    if (row === null) throw new errors.NotFoundError('Preview not found');
    return row === 'used' ? row : this.isBegun(row);
  }

  /** Newest first. */
  async list(page: PageRequest): Promise<Page<Recovery>> {
    const db = await this.app.db.current();
    return readList(db, started(db).select('*').orderBy('id', 'desc'), page, toRecovery);
  }

  /** NotFoundError (404) for an unknown id. */
  async get(id: number): Promise<Recovery> {
    const query = started(await this.app.db.current()).where({ id });
    return toRecovery(await firstOrNotFound<RecoveryRow>(query, 'Recovery'));
  }

  /** Queues no more until it is resumed. NotFoundError (404) for an unknown id. */
  pause(id: number): Promise<Recovery | RecoveryRefusal> {
    return this.change(id, ({ state }) => (state === 'paused' ? null : { state: 'paused' }));
  }

  resume(id: number): Promise<Recovery | RecoveryRefusal> {
    return this.change(id, ({ state }, at) =>
      state === 'running' ? null : { state: 'running', moved_at: at, due_at: at }
    );
  }

  /** Queues no more, ever; what was queued stays so. */
  cancel(id: number): Promise<Recovery | RecoveryRefusal> {
    return this.change(id, (_row, at) => ({
      state: 'cancelled',
      finished_at: at,
      moved_at: at,
      due_at: at,
    }));
  }

  private async match(filter: RecoveryFilter): Promise<Matching> {
    const boundary = await newestDelivery(this.app);
    const found: Matching = { boundary, count: 0, byWebhook: new Map(), oldest: null, sample: [] };
    for await (const part of matchingDeliveries(this.app, matchingOf(filter, boundary))) {
      for (const { place, webhook } of part) {
        found.count += 1;
        found.byWebhook.set(webhook, (found.byWebhook.get(webhook) ?? 0) + 1);
        found.oldest = Math.min(found.oldest ?? place.at, place.at);
      }
      found.sample = [...found.sample, ...part.map(({ place }) => place)]
        .sort((one, other) => (isAfter(one, other) ? 1 : -1))
        .slice(0, SAMPLE);
    }
    return found;
  }

  /** @param changes what becomes of it; null: it is so already */
  private async change(
    id: number,
    changes: (row: RecoveryRow, at: number) => Partial<RecoveryRow> | null
  ): Promise<Recovery | 'ended'> {
    const changed = await this.app.db.retrying(async (tx) => {
      const row = await lockRecovery(tx, id);
      if (!row) throw new errors.NotFoundError('Recovery not found');
      if (row.state !== 'running' && row.state !== 'paused') return 'ended';
      const next = changes(row, this.app.clock.now());
      if (!next) return row;
      await recoveries(tx).where({ id }).update(next);
      tx.onCommit(() => announceRecoveries(this.app, id));
      return { ...row, ...next };
    });
    return changed === 'ended' ? changed : toRecovery(changed);
  }

  private isBegun(row: RecoveryRow): Recovery {
    announceRecoveries(this.app, Number(row.id));
    return toRecovery(row);
  }
}

/**
 * Sends a webhook what it asks for of the journal and has not had, or says how much that is.
 * docs/management-api.md#replaying. For a site that has a journal.
 */
export const replay = async (
  app: App,
  webhook: Webhook,
  input: Replay
): Promise<Recovery | { matching: number }> => {
  const { from, to, events = null } = input;
  const range: ReplayRange = { from: Date.parse(from), to: Date.parse(to), events };
  const boundary = await newestEntry(app);
  let matching = 0;
  for await (const part of matchingEntries(app, webhook, range, boundary)) matching += part.length;
  if (input.dry_run) return { matching };
  const filter: ReplayFilter = { webhook: webhook.id, ...range };
  const row = await insertRecovery(app, { kind: 'journal', filter, boundary, matching });
  announceRecoveries(app, Number(row.id));
  return toRecovery(row);
};
