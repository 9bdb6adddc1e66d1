import type { RecoveryFilter, Webhook } from '../../../../shared/contracts/webhooks';
import { errorText } from '../../runtime/text';
import { sendAgain } from './again';
import { matchingDeliveries, type MatchingRequest } from '../deliveries/log';
import { filterOf } from '../deliveries/log-filter';
import { bodyOf } from '../deliveries/messages';
import { getDeliveryStore, type NewDelivery } from '../deliveries/store';
import {
  JOURNAL_TABLE,
  type JournalRow,
  matchingEntries,
  replayedTo,
  type ReplayRange,
  REPLAYS_TABLE,
  wasSent,
} from '../journal';
import { textFor } from '../publish';
import { uuidV7 } from '../../runtime/uuid-v7';
import { moduleHolding } from '../sending/modules-off';
import { type RecoveryItemRow, type RecoveryRow, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { toWebhook } from '../webhook';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

/** Something that a recovery is to send. */
export interface FoundItem {
  /** The source's key: unique within a recovery. */
  ref: number;
  webhook: number;
  /** Its time, epoch milliseconds: the oldest of a webhook are queued first. */
  at: number;
  /** The id of its delivery's row; null: the source makes the delivery when it queues it. */
  delivery: number | null;
}

/** An item that is in the queue now. */
export interface QueuedItem {
  /** The id of its delivery's row. */
  delivery: number;
  /** The attempts that it has had by now. */
  tries: number;
}

/** The source of a recovery's work. */
export interface RecoverySource {
  /**
   * Finds everything that a recovery is to send, part by part and in any order; again from the start
   * where a process died meanwhile.
   * @param keep stores a part: what is stored already is left out. It answers false if there is no use in
   * going on.
   */
  collect(
    recovery: RecoveryRow,
    keep: (found: readonly FoundItem[]) => Promise<boolean>
  ): Promise<void>;
  /**
   * Puts items into the queue of deliveries, in the transaction that records it.
   * @returns those that are in the queue, by `ref`; of the others there is nothing to send any more.
   */
  queue(tx: Tx, items: readonly RecoveryItemRow[]): Promise<Map<number, QueuedItem>>;
}

/** The input of a replay, as it is stored with its recovery. */
export interface ReplayFilter extends ReplayRange {
  webhook: number;
}

/** Events whose data is in memory together. */
const AT_ONCE = 20;

/** Events of the journal, to be sent to a webhook that has not had them; docs/management-api.md#replaying. */
export const createJournalSource = (app: App): RecoverySource => {
  const webhookOf = async (id: number): Promise<WebhookRow | undefined> =>
    (await (await app.db.current()).table(WEBHOOKS_TABLE).where({ id }).first()) as
      WebhookRow | undefined;

  const make = async (entry: JournalRow, webhook: Webhook): Promise<NewDelivery | null> => {
    const { event, frame, subject_type: type, subject_id: id, subject_label: label } = entry;
    let data: string | null;
    try {
      data = await textFor(app, { event, text: entry.data }, webhook);
    } catch (error) {
      app.log.error(
        `switchboard: the event ${event} could not be written for webhook ${webhook.id}: ${errorText(error)}`
      );
      return null;
    }
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
      subject: type === null || id === null ? null : { type, id, label: label ?? id },
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
    const rows = () => tx.table(REPLAYS_TABLE);
    await rows()
      .insert(refs.map((ref) => ({ journal_id: ref, webhook_id: webhook, recovery_id: recovery })))
      .onConflict(['journal_id', 'webhook_id'])
      .ignore();
    const own = (await rows()
      .where({ webhook_id: webhook, recovery_id: recovery })
      .whereIn('journal_id', refs)
      .pluck('journal_id')) as number[];
    const isOwn = new Set(own.map(Number));
    const claimed = [...made].filter(([ref]) => isOwn.has(ref));
    if (claimed.length === 0) return [];
    const ids = await getDeliveryStore(app).insert(
      tx,
      claimed.map(([, delivery]) => delivery)
    );
    return claimed.flatMap(([ref, { deliveryId }]): [number, QueuedItem][] => {
      const id = ids.get(deliveryId);
      return id === undefined ? [] : [[ref, { delivery: id, tries: 0 }]];
    });
  };

  return {
    async collect({ filter, boundary }, keep) {
      const { webhook: id, ...range } = JSON.parse(filter) as ReplayFilter;
      const row = await webhookOf(id);
      if (!row) return;
      for await (const part of matchingEntries(app, toWebhook(row), range, Number(boundary))) {
        const found = part.map(({ id: ref, at }) => ({ ref, webhook: id, at, delivery: null }));
        if (!(await keep(found))) return;
      }
    },

    async queue(tx, items) {
      const queued = new Map<number, QueuedItem>();
      const [first] = items;
      const row = first && (await webhookOf(Number(first.webhook_id)));
      if (!first || !row) return queued;
      const webhook = toWebhook(row);
      const enabled = await app.modules.enabled();
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
          if ((await moduleHolding(app, entry.event, enabled)) !== null) continue;
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

/**
 * The rows of the log that match a recovery's filter: only failing and failed deliveries.
 * @param boundary the id of the newest row that counts
 */
export const matchingOf = (
  { ids, state, ...query }: RecoveryFilter,
  boundary: number
): MatchingRequest => {
  const { filter, search } = filterOf(query);
  const states = RECOVERABLE.filter((one) => state === undefined || one === state);
  return { filter: { ...filter, states, ids }, search, boundary };
};

/** Failing and failed deliveries of the log, to be sent again; docs/contract-webhooks.md#recoveries. */
export const createDeliveriesSource = (app: App): RecoverySource => ({
  async collect({ filter, boundary }, keep) {
    const request = matchingOf(JSON.parse(filter) as RecoveryFilter, Number(boundary));
    for await (const part of matchingDeliveries(app, request)) {
      const found = part.map(({ place: { id, at }, webhook }) => ({
        ref: id,
        webhook,
        at,
        delivery: id,
      }));
      if (!(await keep(found))) return;
    }
  },

  async queue(tx, items) {
    const enabled = await app.modules.enabled();
    const held = new Map<string, boolean>();
    const isHeld = async (event: string): Promise<boolean> => {
      const known = held.get(event) ?? (await moduleHolding(app, event, enabled)) !== null;
      held.set(event, known);
      return known;
    };
    const refs = items.map(({ ref }) => Number(ref));
    const tries = await sendAgain(tx, app, refs, isHeld);
    return new Map([...tries].map(([id, before]) => [id, { delivery: id, tries: before }]));
  },
});
