import type { App, Slot } from '../../app';
import type { Db, Tx } from '../../database/db';
import type { Lease } from '../../queue/queue';
import { isInfrastructureFault, withTransientRetry } from '../../database/retry';
import { inParts } from '../../database/connection';
import { inSpan, measures } from '../../observability/measures';
import { whenLoaded } from '../../runtime/background-work';
import { debugEach, debugLog, errorText, isoTime } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { BatchWorker } from '../../scheduling/batch-worker';
import type { ServedHandler } from '../../scheduling/types';
import { type ItemName, lookUpItems, lookUpTrialItems } from '../../stock/items';
import { stockChangeEvents } from '../../stock/ledger';
import { getPublisher } from '../../webhooks/publish';
import { markClosings, startComparing, stopComparing, wakeComparing } from '../closings';
import { connectionsOf, groupsOf } from '../connections';
import { notePurchases, startAttaching, stopAttaching, wakeAttaching } from '../customers';
import { itemWaits, loadMappings } from '../mappings';
import { graceIsOver } from '../rules/refunds';
import { isWaiting, stateAfter } from '../rules/states';
import { tellOfSilentTills } from '../silence';
import { POS_EVENTS_TABLE, type PosEventRow } from '../tables';
import { placesOf, type ProcessingContext, unknownNames } from './processing-context';
import { recordEvents } from './events';
import {
  getRecordStore,
  LEASE_MS,
  type LeasedRecord,
  LostLease,
  type RecordOutcome,
  RECORDS,
  type RecordSettlement,
  type RescheduledRecord,
  RESERVE_MS,
} from './record-store';
import { countMoney, type Times } from './refund-group';
import { notifyUndone, storeWaits, wakeForProducts, wakeKnown, wakeWaiting } from './waits';
import { storeMappedLines, workOut } from './work-out';

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
  counted_places: placesOf(work),
});

/** A held refund is looked at again when its grace period ends, and else when its sale comes. */
const dueAt = (work: ProcessingContext, { nowMs, graceMs }: Times): number | null => {
  const receivedAt = Number(work.row.received_at);
  const waits = work.state === 'held' && !graceIsOver(receivedAt, nowMs, graceMs);
  return waits ? receivedAt + graceMs : null;
};

const settle = async (
  tx: Tx,
  app: App,
  claimed: readonly LeasedRecord[],
  rows: readonly PosEventRow[],
  works: readonly ProcessingContext[],
  times: Times
): Promise<void> => {
  const byId = new Map(works.map((work) => [work.id, work]));
  const settlements = claimed.flatMap((lease): RecordSettlement[] => {
    const work = byId.get(lease.id);
    return work ? [{ lease, dueAt: dueAt(work, times), outcome: outcomeOf(work, times) }] : [];
  });
  const logged = new Set(rows.map(({ id }) => Number(id)));
  const gone = claimed.filter(({ id }) => !logged.has(id));
  await getRecordStore(app).settle(tx, settlements, gone);
};

/** Relatives whose settling came out otherwise; whoever leases one meanwhile keeps its lease. */
const updateRelatives = async (
  tx: Tx,
  app: App,
  relatives: readonly ProcessingContext[],
  times: Times
): Promise<ProcessingContext[]> => {
  const refunds = relatives.filter(({ row }) => row.kind === 'refund');
  const rescheduled: RescheduledRecord[] = [];
  for (const work of refunds) {
    const { row } = work;
    const { state, settled_flags: flags, simulated, took } = outcomeOf(work, times);
    // Not over a state that somebody else gave it meanwhile.
    const events = () => tx.table(POS_EVENTS_TABLE).where({ id: work.id, state: row.state });
    if (
      row.state !== state ||
      row.settled_flags !== flags ||
      row.simulated !== simulated ||
      row.took === null ||
      Number(row.took) !== took
    ) {
      await events().update({ state, settled_flags: flags, simulated, took });
    }
    rescheduled.push({ row, state, dueAt: dueAt(work, times) });
  }
  await getRecordStore(app).reschedule(tx, rescheduled);
  return refunds;
};

/**
 * An item that was made while its lines were being parked saw nobody wait for it, and they saw no
 * item. Whoever commits last sees the other: here, or in `wakeForItems`.
 */
const notifyKnown = async (app: App, batch: readonly ProcessingContext[]): Promise<void> => {
  const names = batch.flatMap(unknownNames);
  if (names.length === 0) return;
  await app.db.transaction(async (tx) => {
    const namesOf = (mode: string): ItemName[] =>
      batch.filter(({ row }) => row.mode === mode).flatMap(unknownNames);
    // Test mode makes no items of products, and finds those that live records have made.
    const live = await lookUpItems(tx, app, namesOf('live'), tx);
    const { lookup: tried } = await lookUpTrialItems(tx, app, namesOf('test'));
    const mappings = await loadMappings(tx, names, []);
    const isKnown = (name: ItemName): boolean => live(name) !== null || tried(name) !== null;
    const isMapped = (name: ItemName): boolean => mappings.ofLine(name) !== null;
    const known = names.filter(isKnown);
    const mapped = names.filter((name) => !isKnown(name) && isMapped(name));
    await wakeWaiting(tx, app, known.flatMap(itemWaits), 'item');
    await wakeWaiting(tx, app, mapped.flatMap(itemWaits), 'mapping');
  });
};

/** Records that were applied stay applied, whatever becomes of a second look at what they wait for. */
const lookOnceMore = async (app: App, look: () => Promise<void>): Promise<void> => {
  try {
    await withTransientRetry(look);
  } catch (error) {
    // `wakeKnown` comes again by the clock.
    app.log.error(`switchboard: waiting events were not looked at again: ${errorText(error)}`);
  }
};

/**
 * Applies leased records, all in one transaction: ledger, states and leases change together or not
 * at all. Run it again as a whole after a deadlock.
 * @throws LostLease, or whatever a record's own fault is; then nothing has changed
 */
export const applyBatch = async (
  app: App,
  claimed: readonly LeasedRecord[],
  db: Db
): Promise<void> => {
  const ids = [...new Set(claimed.map(({ group }) => group))];
  const connectionGroups = await groupsOf(db, ids);
  const times: Times = {
    nowMs: getRecordStore(app).now(),
    graceMs: app.options.pos.refundGraceHours * 3_600_000,
  };
  const { batch, relatives } = await app.db.transaction(async (tx) => {
    const connections = await connectionsOf(tx, ids, connectionGroups, { lock: true });
    const rows = (await tx
      .table(POS_EVENTS_TABLE)
      .select('*')
      .whereIn(
        'id',
        claimed.map(({ id }) => id)
      )
      .orderBy('id')) as PosEventRow[];
    const { batch, groups, changes } = await workOut(tx, app, rows, connections, times);
    const { touched, repriced } = await countMoney(tx, groups);
    const relatives = groups.flatMap((group) => group.settledRelatives);
    await settle(tx, app, claimed, rows, batch, times);
    const settledRelatives = await updateRelatives(tx, app, relatives, times);
    const changed = [...batch, ...settledRelatives].filter(
      ({ row, waits }) => row.processed_at !== null || waits.length > 0
    );
    await storeWaits(
      tx,
      changed,
      changed.filter(({ row }) => row.processed_at !== null).map(({ id }) => id)
    );
    if (await markClosings(tx, app, touched)) tx.onCommit(() => wakeComparing(app));
    if (await notePurchases(tx, app, batch, repriced)) {
      tx.onCommit(() => wakeAttaching(app));
    }
    await storeMappedLines(tx, batch);
    await getPublisher(app).publish([
      ...(await stockChangeEvents(tx, app, changes)),
      ...(await recordEvents(app, batch)),
    ]);
    return { batch, relatives: settledRelatives };
  });
  const debug = debugLog(app.strapi);
  if (debug) {
    const news = [...batch, ...relatives].filter(isNews);
    for (const work of news) debug(settledLine(work, dueAt(work, times)));
  }
  await lookOnceMore(app, () => notifyKnown(app, batch));
  await lookOnceMore(app, () => notifyUndone(app, batch));
};

/** A record whose own fault it is gets this many tries, then it is `failed` and waits for its owner. */
const RETRY_MS = [1_000, 5_000, 30_000, 120_000];

const POLL_SECONDS = 5;
const SILENCE_SECONDS = 15;
/** How often what waits for something that is known is looked for; see `wakeKnown`. */
const KNOWN_MINUTES = 10;
/** What is applied in one transaction: so many records of usual size, a few of the largest. */
const BATCH = 200;
const BATCH_BYTES = 1024 * 1024;

/** Records that one of a batch could not be applied; its lease ends with it. */
const recordFailure = async (app: App, lease: LeasedRecord, error: unknown): Promise<void> => {
  const store = getRecordStore(app);
  app.log.error(`switchboard: the POS event ${lease.id} could not be applied: ${errorText(error)}`);
  const failed = await app.db
    .transaction(async (tx) => {
      // As it is now: since it was claimed, its group may have been settled, and it with them.
      const now = await store.lock(tx, lease.id);
      if (!now) return null;
      const delay = RETRY_MS[Number(now.tries)];
      const dueAt = delay === undefined ? null : store.now() + delay;
      const tries = Number(now.tries) + 1;
      const state = dueAt === null ? stateAfter(now.state, 'failed') : now.state;
      const outcome = { state, tries, error: errorText(error).slice(0, 250) };
      const settlement = {
        lease,
        dueAt,
        outcome,
        ...(dueAt !== null && { wokenBy: 'retry' as const }),
      };
      await store.settle(tx, [settlement]);
      return { tries, dueAt };
    })
    .catch((lost: unknown) => {
      if (lost instanceof LostLease) return null;
      throw lost;
    });
  if (failed) debugLog(app.strapi)?.(failedLine(lease.id, failed.tries, failed.dueAt));
};

/** Applies what is still held; one bad record never fails its neighbours. */
const applyAll = async (app: App, claimed: readonly LeasedRecord[]): Promise<void> => {
  let batch = [...claimed];
  while (batch.length > 0) {
    try {
      await withTransientRetry(async () => applyBatch(app, batch, await app.db.current()));
      return;
    } catch (error) {
      if (error instanceof LostLease) {
        const { ids } = error;
        debugEach(app.strapi, ids, (id) => unappliedLine(id, 'lease lost'));
        batch = batch.filter(({ id }) => !ids.has(id));
        continue;
      }
      // Nobody's fault: it counts no try. The worker keeps the batch and comes again.
      if (isInfrastructureFault(error)) throw error;
      if (batch.length === 1) {
        await recordFailure(app, batch[0] as LeasedRecord, error);
        return;
      }
      for (const one of batch) {
        await nextTurn();
        await applyAll(app, [one]);
      }
      return;
    }
  }
};

/** Applies what was accepted, on this node. */
export const createProcessor = (app: App): ServedHandler => {
  const store = getRecordStore(app);
  return new BatchWorker<LeasedRecord>({
    name: RECORDS,
    store,
    log: app.log,
    claimAtOnce: BATCH,
    reserveMs: RESERVE_MS,
    pollMs: POLL_SECONDS * 1000,
    // Nothing has been done that could be forgotten: after a lease they are simply applied later.
    keepMs: 2 * LEASE_MS,
    announce: store.announce,
    async consume(leases) {
      const limits = { count: BATCH, bytes: BATCH_BYTES };
      for (const part of inParts(leases, limits, ({ size }) => size)) {
        const attributes = { 'switchboard.records': part.length };
        await inSpan('switchboard.apply', attributes, () => applyAll(app, part));
        measures().applied.add(part.length);
      }
    },
    onClaimed: (leases) => debugEach(app.strapi, leases, claimedLine),
    onLate: (leases) =>
      debugEach(app.strapi, leases, ({ id }) => unappliedLine(id, 'no time left')),
  });
};

/** A node that was killed may have made something known and told nobody. */
const lookForKnown = async (app: App, { products }: { products: boolean }) => {
  try {
    await wakeKnown(app);
    if (products) await wakeForProducts(app);
  } catch (error) {
    app.log.warn(`switchboard: waiting events were not looked at again: ${errorText(error)}`);
  }
};

const starts = (): Slot<() => void> => ({});
const looks = (): Slot<Promise<void>> => ({});

/**
 * Starts once the whole site has: woken by commits, by a timer for grace periods that end, and by
 * cron.
 */
export const startProcessing = (app: App): void => {
  if (!app.options.pos.process) return;
  const handler = createProcessor(app);
  const { announce } = getRecordStore(app);
  const giveUpStart = whenLoaded(app.strapi, () => {
    app.scheduler.serve(RECORDS, handler);
    app.strapi.cron.add({
      // The backstop: other nodes' records, and those of a node that died.
      switchboardPosEvents: {
        task: async () => {
          announce();
          wakeAttaching(app);
          wakeComparing(app);
        },
        options: { rule: `*/${POLL_SECONDS} * * * * *` },
      },
      switchboardSilentTills: {
        task: () => tellOfSilentTills(app),
        options: { rule: `*/${SILENCE_SECONDS} * * * * *` },
      },
      switchboardKnownValues: {
        task: () => lookForKnown(app, { products: false }),
        options: { rule: `0 */${KNOWN_MINUTES} * * * *` },
      },
    });
    announce();
    app.part(looks).value = lookForKnown(app, { products: true });
    startAttaching(app);
    startComparing(app);
  });
  app.part(starts).value = giveUpStart;
};

/** Lets the batch under way commit. */
export const stopProcessing = async (app: App): Promise<void> => {
  app.part(starts).value?.();
  await Promise.all([app.part(looks).value, stopAttaching(app), stopComparing(app)]);
  await app.scheduler.stop(RECORDS);
};

export const claimedLine = ({ id, leaseUntil }: Lease): string =>
  `POS event ${id} claimed, lease until ${isoTime(leaseUntil)}`;

/** Why an event that was claimed is not applied now. */
export const unappliedLine = (id: number, why: 'no time left' | 'lease lost'): string =>
  `POS event ${id} not applied: ${why}`;

/** A relative of an event is spoken of only where it came out otherwise than before. */
export const isNews = ({ mine, row, state }: ProcessingContext): boolean =>
  mine || stateAfter(row.state, state) !== row.state;

/** @param dueAt when it is looked at again by itself, epoch milliseconds; null: never */
export const settledLine = (
  { id, row, state }: ProcessingContext,
  dueAt: number | null
): string => {
  const after = stateAfter(row.state, state);
  const again = dueAt === null ? '' : `, due again at ${isoTime(dueAt)}`;
  return `POS event ${id} ${isWaiting(after) ? 'waits:' : 'is'} ${after}${again}`;
};

/** @param dueAt when it is tried again; null: its owner has to have it processed */
export const failedLine = (id: number, tries: number, dueAt: number | null): string =>
  `POS event ${id} failed on try ${tries}, ${dueAt === null ? 'the last' : `due again at ${isoTime(dueAt)}`}`;
