import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../../database/connection';
import type { RefundKey } from '../../stock/rules/allocation';
import {
  differences,
  type Posting,
  type PostingDifference,
  postingsOf,
} from '../../stock/rules/postings';
import { leftOfSale, writeLeft } from '../../stock/rules/sale-left';
import { LEVELS_TABLE, MOVEMENTS_TABLE } from '../../stock/tables';
import { settledFlags, stateOfRefund } from '../rules/event-state';
import type { RefundRecord, SaleRecord } from '../rules/records';
import { type GroupSale, type RefundOutcome, settleRefunds } from '../rules/settle-refunds';
import { POS_EVENTS_TABLE } from '../tables';
import {
  type ContextOf,
  isRefund,
  isSale,
  namedLocation,
  placedLines,
  type ProcessingContext,
  unknownLines,
  waitingLines,
} from './processing-context';
import { addTo, byRefundGroup, type RefundGroup } from './refunds';
import { type Reach, type Refunded, refundOfGroup, type Times } from './refund-reach';
import type { Wait } from '../mapping/wait';
import { itemWaitsOf, locationWaitOf, saleWaitOf } from '../mapping/waits-of-record';

const CHUNK = 200;

/** The quantities of refunds that are in the ledger, by refund, item and location. */
const postedOf = async (
  strapi: Core.Strapi,
  trx: Executor,
  refunds: readonly number[]
): Promise<Posting[]> => {
  const postings: Posting[] = [];
  for (let start = 0; start < refunds.length; start += CHUNK) {
    const rows = (await table(strapi, trx, `${MOVEMENTS_TABLE} as m`)
      .join(`${LEVELS_TABLE} as l`, 'l.id', 'm.level_id')
      .select('m.event_id', 'l.item_id', 'l.location_id')
      .sum({ quantity: 'm.quantity' })
      .whereIn('m.event_id', refunds.slice(start, start + CHUNK))
      .groupBy('m.event_id', 'l.item_id', 'l.location_id')) as Record<string, number | string>[];
    for (const row of rows) {
      postings.push({
        refund: Number(row.event_id),
        item: Number(row.item_id),
        location: Number(row.location_id),
        quantity: Number(row.quantity),
      });
    }
  }
  return postings;
};

const groupSaleOf = (work: ContextOf<SaleRecord>): GroupSale => ({
  id: work.id,
  connection: Number(work.connection.id),
  lines: placedLines(work).map((line) => ({
    item: work.items[line] as number,
    location: work.locationId as number,
    quantity: work.record.lines[line]?.quantity ?? 0,
  })),
});

/** Lines whose item is not known: its own, or those of the sale that it refunds as a whole. */
const unknownLinesOf = (refund: ContextOf<RefundRecord>, ofSale: number): number =>
  refund.record.lines === null ? ofSale : unknownLines(refund).length;

const waitsOf = (refund: ContextOf<RefundRecord>, { status, shares }: RefundOutcome): Wait[] => {
  const homeless = shares.some(({ location }) => location === null);
  // Without lines it may have no share yet, while its sale waits too.
  const unmapped = namedLocation(refund) === 'unknown';
  return [
    ...itemWaitsOf(refund),
    ...(unmapped ? [locationWaitOf(refund)] : []),
    ...(homeless || status === 'held' || status === 'ambiguous' ? [saleWaitOf(refund)] : []),
  ];
};

/** Sets state, flags and waits of a refund from what its group came to. */
const settleRefund = (
  refund: ContextOf<RefundRecord>,
  outcome: RefundOutcome,
  unknownLines: number
): void => {
  refund.state = stateOfRefund(refund.row.mode, outcome, unknownLines);
  refund.flags = settledFlags(outcome);
  refund.took =
    outcome.status === 'allocated'
      ? outcome.shares.reduce((sum, { allocated }) => sum + allocated, 0)
      : 0;
  refund.waits = waitsOf(refund, outcome);
};

/** What the groups of a batch came to. */
class Settled {
  readonly refunds = new Map<number, ContextOf<RefundRecord>>();
  /** What the ledger should have of these refunds. */
  readonly postings: Posting[] = [];
  readonly refunded: Refunded[] = [];

  /** @param unknownOfSale  how many lines of the refund's sale are not in the ledger */
  add(refund: ContextOf<RefundRecord>, outcome: RefundOutcome, unknownOfSale: number): void {
    settleRefund(refund, outcome, unknownLinesOf(refund, unknownOfSale));
    this.refunds.set(refund.id, refund);
    this.postings.push(...postingsOf(outcome.id, outcome.shares));
  }
}

/** Refunds that change nobody else's share: how they come out is known from their reach. */
const settleOnTop = (
  batch: readonly ProcessingContext[],
  { outcomes, unknownLines, refunded }: Extract<Reach, { relatives: 'unchanged' }>,
  settled: Settled
): void => {
  const refunds = new Map(batch.filter(isRefund).map((work) => [work.id, work]));
  for (const outcome of outcomes) {
    const refund = refunds.get(outcome.id);
    if (refund) settled.add(refund, outcome, unknownLines);
  }
  settled.refunded.push(refunded);
};

const refundKeyOf = ({ row, record, connection }: ContextOf<RefundRecord>): RefundKey => ({
  effectiveMs: Number(row.effective_at),
  externalId: record.externalId,
  connection: Number(connection.id),
});

/** Shares the sales of a group out anew, to all of these members. */
const settleAnew = (
  members: readonly ProcessingContext[],
  times: Times,
  settled: Settled
): void => {
  const sales = new Map(members.filter(isSale).map((work) => [work.id, work]));
  const refunds = new Map(members.filter(isRefund).map((work) => [work.id, work]));
  const groupSales = [...sales.values()].map(groupSaleOf);
  const outcomes = settleRefunds(
    groupSales,
    [...refunds.values()].map((work) => refundOfGroup(work, times))
  );
  const shared = new Map<number, { refund: RefundKey; shares: RefundOutcome['shares'] }[]>();
  for (const outcome of outcomes) {
    const refund = refunds.get(outcome.id);
    if (!refund) continue;
    const sale = outcome.status === 'allocated' ? sales.get(outcome.sale) : undefined;
    settled.add(refund, outcome, sale ? waitingLines(sale) : 0);
    if (sale) addTo(shared, sale.id, { refund: refundKeyOf(refund), shares: outcome.shares });
  }
  for (const { id, lines } of groupSales) {
    const sale = sales.get(id);
    if (!sale) continue;
    const left = leftOfSale(lines, shared.get(id) ?? []);
    settled.refunded.push({ sale: id, text: writeLeft(left, waitingLines(sale)) });
  }
};

const settleAll = (
  groups: readonly RefundGroup[],
  relatives: readonly ProcessingContext[],
  times: Times
): Settled => {
  const relativesOf = byRefundGroup(relatives);
  const settled = new Settled();
  for (const { key, batch, reach } of groups) {
    if (reach.relatives === 'unchanged') {
      settleOnTop(batch, reach, settled);
      continue;
    }
    const members = [...batch, ...(relativesOf.get(key) ?? [])];
    if (members.some(isRefund)) settleAnew(members, times, settled);
  }
  return settled;
};

/** A difference that the ledger has to append, beside the refund it belongs to. */
export interface RefundDifference extends PostingDifference {
  work: ContextOf<RefundRecord>;
}

/** In test mode nothing was ever posted, so everything is appended. */
const toAppend = async (
  strapi: Core.Strapi,
  trx: Executor,
  { refunds, postings }: Settled
): Promise<RefundDifference[]> => {
  const live = [...refunds.values()].filter(({ row }) => row.mode === 'live').map(({ id }) => id);
  const posted = await postedOf(strapi, trx, live);
  const todo = differences(postings, posted, (id) => refunds.get(id)?.record.restock ?? true);
  return todo.flatMap((difference) => {
    const work = refunds.get(difference.refund);
    return work ? [{ ...difference, work }] : [];
  });
};

/**
 * Settles every group that has a refund: sets state, flags and waits of its refunds, writes down
 * what its sales have left, and returns what the ledger has to append.
 * @param preview  nothing is written down
 */
export const settleRefundGroups = async (
  strapi: Core.Strapi,
  trx: Executor,
  groups: readonly RefundGroup[],
  relatives: readonly ProcessingContext[],
  times: Times,
  { preview = false }: { preview?: boolean } = {}
): Promise<RefundDifference[]> => {
  const settled = settleAll(groups, relatives, times);
  if (settled.refunds.size === 0) return [];
  for (const { sale, text } of preview ? [] : settled.refunded) {
    await table(strapi, trx, POS_EVENTS_TABLE).where({ id: sale }).update({ refunded: text });
  }
  return toAppend(strapi, trx, settled);
};
