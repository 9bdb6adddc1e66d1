import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../database/connection';
import { MOVEMENTS_TABLE, LEVELS_TABLE } from '../stock/tables';
import {
  differences,
  type Posting,
  postingsOf,
  type PostingDifference,
} from '../stock/rules/postings';
import { settledFlags, stateOfRefund } from './rules/event-state';
import type { PosRecord, RefundRecord, SaleRecord } from './rules/records';
import {
  type FamilyRefund,
  type FamilySale,
  graceIsOver,
  settleRefunds,
} from './rules/settle-refunds';
import type { ConnectionRow, PosEventRow } from './tables';
import { POS_EVENTS_TABLE } from './tables';
import { type EventWork, namedLocation, openWork, placedLines } from './work';
import { connectionWait, itemWaits } from './waits';

type Of<R extends PosRecord> = EventWork & { record: R };
const isSale = (work: EventWork): work is Of<SaleRecord> => work.record.kind === 'sale';
const isRefund = (work: EventWork): work is Of<RefundRecord> => work.record.kind === 'refund';

/** One sale id in one group of connections and one mode (rules/settle-refunds.ts). */
export const familyKey = (work: EventWork): string => {
  const { row, connection } = work;
  const scope = connection.group_digest ?? `connection ${connection.id}`;
  return `${row.mode}/${scope}/${row.family_digest}`;
};

/**
 * The events that belong with those of the batch and were processed before. The connections of
 * the batch and of their groups must be locked: nobody else then adds to these families.
 */
export const loadRelatives = async (
  strapi: Core.Strapi,
  trx: Executor,
  batch: readonly EventWork[],
  connections: ReadonlyMap<number, ConnectionRow>
): Promise<EventWork[]> => {
  const digests = [...new Set(batch.flatMap(({ row }) => row.family_digest ?? []))];
  const own = new Set(batch.map(({ id }) => id));
  const keys = new Set(batch.map(familyKey));
  const relatives: EventWork[] = [];
  for (let start = 0; start < digests.length; start += 200) {
    const rows = (await table(strapi, trx, POS_EVENTS_TABLE)
      .select('*')
      .whereIn('family_digest', digests.slice(start, start + 200))
      .whereIn('connection_id', [...connections.keys()])
      .whereNotIn('state', ['pending', 'failed'])) as PosEventRow[];
    for (const row of rows) {
      const connection = connections.get(Number(row.connection_id));
      if (!connection || own.has(Number(row.id))) continue;
      const work = openWork(row, connection, false);
      if (keys.has(familyKey(work))) relatives.push(work);
    }
  }
  return relatives;
};

/** The quantities of refunds that are in the ledger, by refund, item and location. */
const postedOf = async (
  strapi: Core.Strapi,
  trx: Executor,
  refunds: readonly number[]
): Promise<Posting[]> => {
  const schema = strapi.db.getSchemaName();
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);
  const postings: Posting[] = [];
  for (let start = 0; start < refunds.length; start += 200) {
    const rows = (await trx(`${named(MOVEMENTS_TABLE)} as m`)
      .join(`${named(LEVELS_TABLE)} as l`, 'l.id', 'm.level_id')
      .select('m.event_id', 'l.item_id', 'l.location_id')
      .sum({ quantity: 'm.quantity' })
      .whereIn('m.event_id', refunds.slice(start, start + 200))
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

const familySale = (work: Of<SaleRecord>): FamilySale => ({
  id: work.id,
  connection: Number(work.connection.id),
  lines: placedLines(work).map((line) => ({
    item: work.items[line] as number,
    location: work.locationId as number,
    quantity: work.record.lines[line]?.quantity ?? 0,
  })),
});

const familyRefund = (work: Of<RefundRecord>, nowMs: number, graceMs: number): FamilyRefund => ({
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
});

/** A difference that the ledger has to append, beside the refund it belongs to. */
export interface RefundDifference extends PostingDifference {
  work: Of<RefundRecord>;
}

const settleFamily = (
  family: readonly EventWork[],
  { nowMs, graceMs }: { nowMs: number; graceMs: number }
): Posting[] => {
  const sales = family.filter(isSale);
  const refunds = family.filter(isRefund);
  const outcomes = settleRefunds(
    sales.map(familySale),
    refunds.map((work) => familyRefund(work, nowMs, graceMs))
  );
  return outcomes.flatMap((outcome) => {
    const work = refunds.find(({ id }) => id === outcome.id);
    if (!work) return [];
    const sale =
      outcome.status === 'allocated' ? sales.find(({ id }) => id === outcome.sale) : undefined;
    const unknown =
      work.record.lines === null
        ? sale
          ? sale.items.length - placedLines(sale).length
          : 0
        : work.items.filter((item) => item === null).length;
    work.state = stateOfRefund(work.row.mode, outcome, unknown);
    work.flags = settledFlags(outcome);
    const homeless = outcome.shares.some(({ location }) => location === null);
    work.waits = [
      ...(work.record.lines ?? []).flatMap((line, index) =>
        work.items[index] === null ? itemWaits(line) : []
      ),
      ...(homeless || outcome.status === 'held' || outcome.status === 'ambiguous'
        ? [connectionWait(Number(work.connection.id))]
        : []),
    ];
    return postingsOf(outcome.id, outcome.shares);
  });
};

/**
 * Settles every family that has a refund, sets state, flags and waits of its refunds, and returns
 * what the ledger has to append. In test mode nothing was ever posted, so everything is appended.
 */
export const settleFamilies = async (
  strapi: Core.Strapi,
  trx: Executor,
  works: readonly EventWork[],
  times: { nowMs: number; graceMs: number }
): Promise<RefundDifference[]> => {
  const families = new Map<string, EventWork[]>();
  for (const work of works) {
    if (work.record.kind === 'inventory') continue;
    const key = familyKey(work);
    families.set(key, [...(families.get(key) ?? []), work]);
  }
  const settled = [...families.values()].filter((family) => family.some(isRefund));
  if (settled.length === 0) return [];
  const desired = settled.flatMap((family) => settleFamily(family, times));
  const refunds = new Map(
    settled.flatMap((family) => family.filter(isRefund)).map((work) => [work.id, work])
  );
  const live = [...refunds.values()].filter(({ row }) => row.mode === 'live').map(({ id }) => id);
  const posted = await postedOf(strapi, trx, live);
  const todo = differences(desired, posted, (id) => refunds.get(id)?.record.restock ?? true);
  return todo.flatMap((difference) => {
    const work = refunds.get(difference.refund);
    return work ? [{ ...difference, work }] : [];
  });
};
