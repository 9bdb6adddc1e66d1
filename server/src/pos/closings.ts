import type { ClosingAnswer, ClosingComparison } from '../../../shared/contracts/pos';
import { inChunks } from '../database/written-rows';
import { createFaultLog, isInfrastructureFault, withTransientRetry } from '../database/retry';
import { BackgroundWork } from '../runtime/background-work';
import { TimeSlice } from '../runtime/event-loop';
import { errorText } from '../runtime/text';
import { type EventToPublish, getPublisher } from '../webhooks/publish';
import { connectionsOf, groupsOf } from './connections';
import {
  type Connections,
  priceAccepted,
  readMembers,
  type Touched,
} from './processing/refund-group';
import { readCounted } from './money/sales-figures';
import { getRecordStore } from './processing/record-store';
import { type ClosedRecord, compareClosing } from './rules/closing-comparison';
import type { ClosingRecord } from './rules/records';
import { type ConnectionMode, LIMITS } from './rules/states';
import { readRecord } from './rules/validate';
import {
  type ConnectionRow,
  POS_CLOSINGS_TABLE,
  POS_EVENTS_TABLE,
  type PosClosingRow,
  type PosEventRow,
} from './tables';
import type { App, Slot } from '../app';
import type { Db, Tx } from '../database/db';

export interface ComparedClosing {
  state: ClosingAnswer['state'];
  comparison: ClosingComparison;
}

type RangeRow = Pick<
  PosEventRow,
  | 'id'
  | 'kind'
  | 'connection_id'
  | 'external_id'
  | 'family_digest'
  | 'effective_at'
  | 'occurred_ms'
  | 'counted'
>;

/** Sales that were counted say what they came to; the bodies of the others are read. */
const saleMoney = async (
  tx: Tx,
  sales: readonly RangeRow[]
): Promise<Map<number, Pick<ClosedRecord, 'currency' | 'amount'>>> => {
  const money = new Map<number, Pick<ClosedRecord, 'currency' | 'amount'>>();
  const uncounted: number[] = [];
  const slice = new TimeSlice();
  for (const { id, connection_id: connection, effective_at: at, counted } of sales) {
    if (slice.isOver()) await slice.next();
    if (counted === null) uncounted.push(Number(id));
    else {
      const base = { kind: 'sale' as const, connection: Number(connection), at: Number(at) };
      money.set(Number(id), readCounted(counted, base));
    }
  }
  for (const { row, record } of await readMembers(tx, uncounted)) {
    if (record.kind === 'sale') {
      money.set(Number(row.id), { currency: record.currency, amount: BigInt(record.total) });
    }
  }
  return money;
};

/**
 * Compares a closing with the sales and refunds of its connection that were accepted in its mode and
 * its range, held and waiting ones too (docs/tills.md#closing-a-shift).
 * @param connections  the closing's own and those of its group, locked
 */
export const compareWithRecords = async (
  tx: Tx,
  record: ClosingRecord,
  { connection, mode }: { connection: number; mode: ConnectionMode },
  connections: Connections
): Promise<ComparedClosing> => {
  const rows = (await tx
    .table(POS_EVENTS_TABLE)
    .select(
      'id',
      'kind',
      'connection_id',
      'external_id',
      'family_digest',
      'effective_at',
      'occurred_ms',
      'counted'
    )
    .where({ connection_id: connection, mode })
    .where('occurred_ms', '>=', record.fromMs)
    .where('occurred_ms', '<', record.toMs)
    .whereIn('kind', ['sale', 'refund'])) as RangeRow[];
  // The same in whatever order they arrived.
  rows.sort(
    (a, b) =>
      Number(a.occurred_ms) - Number(b.occurred_ms) || (a.external_id < b.external_id ? -1 : 1)
  );
  const money = new Map([
    ...(await saleMoney(
      tx,
      rows.filter(({ kind }) => kind === 'sale')
    )),
    ...(await priceAccepted(
      tx,
      rows.flatMap(({ kind, family_digest: digest }) => (kind === 'refund' && digest) || []),
      mode,
      connections
    )),
  ]);
  const records = rows.map(({ id, kind, external_id: externalId }): ClosedRecord => {
    const { currency, amount } = money.get(Number(id)) ?? { currency: null, amount: 0n };
    return { kind: kind as ClosedRecord['kind'], externalId, currency, amount };
  });
  return compareClosing(record, records);
};

/** What a till is answered to a closing, and receivers are told of it. */
export const closingAnswer = (
  eventId: number,
  { state, comparison }: ComparedClosing,
  duplicate: boolean
): ClosingAnswer => ({ ok: true, event_id: eventId, state, duplicate, ...comparison });

/** `pos.closing`: the answer, with the connection. */
export const closingEvent = (
  eventId: number,
  compared: ComparedClosing,
  connection: Pick<ConnectionRow, 'id' | 'name'>
): EventToPublish => ({
  event: 'pos.closing',
  data: {
    ...closingAnswer(eventId, compared, false),
    connection: { id: Number(connection.id), name: connection.name },
  },
});

/**
 * Compares a stored closing anew and writes down what came of it; a live one whose state is another
 * one then tells so.
 * @returns what it comes to now; null where its body is no closing any more
 */
export const compareAgain = async (
  tx: Tx,
  app: App,
  closing: PosClosingRow,
  connections: Connections
): Promise<ComparedClosing | null> => {
  const id = Number(closing.event_id);
  const event = (await tx
    .table(POS_EVENTS_TABLE)
    .select('state', 'body', 'received_at')
    .where({ id })
    .first()) as Pick<PosEventRow, 'state' | 'body' | 'received_at'> | undefined;
  if (!event) return null;
  const reading = readRecord('closing', Buffer.from(event.body, 'utf8'), {
    receivedAtMs: Number(event.received_at),
  });
  if (!reading.ok) return null;
  const { mode } = closing;
  const connection = Number(closing.connection_id);
  const compared = await compareWithRecords(tx, reading.record, { connection, mode }, connections);
  const result = JSON.stringify(compared.comparison);
  if (result !== closing.result) {
    await tx.table(POS_CLOSINGS_TABLE).where({ event_id: id }).update({ result });
  }
  if (compared.state === event.state) return compared;
  await tx.table(POS_EVENTS_TABLE).where({ id }).update({ state: compared.state });
  const row = connections.get(connection);
  if (mode === 'live' && row) {
    await getPublisher(app).publish([closingEvent(id, compared, row)]);
  }
  return compared;
};

type Range = Pick<PosClosingRow, 'event_id' | 'connection_id' | 'mode' | 'from_at' | 'to_at'>;
type Due = Pick<PosClosingRow, 'event_id' | 'connection_id' | 'due_at'>;

const AT_ONCE = 20;
/** Comparing waits as long as it took, up to this: records are processed in between. */
const MAX_PAUSE_MS = 1_000;
/** One that cannot be compared is tried again after so long. */
const RETRY_MS = 600_000;

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

const closings = (db: Db) => db.table(POS_CLOSINGS_TABLE);

/** Times of records in ascending order, by connection and mode. */
const timesOf = (touched: readonly Touched[]): Map<string, number[]> => {
  const times = new Map<string, number[]>();
  for (const { connection, mode, at } of touched) {
    const key = `${mode}/${connection}`;
    const own = times.get(key);
    if (own) own.push(at);
    else times.set(key, [at]);
  }
  for (const own of times.values()) own.sort((a, b) => a - b);
  return times;
};

/** The first of ascending numbers that is not less. */
const firstFrom = (ascending: readonly number[], least: number): number | undefined => {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] as number) < least) low = middle + 1;
    else high = middle;
  }
  return ascending[low];
};

/**
 * Makes those closings due whose range has one of these records, in the transaction that processes
 * them; they are compared after it, once each, however many records and batches it were. It locks the
 * connections, as accepting and comparing a closing do: so a record that a closing did not see is met
 * here, whichever of the two was first.
 * @returns whether any is due now
 */
export const markClosings = async (
  tx: Tx,
  app: App,
  touched: readonly Touched[]
): Promise<boolean> => {
  if (touched.length === 0) return false;
  const times = timesOf(touched);
  const [earliest, latest] = touched.reduce(
    ([least, most], { at }) => [Math.min(least, at), Math.max(most, at)],
    [Infinity, -Infinity]
  );
  const ranges = (await closings(tx)
    .select('event_id', 'connection_id', 'mode', 'from_at', 'to_at')
    .whereIn('connection_id', [...new Set(touched.map(({ connection }) => connection))])
    .where('to_at', '>', earliest)
    .where('to_at', '<=', latest + LIMITS.closingMs)
    .where('from_at', '<=', latest)
    .whereNull('due_at')) as Range[];
  const due = ranges.filter(({ connection_id: connection, mode, from_at: from, to_at: to }) => {
    const at = firstFrom(times.get(`${mode}/${Number(connection)}`) ?? [], Number(from));
    return at !== undefined && at < Number(to);
  });
  const dueAt = getRecordStore(app).now();
  for (const some of inChunks(due.map(({ event_id: id }) => id))) {
    await closings(tx).whereIn('event_id', some).update({ due_at: dueAt });
  }
  return due.length > 0;
};

const compareDue = async (
  app: App,
  { event_id: id, connection_id: connection }: Due
): Promise<void> => {
  const ids = [Number(connection)];
  const groups = await groupsOf(await app.db.current(), ids);
  await app.db.transaction(async (tx) => {
    // First of all: MySQL goes on reading what was there when the transaction first read.
    const connections = await connectionsOf(tx, ids, groups, { lock: true });
    const closing = (await closings(tx).where({ event_id: id }).first()) as
      PosClosingRow | undefined;
    if (!closing || closing.due_at === null) return;
    await compareAgain(tx, app, closing, connections);
    await closings(tx).where({ event_id: id }).update({ due_at: null });
  });
};

const compareSafely = async (app: App, due: Due): Promise<void> => {
  try {
    await withTransientRetry(() => compareDue(app, due));
  } catch (error) {
    if (isInfrastructureFault(error)) throw error;
    const { event_id: id, due_at: seen } = due;
    app.log.error(`switchboard: the closing ${id} was not compared again: ${errorText(error)}`);
    await closings(await app.db.current())
      .where({ event_id: id, due_at: seen })
      .update({ due_at: getRecordStore(app).now() + RETRY_MS });
  }
};

/** Compares those closings that are due, each in a transaction of its own. */
export const compareDueClosings = async (
  app: App,
  isStopped: () => boolean = () => false
): Promise<void> => {
  for (;;) {
    const due = (await closings(await app.db.current())
      .select('event_id', 'connection_id', 'due_at')
      .where('due_at', '<=', getRecordStore(app).now())
      .orderBy('due_at')
      .limit(AT_ONCE)) as Due[];
    if (due.length === 0) return;
    for (const one of due) {
      if (isStopped()) return;
      const startedAt = performance.now();
      await compareSafely(app, one);
      await pause(Math.min(performance.now() - startedAt, MAX_PAUSE_MS));
    }
  }
};

const works = (): Slot<BackgroundWork> => ({});

/** Compares due closings now; for the moment after a commit, and by the clock. Never throws. */
export const wakeComparing = (app: App): void => app.part(works).value?.wake();

export const startComparing = (app: App): void => {
  const logFault = createFaultLog(app.log);
  app.part(works).value = new BackgroundWork({
    detached: (passes) => getRecordStore(app).detached(passes),
    pass: (isStopped) => compareDueClosings(app, isStopped),
    failed: (error) => logFault('switchboard: closings were not compared again', error),
  });
  wakeComparing(app);
};

/** Lets the one under way commit. */
export const stopComparing = async (app: App): Promise<void> => app.part(works).value?.stop();

/** Compares the closing of an event with the records as they are now. */
export const compareClosingAgain = (app: App, eventId: number): Promise<void> =>
  withTransientRetry(async () => {
    const db = await app.db.current();
    const closing = (await db.table(POS_CLOSINGS_TABLE).where({ event_id: eventId }).first()) as
      PosClosingRow | undefined;
    if (!closing) return;
    const ids = [Number(closing.connection_id)];
    const groups = await groupsOf(db, ids);
    await app.db.transaction(async (tx) => {
      const connections = await connectionsOf(tx, ids, groups, { lock: true });
      await compareAgain(tx, app, closing, connections);
    });
  });
