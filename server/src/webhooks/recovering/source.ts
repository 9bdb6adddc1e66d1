import type { Knex } from 'knex';
import type { RecoveryItemRow, RecoveryRow } from './tables';

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
  queue(trx: Knex.Transaction, items: readonly RecoveryItemRow[]): Promise<Map<number, QueuedItem>>;
}
