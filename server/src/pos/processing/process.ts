import type { App } from '../../app';
import { inParts } from '../../database/connection';
import type { Tx } from '../../database/db';
import { isInfrastructureFault, withTransientRetry } from '../../database/retry';
import { findInChunks, inChunks } from '../../database/written-rows';
import { inSpan, measures } from '../../observability/measures';
import { byClock, nextTurn, TimeSlice, whenLoaded } from '../../runtime/event-loop';
import { debugEach, debugLog, errorText, isoTime, logFailure } from '../../runtime/text';
import { BatchWorker } from './batch-worker';
import type { GroupHandler } from '../../scheduling/types';
import { type ItemName, lookUpItems } from '../../stock/items';
import { STOCK_EVENT_NAMES, stockChangeEvents } from '../../stock/ledger';
import { type EventToPublish, getPublisher } from '../../webhooks/publish';
import { comparing, markClosings } from '../closings';
import { type Connections, withConnections } from '../connections';
import { attaching, notePurchases, startAttaching } from '../customers';
import { itemWaits, joinWaits, loadMappings } from '../mappings';
import { type ConnectionMode, isWaiting, RECORD_KINDS, stateAfter } from '../rules/records';
import { graceIsOver } from '../rules/refunds';
import { RECORD_SCHEMAS } from '../rules/schemas';
import { tellOfSilentTills } from '../silence';
import {
  POS_EVENTS_TABLE,
  POS_MAPPED_LINES_TABLE,
  POS_MAPPINGS_TABLE,
  POS_WAITS_TABLE,
  type PosEventRow,
} from '../tables';
import {
  getRecordStore,
  LEASE_MS,
  type LeasedRecord,
  LostLease,
  RECORDS,
  type RecordSettlement,
  type RescheduledRecord,
  RESERVE_MS,
} from './record-store';
import { countMoney, loadRefundGroups, settleGoods, type Times } from './refund-group';
import {
  isRefund,
  isSale,
  isStocktake,
  openContext,
  placesOf,
  post,
  type ProcessingContext,
  resolve,
  resolveStandIns,
  settleLines,
  unknownLines,
  writePlaces,
} from './resolve';
import { wakeForProducts, wakeKnown, wakeMapped, wakeWaiting } from './waits';

export const timesOf = (app: App): Times => ({
  nowMs: app.clock.now(),
  graceMs: app.options.pos.refundGraceHours * 3_600_000,
});

/**
 * Computes the results of records: items, places, refund groups and movements, which it writes to the ledger. The
 * caller writes the records and their events.
 * @param connections those of the records and of their groups, by id
 * @param preview nothing is written, and no level and no sale is locked
 * @returns the records' results, the refund groups settled with them, and the changed levels
 */
export const workOut = async (
  tx: Tx,
  app: App,
  rows: readonly PosEventRow[],
  {
    connections,
    times,
    preview = false,
  }: { connections: Connections; times: Times; preview?: boolean }
) => {
  const batch: ProcessingContext[] = [];
  const slice = new TimeSlice();
  for (const row of rows) {
    const connection = connections.get(Number(row.connection_id));
    if (connection) batch.push(openContext(row, connection, true));
    if (slice.isOver()) await slice.next();
  }
  const standIns = await resolve(tx, app, batch, { preview });
  const groups = await loadRefundGroups(tx, batch, connections, { times, withMoney: !preview });
  const relatives = groups.flatMap((group) => group.settledRelatives);
  const others = relatives.length > 0 ? await resolveStandIns(tx, app, relatives) : [];
  const products = new Map([...standIns, ...others]);
  const refunds = await settleGoods(tx, groups, { preview });
  const changes = await post(tx, app, { batch, refunds, products, preview });
  batch.forEach(settleLines);
  return { batch, groups, changes };
};

const outcomeOf = (work: ProcessingContext, { nowMs }: Times) => ({
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
  counted_places: isStocktake(work) ? writePlaces(placesOf(work)) : null,
});

/** A held refund is looked at again when its grace period ends, and else when its sale comes. */
const dueAtOf = (work: ProcessingContext, { nowMs, graceMs }: Times): number | null => {
  const receivedAt = Number(work.row.received_at);
  const waits = work.state === 'held' && !graceIsOver(receivedAt, nowMs, graceMs);
  return waits ? receivedAt + graceMs : null;
};

/** Updates relatives whose settling had another result; a lease that begins meanwhile is kept. */
const updateRelatives = async (
  tx: Tx,
  app: App,
  refunds: readonly ProcessingContext[],
  times: Times
): Promise<void> => {
  const rescheduled: RescheduledRecord[] = [];
  for (const work of refunds) {
    const { row } = work;
    const { state, settled_flags: flags, simulated, took } = outcomeOf(work, times);
    if (
      row.state !== state ||
      row.settled_flags !== flags ||
      row.simulated !== simulated ||
      row.took === null ||
      Number(row.took) !== took
    ) {
      // Keeps a state that was set meanwhile.
      await tx
        .table(POS_EVENTS_TABLE)
        .where({ id: work.id, state: row.state })
        .update({ state, settled_flags: flags, simulated, took });
    }
    rescheduled.push({ row, state, dueAt: dueAtOf(work, times) });
  }
  await getRecordStore(app).reschedule(tx, rescheduled);
};

const storeWaits = async (tx: Tx, works: readonly ProcessingContext[]): Promise<void> => {
  const before = works.filter(({ row }) => row.processed_at !== null);
  for (const some of inChunks(before.map(({ id }) => id))) {
    await tx.table(POS_WAITS_TABLE).whereIn('event_id', some).delete();
  }
  const rows = works.flatMap(({ id, row, waits }) =>
    joinWaits(waits).map(({ inbox, ...wait }) => ({
      ...wait,
      event_id: id,
      inbox_digest: inbox,
      connection_id: Number(row.connection_id),
      at: Number(row.received_at),
    }))
  );
  await tx.insert(POS_WAITS_TABLE, rows);
};

/** Only the fields that the schemas name: a till's other fields are private. */
const namedFields = ({ row, record }: ProcessingContext): Record<string, unknown> => {
  const body = JSON.parse(row.body) as Record<string, unknown>;
  const { properties } = RECORD_SCHEMAS[record.kind] as { properties: Record<string, unknown> };
  return Object.fromEntries(
    Object.keys(properties).flatMap((field) =>
      Object.hasOwn(body, field) ? [[field, body[field]]] : []
    )
  );
};

const recordEvent = (work: ProcessingContext): EventToPublish => ({
  event: `pos.${work.row.kind}`,
  data: {
    event_id: work.id,
    state: work.state,
    flags: [...(JSON.parse(work.row.flags) as string[]), ...work.flags],
    connection: { id: Number(work.connection.id), name: work.connection.name },
    ...namedFields(work),
  },
  subject: { type: 'till_record', id: String(work.id), label: work.row.external_id },
});

const EVENT_NAMES = [...RECORD_KINDS.map((kind) => `pos.${kind}`), ...STOCK_EVENT_NAMES];

const applyWithin = async (
  tx: Tx,
  app: App,
  connections: Connections,
  { claimed, times }: { claimed: readonly LeasedRecord[]; times: Times }
): Promise<{ batch: ProcessingContext[]; relatives: ProcessingContext[] }> => {
  const ids = claimed.map(({ id }) => id);
  const rows: PosEventRow[] = await tx.table(POS_EVENTS_TABLE).whereIn('id', ids).orderBy('id');
  const { batch, groups, changes } = await workOut(tx, app, rows, { connections, times });
  const { touched, repriced } = await countMoney(tx, groups);
  const relatives = groups.flatMap((group) => group.settledRelatives).filter(isRefund);
  const works = new Map(batch.map((work) => [work.id, work]));
  const settlements = claimed.flatMap((lease): RecordSettlement[] => {
    const work = works.get(lease.id);
    return work ? [{ lease, dueAt: dueAtOf(work, times), outcome: outcomeOf(work, times) }] : [];
  });
  const logged = new Set(rows.map(({ id }) => Number(id)));
  const gone = claimed.filter(({ id }) => !logged.has(id));
  await getRecordStore(app).settle(tx, settlements, gone);
  if (relatives.length > 0) await updateRelatives(tx, app, relatives, times);
  const waiting = [...batch, ...relatives].filter(
    ({ row, waits }) => row.processed_at !== null || waits.length > 0
  );
  if (waiting.length > 0) await storeWaits(tx, waiting);
  await markClosings(tx, app, touched);
  const named = batch.filter((work) => isSale(work) && work.record.customer !== null);
  if (named.length > 0 || repriced.length > 0) await notePurchases(tx, app, named, repriced);
  const mappedLines = batch.flatMap(({ id, mapped }) =>
    mapped.map(({ mapping, line }) => ({ mapping_id: mapping, event_id: id, line }))
  );
  await tx.insert(POS_MAPPED_LINES_TABLE, mappedLines);
  // The events of live records, each once: when a record is processed for the first time.
  const first = batch.filter(({ row }) => row.mode === 'live' && row.processed_at === null);
  if (changes.length > 0 || first.length > 0) {
    const heard = await getPublisher(app).subscribed(EVENT_NAMES);
    if (heard.size > 0) {
      await getPublisher(app).publish([
        ...(await stockChangeEvents(tx, app, changes)),
        ...first.filter(({ row }) => heard.has(`pos.${row.kind}`)).map(recordEvent),
      ]);
    }
  }
  return { batch, relatives };
};

/**
 * Catches races: an item or mapping created while its lines were parked, or a mapping undone while a record used it.
 * The last to commit sees the other, here or in `wakeForItems` and the undo.
 */
const lookAgain = async (tx: Tx, app: App, batch: readonly ProcessingContext[]): Promise<void> => {
  const namesOf = (mode: ConnectionMode): ItemName[] =>
    batch.filter(({ row }) => row.mode === mode).flatMap(unknownLines);
  const names = [...namesOf('live'), ...namesOf('test')];
  // Test mode makes no items of products, and finds those that live records have made.
  const live = await lookUpItems(tx, app, namesOf('live'), 'adopt');
  const tried = await lookUpItems(tx, app, namesOf('test'), 'stand in');
  const mappings = await loadMappings(tx, names, []);
  const isKnown = (name: ItemName): boolean =>
    live.lookup(name) !== null || tried.lookup(name) !== null;
  const mapped = names.filter((name) => !isKnown(name) && mappings.ofLine(name) !== null);
  await wakeWaiting(tx, app, names.filter(isKnown).flatMap(itemWaits), 'item');
  await wakeWaiting(tx, app, mapped.flatMap(itemWaits), 'mapping');
  const used = batch.flatMap((work) => work.mapped.map(({ mapping }) => mapping));
  const undone = await findInChunks<{ id: number }>(used, (some) =>
    tx.table(POS_MAPPINGS_TABLE).select('id').whereIn('id', some).whereNotNull('undone_at')
  );
  for (const { id } of undone) await wakeMapped(tx, app, Number(id));
};

/** @param dueAt when it is looked at again by itself, epoch milliseconds; null: never */
const settledLine = ({ id, row, state }: ProcessingContext, dueAt: number | null): string => {
  const after = stateAfter(row.state, state);
  const again = dueAt === null ? '' : `, due again at ${isoTime(dueAt)}`;
  return `POS event ${id} ${isWaiting(after) ? 'waits:' : 'is'} ${after}${again}`;
};

const NOT_CHECKED = 'waiting records could not be checked again';

/**
 * Applies leased records in one transaction with ledger, states and leases. Run it again as a whole after a deadlock.
 * @throws LostLease, or the error of a record; then nothing has changed
 */
export const applyBatch = async (app: App, claimed: readonly LeasedRecord[]): Promise<void> => {
  const ids = [...new Set(claimed.map(({ group }) => group))];
  const times = timesOf(app);
  const { batch, relatives } = await withConnections(app, ids, (tx, connections) =>
    applyWithin(tx, app, connections, { claimed, times })
  );
  // A relative of an event is reported only if its outcome has changed.
  const isNews = ({ row, state }: ProcessingContext): boolean =>
    stateAfter(row.state, state) !== row.state;
  debugEach(app.strapi, [...batch, ...relatives.filter(isNews)], (work) =>
    settledLine(work, dueAtOf(work, times))
  );
  if (!batch.some((work) => work.mapped.length > 0 || unknownLines(work).length > 0)) return;
  // If it fails, the records stay applied. `wakeKnown` comes again by the clock.
  await app.db.retrying((tx) => lookAgain(tx, app, batch)).catch(logFailure(app, NOT_CHECKED));
};

/** Pauses after each failed attempt of a record; after the last it is `failed` and waits for its owner. */
const RETRY_MS = [1_000, 5_000, 30_000, 120_000];

const POLL_SECONDS = 5;
const SILENCE_SECONDS = 15;
/** How often what waits for something that is known is looked for; see `wakeKnown`. */
const KNOWN_MINUTES = 10;
/** The size of one transaction: many records of usual size, a few of the largest. */
const BATCH = 200;
const BATCH_BYTES = 1024 * 1024;

/** Records that one of a batch could not be applied; its lease ends with it. */
const recordFailure = async (app: App, lease: LeasedRecord, error: unknown): Promise<void> => {
  const store = getRecordStore(app);
  logFailure(app, `the POS event ${lease.id} could not be applied`)(error);
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
      const wokenBy = dueAt === null ? {} : { wokenBy: 'retry' as const };
      await store.settle(tx, [{ lease, dueAt, outcome, ...wokenBy }]);
      return { tries, dueAt };
    })
    .catch((lost: unknown) => {
      if (lost instanceof LostLease) return null;
      throw lost;
    });
  if (!failed) return;
  const next = failed.dueAt === null ? 'the last' : `due again at ${isoTime(failed.dueAt)}`;
  debugLog(app.strapi)?.(`POS event ${lease.id} failed on attempt ${failed.tries}, ${next}`);
};

/** Applies what is still held; one bad record never fails its neighbours. */
const applyAll = async (app: App, claimed: readonly LeasedRecord[]): Promise<void> => {
  let batch = [...claimed];
  while (batch.length > 0) {
    try {
      await withTransientRetry(() => applyBatch(app, batch));
      return;
    } catch (error) {
      if (error instanceof LostLease) {
        const { ids } = error;
        debugEach(app.strapi, ids, (id) => `POS event ${id} not applied: lease lost`);
        batch = batch.filter(({ id }) => !ids.has(id));
        continue;
      }
      // The infrastructure's fault: no attempt is counted. The worker keeps the batch and comes again.
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

export const createProcessor = (app: App): GroupHandler => {
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
    announce: (_group, at = store.now()) => app.scheduler.announce(RECORDS, null, at),
    async consume(leases) {
      const limits = { count: BATCH, bytes: BATCH_BYTES };
      for (const part of inParts(leases, limits, ({ size }) => size)) {
        const attributes = { 'switchboard.records': part.length };
        await inSpan('switchboard.apply', attributes, () => applyAll(app, part));
        measures().applied.add(part.length);
      }
    },
    onClaimed: (leases) =>
      debugEach(
        app.strapi,
        leases,
        ({ id, leaseUntil }) => `POS event ${id} claimed, lease until ${isoTime(leaseUntil)}`
      ),
    onUnstarted: (leases) =>
      debugEach(app.strapi, leases, ({ id }) => `POS event ${id} not applied: no time left`),
  });
};

/** A killed node may have committed something without waking the records that wait for it. */
const lookForKnown = (app: App, { products }: { products: boolean }): Promise<void> =>
  wakeKnown(app)
    .then(() => (products ? wakeForProducts(app) : undefined))
    .catch(logFailure(app, NOT_CHECKED, 'warn'));

/** The start that is given up, and the look that ends, before processing stops. */
const begun = (): { giveUpStart?: () => void; look?: Promise<void> } => ({});

/** Starts once the whole site has: woken by commits, by a timer for grace periods, and by cron. */
export const startProcessing = (app: App): void => {
  if (!app.options.pos.process) return;
  const handler = createProcessor(app);
  const { announce } = getRecordStore(app);
  app.part(begun).giveUpStart = whenLoaded(app.strapi, () => {
    app.scheduler.serve(RECORDS, handler);
    const lookAll = (): void => {
      announce();
      attaching(app).wake();
      comparing(app).wake();
    };
    const lookKnown = () => lookForKnown(app, { products: false });
    byClock(app.strapi, {
      // The backstop: other nodes' records, and those of a node that died.
      switchboardPosEvents: [`*/${POLL_SECONDS} * * * * *`, lookAll],
      switchboardSilentTills: [`*/${SILENCE_SECONDS} * * * * *`, () => tellOfSilentTills(app)],
      switchboardKnownValues: [`0 */${KNOWN_MINUTES} * * * *`, lookKnown],
    });
    announce();
    app.part(begun).look = lookForKnown(app, { products: true });
    startAttaching(app);
    comparing(app).start();
  });
};

/** Lets the batch under way commit. */
export const stopProcessing = async (app: App): Promise<void> => {
  const { giveUpStart, look } = app.part(begun);
  giveUpStart?.();
  await Promise.all([look, attaching(app).stop(), comparing(app).stop()]);
  await app.scheduler.stop(RECORDS);
};
