import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { getOptions } from '../../config';
import { type Executor, inTransaction, table } from '../../database/connection';
import { debugLog } from '../../runtime/debug-log';
import { createTimeSlice } from '../../runtime/event-loop';
import { type ItemName, lookUpItems } from '../../stock/items';
import type { Place } from '../../stock/levels';
import { createLedger, type Ledger, type LedgerLine } from '../../stock/ledger';
import { stockChangeEvents } from '../../stock/stock-events';
import { getPublisher } from '../../webhooks/publishing/publisher';
import { isNews, settledLine } from '../debug-lines';
import { loadRelatives, planRefundGroups } from './refund-groups';
import type { Times } from './refund-reach';
import { recordEvents } from './pos-event-publishing';
import {
  getRecordStore,
  type LeasedRecord,
  type RecordOutcome,
  type RecordSettlement,
} from './record-store';
import { stateOfLines } from '../rules/event-state';
import { graceIsOver } from '../rules/settle-refunds';
import { stateAfter } from '../rules/states';
import { type RefundDifference, settleRefundGroups } from './settle-refund-groups';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  type PosEventRow,
  POS_EVENTS_TABLE,
} from '../tables';
import {
  type ProcessingContext,
  openContext,
  placedLines,
  resolveContext,
} from './processing-context';
import { connectionWait, itemWaits, storeWaits, wakeWaiting } from './waits';
import { lineNames, noteOf, quantityOf } from '../rules/record-lines';
import type { LevelChange } from '../../stock/levels';

/** A lease ended while its record was being applied: nothing of the batch may stay. */
export class LostLease extends Error {
  constructor(readonly ids: ReadonlySet<number>) {
    super('A lease was lost while its record was applied.');
  }
}

/**
 * Locks the connections of the batch and those of their groups, in the order of their ids. Two
 * nodes never work on one group of sale and refunds at once, and never wait in a circle.
 */
const lockConnections = async (
  strapi: Core.Strapi,
  trx: Executor,
  ids: readonly number[],
  groups: readonly string[]
): Promise<Map<number, ConnectionRow>> => {
  const rows = (await table(strapi, trx, CONNECTIONS_TABLE)
    .select('*')
    .where((any) => {
      any.whereIn('id', [...ids]);
      if (groups.length > 0) any.orWhereIn('group_digest', [...groups]);
    })
    .orderBy('id')
    .forUpdate()) as ConnectionRow[];
  return new Map(rows.map((row) => [Number(row.id), row]));
};

const groupsOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  ids: readonly number[]
): Promise<string[]> => {
  const rows = (await table(strapi, executor, CONNECTIONS_TABLE)
    .distinct('group_digest')
    .whereIn('id', [...ids])
    .whereNotNull('group_digest')) as { group_digest: string }[];
  return rows.map(({ group_digest: digest }) => digest);
};

const placesOf = (
  works: readonly ProcessingContext[],
  differences: readonly RefundDifference[]
): Place[] => [
  ...works.flatMap(({ toPlace, items, locationId }) =>
    toPlace.map((line) => ({ item: items[line] as number, location: locationId as number }))
  ),
  ...differences.map(({ item, location }) => ({ item, location })),
];

/** Puts the lines of a sale, a count or an adjustment into the ledger. */
const placeLines = async (ledger: Ledger, work: ProcessingContext): Promise<LedgerLine[]> => {
  const { record, toPlace, items, locationId, row } = work;
  const at = Number(row.effective_at);
  const asked = toPlace.map((line) => ({
    item: items[line] as number,
    location: locationId as number,
    at,
    eventId: work.id,
    line,
    quantity: quantityOf(record, line),
    note: noteOf(record, line),
  }));
  if (record.kind === 'inventory' && record.mode === 'absolute') return ledger.count(asked);
  const type = record.kind === 'sale' ? ('sale' as const) : ('adjustment' as const);
  return asked.map(({ line: _line, quantity, ...one }) =>
    ledger.move({ ...one, type, reason: null, quantity: type === 'sale' ? -quantity : quantity })
  );
};

const write = async (
  ledger: Ledger,
  works: readonly ProcessingContext[],
  differences: readonly RefundDifference[]
): Promise<LevelChange[]> => {
  await ledger.lock(placesOf(works, differences));
  const slice = createTimeSlice();
  for (const work of works) {
    if (work.toPlace.length === 0) continue;
    if (slice.isOver()) await slice.next();
    const lines = await placeLines(ledger, work);
    if (work.row.mode === 'test') work.simulated.push(...lines);
  }
  for (const { work, item, location, quantity, reason } of differences) {
    const at = Number(work.row.effective_at);
    const base = { item, location, at, eventId: work.id, note: work.record.reason };
    const line = ledger.move({ ...base, type: 'refund', quantity, reason });
    if (work.row.mode === 'test') work.simulated.push(line);
  }
  return ledger.flush();
};

/** State and waits of sales and inventory messages; refunds are settled with their groups. */
const settleLines = (work: ProcessingContext): void => {
  if (work.record.kind === 'refund') return;
  const placed = placedLines(work).length;
  work.state = stateOfLines(work.row.mode, placed, work.items.length - placed);
  work.waits = [
    ...lineNames(work.record).flatMap((name, line) =>
      work.items[line] === null ? itemWaits(name) : []
    ),
    ...(work.locationId === null ? [connectionWait(Number(work.connection.id))] : []),
  ];
};

const outcomeOf = (work: ProcessingContext, { nowMs }: Times): RecordOutcome => ({
  state: stateAfter(work.row.state, work.state),
  settled_flags: JSON.stringify(work.flags),
  processed_at: Number(work.row.processed_at ?? nowMs),
  location_id: work.locationId,
  items: JSON.stringify(work.items),
  simulated: work.row.mode === 'test' ? JSON.stringify(work.simulated) : null,
  took: work.took,
  tries: 0,
  error: null,
});

/** A held refund is looked at again when its grace period ends, and else when its sale comes. */
const dueAt = (work: ProcessingContext, { nowMs, graceMs }: Times): number | null => {
  const receivedAt = Number(work.row.received_at);
  const waits = work.state === 'held' && !graceIsOver(receivedAt, nowMs, graceMs);
  return waits ? receivedAt + graceMs : null;
};

const settle = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  claimed: readonly LeasedRecord[],
  works: readonly ProcessingContext[],
  times: Times
): Promise<void> => {
  const byId = new Map(works.map((work) => [work.id, work]));
  const settlements = claimed.flatMap((lease): RecordSettlement[] => {
    const work = byId.get(lease.id);
    return work ? [{ lease, dueAt: dueAt(work, times), outcome: outcomeOf(work, times) }] : [];
  });
  const held = await getRecordStore(strapi).settle(trx, settlements);
  const lost = settlements.flatMap(({ lease: { id } }) => (held.has(id) ? [] : [id]));
  if (lost.length > 0) throw new LostLease(new Set(lost));
};

/** Relatives whose settling came out otherwise; whoever leases one meanwhile keeps its lease. */
const updateRelatives = async (
  strapi: Core.Strapi,
  trx: Executor,
  relatives: readonly ProcessingContext[],
  times: Times
): Promise<ProcessingContext[]> => {
  const refunds = relatives.filter(({ row }) => row.kind === 'refund');
  for (const work of refunds) {
    const { row } = work;
    const { state, settled_flags: flags, simulated, took } = outcomeOf(work, times);
    // Not over a state that somebody else gave it meanwhile.
    const events = () =>
      table(strapi, trx, POS_EVENTS_TABLE).where({ id: work.id, state: row.state });
    if (
      row.state !== state ||
      row.settled_flags !== flags ||
      row.simulated !== simulated ||
      row.took === null ||
      Number(row.took) !== took
    ) {
      await events().update({ state, settled_flags: flags, simulated, took });
    }
    await getRecordStore(strapi).reschedule(trx, row, dueAt(work, times));
  }
  return refunds;
};

/**
 * An item that was made while its lines were being parked saw nobody wait for it, and they saw no
 * item. Whoever commits last sees the other: here, or in `wakeForItems`.
 */
const notifyKnown = async (strapi: Core.Strapi, names: readonly ItemName[]): Promise<void> => {
  if (names.length === 0) return;
  await inTransaction(strapi, async ({ trx }) => {
    const lookup = await lookUpItems(strapi, trx, names, true);
    const known = names.filter((name) => lookup(name) !== null);
    await wakeWaiting(strapi, trx, known.flatMap(itemWaits));
  });
};

/**
 * Applies leased records, all in one transaction: ledger, states and leases change together or not
 * at all. Run it again as a whole after a deadlock.
 * @throws LostLease, or whatever a record's own fault is; then nothing has changed
 */
export const applyBatch = async (
  strapi: Core.Strapi,
  claimed: readonly LeasedRecord[],
  executor: Executor
): Promise<void> => {
  const ids = [...new Set(claimed.map(({ group }) => group))];
  const connectionGroups = await groupsOf(strapi, executor, ids);
  const times: Times = {
    nowMs: getRecordStore(strapi).now(),
    graceMs: getOptions(strapi).pos.refundGraceHours * 3_600_000,
  };
  const { batch, relatives } = await inTransaction(strapi, async ({ trx }) => {
    const connections = await lockConnections(strapi, trx, ids, connectionGroups);
    const rows = (await table(strapi, trx, POS_EVENTS_TABLE)
      .select('*')
      .whereIn(
        'id',
        claimed.map(({ id }) => id)
      )
      .orderBy('id')) as PosEventRow[];
    const batch: ProcessingContext[] = [];
    const slice = createTimeSlice();
    for (const row of rows) {
      const connection = connections.get(Number(row.connection_id));
      if (connection) batch.push(openContext(row, connection, true));
      if (slice.isOver()) await slice.next();
    }
    const lookup = await lookUpItems(
      strapi,
      trx,
      batch.flatMap(({ record, items }) =>
        lineNames(record).filter((_name, line) => items[line] === null)
      ),
      true
    );
    for (const work of batch) resolveContext(work, lookup);
    const groups = await planRefundGroups(strapi, trx, batch, connections, times);
    const relatives = await loadRelatives(strapi, trx, groups, connections);
    const differences = await settleRefundGroups(strapi, trx, groups, relatives, times);
    const changes: LevelChange[] = [];
    for (const mode of ['live', 'test'] as const) {
      const changed = await write(
        createLedger(strapi, trx, { simulate: mode === 'test' }),
        batch.filter(({ row }) => row.mode === mode),
        differences.filter(({ work }) => work.row.mode === mode)
      );
      changes.push(...changed);
    }
    batch.forEach(settleLines);
    await settle(strapi, trx, claimed, batch, times);
    const settledRelatives = await updateRelatives(strapi, trx, relatives, times);
    const changed = [...batch, ...settledRelatives].filter(
      ({ row, waits }) => row.processed_at !== null || waits.length > 0
    );
    await storeWaits(
      strapi,
      trx,
      new Map(changed.map(({ id, waits }) => [id, waits])),
      changed.filter(({ row }) => row.processed_at !== null).map(({ id }) => id)
    );
    await getPublisher(strapi).publish([
      ...(await stockChangeEvents(strapi, trx, changes)),
      ...(await recordEvents(strapi, batch)),
    ]);
    return { batch, relatives: settledRelatives };
  });
  const debug = debugLog(strapi);
  if (debug) {
    const news = [...batch, ...relatives].filter(isNews);
    for (const work of news) debug(settledLine(work, dueAt(work, times)));
  }
  const unknown = batch.flatMap(({ record, items }) =>
    lineNames(record).filter((_name, line) => items[line] === null)
  );
  await notifyKnown(strapi, unknown);
};
