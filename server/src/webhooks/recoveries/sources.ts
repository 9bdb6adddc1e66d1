import type { RecoveryFilter, Webhook } from '../../../../shared/contracts/webhooks';
import { errorText } from '../../runtime/text';
import { sendAgain } from '../deliveries/again';
import { matchingDeliveries, type MatchingRequest } from '../deliveries/log';
import { filterOf } from '../deliveries/log-query';
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
import { uuidV7 } from '../rules/uuid-v7';
import { moduleHolding } from '../sending/modules-off';
import { type RecoveryItemRow, type RecoveryRow, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { toWebhook } from '../webhook';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

/** Something that a recovery is to send. */
export interface FoundItem {
  /** What the source knows it by: unique within a recovery. */
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

/** Where the work of a recovery comes from. */
export interface RecoverySource {
  /**
   * Finds everything that a recovery is to send, part by part and in any order; again from the start
   * where a process died meanwhile.
   * @param keep stores a part: what is stored already is left out. It answers false where there is no
   * use in going on.
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

/** What a replay is asked for, as it is stored with its recovery. */
export interface ReplayFilter extends ReplayRange {
  webhook: number;
}

/** Events whose data is in memory together. */
const AT_ONCE = 20;

/** A delivery that is about to be made of an event of the journal. */
interface Made {
  ref: number;
  delivery: NewDelivery;
}

/** Events of the journal, to be sent to a webhook that has not had them; docs/management-api.md#replaying. */
export const createJournalSource = (app: App): RecoverySource => {
  const webhookOf = async (id: number): Promise<WebhookRow | undefined> =>
    (await (await app.db.current()).table(WEBHOOKS_TABLE).where({ id }).first()) as
      WebhookRow | undefined;

  const textOf = async (entry: JournalRow, webhook: Webhook): Promise<string | null> => {
    try {
      return await textFor(app, { event: entry.event, text: entry.data }, webhook);
    } catch (error) {
      app.log.error(
        `switchboard: the event ${entry.event} could not be written for webhook ${webhook.id}: ${errorText(error)}`
      );
      return null;
    }
  };

  const make = async (entry: JournalRow, webhook: Webhook): Promise<Made | null> => {
    const data = await textOf(entry, webhook);
    if (data === null) return null;
    const at = getDeliveryStore(app).now();
    const deliveryId = uuidV7(at);
    const { subject_type: type, subject_id: id, subject_label: label } = entry;
    const delivery: NewDelivery = {
      deliveryId,
      webhook: webhook.id,
      url: webhook.url,
      event: entry.event,
      body: bodyOf(deliveryId, { frame: entry.frame, data }),
      at,
      isTest: false,
      replayed: true,
      subject: type === null || id === null ? null : { type, id, label: label ?? id },
      isOrdered: webhook.ordering === 'by_record',
    };
    return { ref: Number(entry.id), delivery };
  };

  /** Those that no other recovery has taken for this webhook: where two meet, the first commit counts. */
  const claim = async (
    tx: Tx,
    recovery: number,
    webhook: number,
    made: readonly Made[]
  ): Promise<Made[]> => {
    const rows = () => tx.table(REPLAYS_TABLE);
    const refs = made.map(({ ref }) => ref);
    if (refs.length === 0) return [];
    await rows()
      .insert(refs.map((ref) => ({ journal_id: ref, webhook_id: webhook, recovery_id: recovery })))
      .onConflict(['journal_id', 'webhook_id'])
      .ignore();
    const own = (await rows()
      .where({ webhook_id: webhook, recovery_id: recovery })
      .whereIn('journal_id', refs)
      .pluck('journal_id')) as number[];
    const claimed = new Set(own.map(Number));
    return made.filter(({ ref }) => claimed.has(ref));
  };

  const insert = async (tx: Tx, made: readonly Made[]): Promise<[number, QueuedItem][]> => {
    if (made.length === 0) return [];
    const deliveries = made.map(({ delivery }) => delivery);
    const ids = await getDeliveryStore(app).insert(tx, deliveries);
    return made.flatMap(({ ref, delivery }): [number, QueuedItem][] => {
      const id = ids.get(delivery.deliveryId);
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
        const made: Made[] = [];
        for (const entry of entries) {
          if (had.has(Number(entry.id)) || wasSent(entry, webhook.id)) continue;
          if ((await moduleHolding(app, entry.event, enabled)) !== null) continue;
          const one = await make(entry, webhook);
          if (one) made.push(one);
        }
        const claimed = await claim(tx, Number(first.recovery_id), webhook.id, made);
        for (const [ref, item] of await insert(tx, claimed)) queued.set(ref, item);
      }
      return queued;
    },
  };
};

const RECOVERABLE = ['failing', 'failed'] as const;

/**
 * What of the log a recovery's filter asks for: failing and failed deliveries, whatever it says.
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
