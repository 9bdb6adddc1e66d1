import { readLeft, shareOnTop, writeLeft } from '../../stock/rules/sale-left';
import type { RefundRecord } from '../rules/records';
import {
  type GroupRefund,
  graceIsOver,
  type RefundOutcome,
  refundToShare,
} from '../rules/settle-refunds';
import type { PosEventRow } from '../tables';
import {
  type ContextOf,
  isRefund,
  isSale,
  namedLocation,
  type ProcessingContext,
} from './processing-context';

/** When groups are settled, and how long a refund waits for its sale; epoch milliseconds. */
export interface Times {
  nowMs: number;
  graceMs: number;
}

/** A refund as the rules of its group see it. */
export const refundOfGroup = (
  work: ContextOf<RefundRecord>,
  { nowMs, graceMs }: Times
): GroupRefund => ({
  id: work.id,
  connection: Number(work.connection.id),
  effectiveMs: Number(work.row.effective_at),
  externalId: work.record.externalId,
  lines:
    work.record.lines?.flatMap(({ quantity }, line) => {
      const item = work.items[line] ?? null;
      return item === null ? [] : [{ line, item, quantity }];
    }) ?? null,
  namedLocation: namedLocation(work),
  onlyLocation: work.onlyLocationId,
  graceOver: graceIsOver(Number(work.row.received_at), nowMs, graceMs),
  accepted: (work.row.accepted_at ?? null) !== null,
});

/** Which relatives have to be looked at again. */
export type Reach =
  /** None: there is no sale yet, and each refund is held, or stands, by itself. */
  | { relatives: 'none' }
  /** None: one sale, and no other refund's share changes. `outcomes` are those of the batch. */
  | { relatives: 'unchanged'; outcomes: RefundOutcome[]; unknownLines: number; refunded: Refunded }
  /** One sale, some of whose refunds have to make way: those that were allocated anything. */
  | { relatives: 'allocated' }
  /** A sale that is new or another one than before; or nothing is known of what was allocated. */
  | { relatives: 'all' };

/** What a sale has left, for its row. */
export interface Refunded {
  sale: number;
  text: string;
}

/** A refund that no sale was shared out to yet: its share is new, and changes none of its own. */
const isFresh = ({ row }: ProcessingContext): boolean =>
  row.processed_at === null || row.state === 'held';

/**
 * How far into its group a batch reaches. Most refunds come alone, after their sale, and take of
 * what it has left: then nobody else is read again, and the thousandth costs what the tenth did.
 * @param sales  the sales of the group that were processed before
 */
export const reachOf = (
  batch: readonly ProcessingContext[],
  sales: readonly Pick<PosEventRow, 'id' | 'refunded'>[],
  times: Times
): Reach => {
  if (batch.some(isSale)) return { relatives: 'all' };
  const [sale, second] = sales;
  if (!sale) return { relatives: 'none' };
  if (second || sale.refunded === null || !batch.every(isFresh)) return { relatives: 'all' };
  const { left, unknownLines } = readLeft(sale.refunded);
  const refunds = batch.filter(isRefund).map((work) => refundToShare(refundOfGroup(work, times)));
  const result = shareOnTop(left, refunds);
  if (!result) return { relatives: 'allocated' };
  const saleId = Number(sale.id);
  return {
    relatives: 'unchanged',
    outcomes: result.shared.map((one) => ({ ...one, status: 'allocated', sale: saleId })),
    unknownLines,
    refunded: { sale: saleId, text: writeLeft(result.left, unknownLines) },
  };
};
