import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { getOptions } from '../../config';
import { type Executor, inTransaction, table } from '../../database/connection';
import { debugLog } from '../../runtime/debug-log';
import { type ItemName, lookUpItems } from '../../stock/items';
import { lookUpTrialItems } from '../../stock/trial-items';
import { stockChangeEvents } from '../../stock/events';
import { withTransientRetry } from '../../database/retry';
import { errorText } from '../../runtime/text';
import { getPublisher } from '../../webhooks/publish';
import { isNews, settledLine } from '../debug-lines';
import { markClosings, wakeComparing } from '../closings/due-closings';
import { wakeAttaching } from '../customers';
import { notePurchases } from '../customers/note-purchases';
import { countMoney } from '../money/count-money';
import { connectionsOf, groupsOf } from '../connections';
import type { Times } from './refund-reach';
import { recordEvents } from './events';
import {
  getRecordStore,
  type LeasedRecord,
  type RecordOutcome,
  type RecordSettlement,
} from './record-store';
import { graceIsOver } from '../rules/settle-refunds';
import { placesOf } from '../mapping/counted-places';
import { loadMappings } from '../mapping/mappings';
import { notifyUndone, storeMappedLines } from '../mapping/mapped-lines';
import { stateAfter } from '../rules/states';
import { type PosEventRow, POS_EVENTS_TABLE } from '../tables';
import { type ProcessingContext, unknownNames } from './processing-context';
import { itemWaits } from '../mapping/wait';
import { storeWaits, wakeWaiting } from './waits';
import { workOut } from './work-out';

/** A lease ended while its record was being applied: nothing of the batch may stay. */
export class LostLease extends Error {
  constructor(readonly ids: ReadonlySet<number>) {
    super('A lease was lost while its record was applied.');
  }
}

const outcomeOf = (work: ProcessingContext, { nowMs }: Times): RecordOutcome => ({
  state: stateAfter(work.row.state, work.state),
  settled_flags: JSON.stringify(work.flags),
  processed_at: Number(work.row.processed_at ?? nowMs),
  location_id: work.locationId,
  items: JSON.stringify(work.items),
  ignored: JSON.stringify(work.ignored),
  simulated: work.row.mode === 'test' ? JSON.stringify(work.moved) : null,
  took: work.took,
  counted: work.counted,
  tries: 0,
  error: null,
  woken_by: null,
  counted_places: placesOf(work),
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
const notifyKnown = async (
  strapi: Core.Strapi,
  batch: readonly ProcessingContext[]
): Promise<void> => {
  const names = batch.flatMap(unknownNames);
  if (names.length === 0) return;
  await inTransaction(strapi, async ({ trx }) => {
    const namesOf = (mode: string): ItemName[] =>
      batch.filter(({ row }) => row.mode === mode).flatMap(unknownNames);
    // Test mode makes no items of products, and finds those that live records have made.
    const live = await lookUpItems(strapi, trx, namesOf('live'), true);
    const { lookup: tried } = await lookUpTrialItems(strapi, trx, namesOf('test'));
    const mappings = await loadMappings(strapi, trx, names, []);
    const isKnown = (name: ItemName): boolean => live(name) !== null || tried(name) !== null;
    const isMapped = (name: ItemName): boolean => mappings.ofLine(name) !== null;
    const known = names.filter(isKnown);
    const mapped = names.filter((name) => !isKnown(name) && isMapped(name));
    await wakeWaiting(strapi, trx, known.flatMap(itemWaits), 'item');
    await wakeWaiting(strapi, trx, mapped.flatMap(itemWaits), 'mapping');
  });
};

/** Records that were applied stay applied, whatever becomes of a second look at what they wait for. */
const lookOnceMore = async (strapi: Core.Strapi, look: () => Promise<void>): Promise<void> => {
  try {
    await withTransientRetry(look);
  } catch (error) {
    // `wakeKnown` comes again by the clock.
    strapi.log.error(`switchboard: waiting events were not looked at again: ${errorText(error)}`);
  }
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
  const { batch, relatives } = await inTransaction(strapi, async ({ trx, onCommit }) => {
    const connections = await connectionsOf(strapi, trx, ids, connectionGroups, { lock: true });
    const rows = (await table(strapi, trx, POS_EVENTS_TABLE)
      .select('*')
      .whereIn(
        'id',
        claimed.map(({ id }) => id)
      )
      .orderBy('id')) as PosEventRow[];
    const { batch, relatives, changes } = await workOut(strapi, trx, rows, connections, times);
    const { touched, repriced } = await countMoney(strapi, trx, batch, connections);
    await settle(strapi, trx, claimed, batch, times);
    const settledRelatives = await updateRelatives(strapi, trx, relatives, times);
    const changed = [...batch, ...settledRelatives].filter(
      ({ row, waits }) => row.processed_at !== null || waits.length > 0
    );
    await storeWaits(
      strapi,
      trx,
      changed,
      changed.filter(({ row }) => row.processed_at !== null).map(({ id }) => id)
    );
    if (await markClosings(strapi, trx, touched)) onCommit(() => wakeComparing(strapi));
    if (await notePurchases(strapi, trx, batch, repriced)) {
      onCommit(() => wakeAttaching(strapi));
    }
    await storeMappedLines(strapi, trx, batch);
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
  await lookOnceMore(strapi, () => notifyKnown(strapi, batch));
  await lookOnceMore(strapi, () => notifyUndone(strapi, batch));
};
