import type { RecoveryFilter, Webhook } from '../../../../shared/contracts/webhooks';
import { sendAgain } from './again';
import { matchingDeliveries, subjectOf } from '../deliveries/log';
import { type LogSelection, selectionOf } from '../deliveries/log-filter';
import { bodyOf } from '../deliveries/messages';
import { getDeliveryStore } from '../deliveries/store';
import {
  createHeld,
  JOURNAL_TABLE,
  type JournalRow,
  matchingEntries,
  replayedTo,
  type ReplayRange,
  REPLAYS_TABLE,
  wasSent,
} from '../journal';
import { type NewDelivery, queueDeliveries, textFor } from '../publish';
import { uuidV7 } from '../../runtime/ids';
import { type RecoveryItemRow, type RecoveryRow, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { toWebhook } from '../webhook';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

type FoundItem = Pick<RecoveryItemRow, 'ref' | 'webhook_id' | 'at' | 'delivery_id'>;

interface QueuedItem {
  delivery: number;
  tries: number;
}

export interface RecoverySource {
  /** Finds everything that a recovery is to send, part by part; from the start if a process died meanwhile. */
  collect(recovery: RecoveryRow): AsyncGenerator<FoundItem[]>;
  /**
   * Queues deliveries for items, in the transaction of the recovery.
   * @returns queued ones by `ref`; the others can no longer be sent
   */
  queue(tx: Tx, items: readonly RecoveryItemRow[]): Promise<Map<number, QueuedItem>>;
}

export interface ReplayFilter extends ReplayRange {
  webhook: number;
}

const AT_ONCE = 20;

/** Events of the journal, to be sent to a webhook that has not had them; docs/management-api.md#replaying. */
export const createJournalSource = (app: App): RecoverySource => {
  const webhookOf = async (id: number): Promise<Webhook | null> => {
    const found = (await app.db.current()).table(WEBHOOKS_TABLE).where({ id }).first();
    const row = (await found) as WebhookRow | undefined;
    return row ? toWebhook(row) : null;
  };

  const make = async (entry: JournalRow, webhook: Webhook): Promise<NewDelivery | null> => {
    const { event, frame } = entry;
    const data = await textFor(app, { event, text: entry.data }, webhook);
    if (data === null) return null;
    const at = getDeliveryStore(app).now();
    const deliveryId = uuidV7(at);
    return {
      deliveryId,
      webhook: webhook.id,
      url: webhook.url,
      event,
      body: bodyOf(deliveryId, { frame, data }),
      at,
      isTest: false,
      replayed: true,
      subject: subjectOf(entry),
      isOrdered: webhook.ordering === 'by_record',
    };
  };

  /** Queues those that no other recovery has taken for this webhook: where two meet, the first commit counts. */
  const insert = async (
    tx: Tx,
    { recovery_id: recovery, webhook_id: webhook }: RecoveryItemRow,
    made: ReadonlyMap<number, NewDelivery>
  ): Promise<[number, QueuedItem][]> => {
    const refs = [...made.keys()];
    if (refs.length === 0) return [];
    await tx.insert(
      REPLAYS_TABLE,
      refs.map((ref) => ({ journal_id: ref, webhook_id: webhook, recovery_id: recovery })),
      { unique: ['journal_id', 'webhook_id'], then: 'ignore' }
    );
    const own = (await tx
      .table(REPLAYS_TABLE)
      .where({ webhook_id: webhook, recovery_id: recovery })
      .whereIn('journal_id', refs)
      .pluck('journal_id')) as number[];
    const isOwn = new Set(own.map(Number));
    const claimed = [...made].filter(([ref]) => isOwn.has(ref));
    if (claimed.length === 0) return [];
    const deliveries = claimed.map(([, delivery]) => delivery);
    const ids = await queueDeliveries(getDeliveryStore(app), tx, deliveries);
    return claimed.map(([ref, { deliveryId }]) => [
      ref,
      { delivery: ids.get(deliveryId) as number, tries: 0 },
    ]);
  };

  return {
    async *collect({ filter, boundary }) {
      const { webhook: id, ...range } = JSON.parse(filter) as ReplayFilter;
      const webhook = await webhookOf(id);
      if (!webhook) return;
      for await (const part of matchingEntries(app, webhook, range, Number(boundary))) {
        const item = { webhook_id: id, delivery_id: null };
        yield part.map(({ id: ref, at }) => ({ ref, at, ...item }));
      }
    },

    async queue(tx, items) {
      const queued = new Map<number, QueuedItem>();
      const [first] = items;
      const webhook = first && (await webhookOf(Number(first.webhook_id)));
      if (!webhook) return queued;
      const isHeld = await createHeld(app);
      for (let at = 0; at < items.length; at += AT_ONCE) {
        const refs = items.slice(at, at + AT_ONCE).map(({ ref }) => Number(ref));
        const had = await replayedTo(tx, webhook.id, refs);
        const entries = (await tx
          .table(JOURNAL_TABLE)
          .whereIn('id', refs)
          .orderBy(['created_at', 'id'])) as JournalRow[];
        const made = new Map<number, NewDelivery>();
        for (const entry of entries) {
          if (had.has(Number(entry.id)) || wasSent(entry, webhook.id)) continue;
          if (isHeld(entry.event)) continue;
          const one = await make(entry, webhook);
          if (one) made.set(Number(entry.id), one);
        }
        for (const [ref, item] of await insert(tx, first, made)) queued.set(ref, item);
      }
      return queued;
    },
  };
};

const RECOVERABLE = ['failing', 'failed'] as const;

/** The rows of the log that match a recovery's filter: only failing and failed deliveries. */
export const matchingOf = ({ ids, state, ...query }: RecoveryFilter): LogSelection => {
  const { filter, search } = selectionOf(query);
  const states = RECOVERABLE.filter((one) => state === undefined || one === state);
  return { filter: { ...filter, states, ids }, search };
};

/** Failing and failed deliveries of the log, to be sent again; docs/contract-webhooks.md#recoveries. */
export const createDeliveriesSource = (app: App): RecoverySource => ({
  async *collect({ filter, boundary }) {
    const selection = matchingOf(JSON.parse(filter) as RecoveryFilter);
    for await (const part of matchingDeliveries(app, selection, Number(boundary))) {
      yield part.map(({ id, at, webhook }) => ({
        ref: id,
        at,
        webhook_id: webhook,
        delivery_id: id,
      }));
    }
  },

  async queue(tx, items) {
    const refs = items.map(({ ref }) => Number(ref));
    const tries = await sendAgain(tx, app, refs, await createHeld(app));
    return new Map([...tries].map(([id, before]) => [id, { delivery: id, tries: before }]));
  },
});
