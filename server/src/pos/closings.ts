import type { ClosingAnswer } from '../../../shared/contracts/pos';
import type { Accepted } from '../../../shared/contracts/till-answers';
import type { App } from '../app';
import type { Db, Tx } from '../database/db';
import { inChunks } from '../database/written-rows';
import { TimeSlice } from '../runtime/event-loop';
import { errorText } from '../runtime/text';
import { getPublisher } from '../webhooks/publish';
import { type Connections, withConnections } from './connections';
import { DueRows } from './due-rows';
import { duplicateOf, findStored, rowOf, type StoredEvent, type Submission } from './intake/accept';
import { answerOfAcceptance } from './intake/wire';
import { priceAccepted, readMembers, type Touched } from './processing/refund-group';
import { readStored } from './processing/resolve';
import { type ClosedRecord, compareClosing } from './rules/closing-comparison';
import { type ClosingRecord, type ConnectionMode, LIMITS } from './rules/records';
import { readCounted } from './sales-figures';
import {
  type ConnectionRow,
  POS_CLOSINGS_TABLE,
  POS_EVENTS_TABLE,
  type PosClosingRow,
  type PosEventRow,
} from './tables';

type ComparedClosing = ReturnType<typeof compareClosing>;

const COLUMNS = ['id', 'kind', 'external_id', 'family_digest', 'occurred_ms', 'counted'] as const;
type RangeRow = Pick<PosEventRow, (typeof COLUMNS)[number]>;
type Money = Map<number, Pick<ClosedRecord, 'currency' | 'amount'>>;

/** Sales that were counted say what they came to; the bodies of the others are read. */
const saleMoney = async (tx: Tx, sales: readonly RangeRow[]): Promise<Money> => {
  const money: Money = new Map();
  const uncounted: number[] = [];
  const slice = new TimeSlice();
  for (const { id, counted } of sales) {
    if (slice.isOver()) await slice.next();
    if (counted === null) uncounted.push(Number(id));
    else money.set(Number(id), readCounted(counted));
  }
  for (const { row, record } of await readMembers(tx, uncounted)) {
    if (record.kind === 'sale') {
      money.set(Number(row.id), { currency: record.currency, amount: BigInt(record.total) });
    }
  }
  return money;
};

/**
 * Compares a closing with its connection's accepted sales and refunds of its mode and range, held and waiting ones
 * included (docs/tills.md#closing-a-shift).
 * @param connections the closing's own and those of its group, locked
 */
const compareWithRecords = async (
  tx: Tx,
  record: ClosingRecord,
  { connection, mode }: { connection: number; mode: ConnectionMode },
  connections: Connections
): Promise<ComparedClosing> => {
  const rows: RangeRow[] = await tx
    .table(POS_EVENTS_TABLE)
    .select(...COLUMNS)
    .where({ connection_id: connection, mode })
    .where('occurred_ms', '>=', record.fromMs)
    .where('occurred_ms', '<', record.toMs)
    .whereIn('kind', ['sale', 'refund']);
  // The order is independent of their receipt.
  rows.sort(
    (a, b) =>
      Number(a.occurred_ms) - Number(b.occurred_ms) || (a.external_id < b.external_id ? -1 : 1)
  );
  const sales = rows.filter(({ kind }) => kind === 'sale');
  const refunded = rows.flatMap(
    ({ kind, family_digest: digest }) => (kind === 'refund' && digest) || []
  );
  const money = new Map([
    ...(await saleMoney(tx, sales)),
    ...(await priceAccepted(tx, refunded, mode, connections)),
  ]);
  const records = rows.map(({ id, kind, external_id: externalId }): ClosedRecord => {
    const { currency, amount } = money.get(Number(id)) ?? { currency: null, amount: 0n };
    return { kind: kind as ClosedRecord['kind'], externalId, currency, amount };
  });
  return compareClosing(record, records);
};

/** The till's answer to a closing, which is also in the event for receivers. */
const closingAnswer = (
  eventId: number,
  { state, comparison }: ComparedClosing,
  duplicate: boolean
): ClosingAnswer => ({ ok: true, event_id: eventId, state, duplicate, ...comparison });

/** `pos.closing`: the answer, with the connection; of live closings only. */
const publishClosing = async (
  app: App,
  { id, external_id: label, mode }: Pick<PosEventRow, 'id' | 'external_id' | 'mode'>,
  compared: ComparedClosing,
  connection: ConnectionRow | undefined
): Promise<void> => {
  if (!connection || mode !== 'live') return;
  const named = { connection: { id: Number(connection.id), name: connection.name } };
  const data = { ...closingAnswer(id, compared, false), ...named };
  const subject = { type: 'till_record', id: String(id), label } as const;
  await getPublisher(app).publish([{ event: 'pos.closing', data, subject }]);
};

/** Compares a stored closing again and stores the result; live ones publish a state change. Null: it is unreadable. */
const compareAgain = async (tx: Tx, app: App, closing: PosClosingRow, connections: Connections) => {
  const id = Number(closing.event_id);
  const event: Pick<PosEventRow, 'state' | 'body' | 'received_at' | 'external_id'> | undefined =
    await tx
      .table(POS_EVENTS_TABLE)
      .where({ id })
      .first('state', 'body', 'received_at', 'external_id');
  if (!event) return null;
  const reading = readStored('closing', event);
  if (!reading.ok) return null;
  const { mode } = closing;
  const connection = Number(closing.connection_id);
  const compared = await compareWithRecords(tx, reading.value, { connection, mode }, connections);
  const result = JSON.stringify(compared.comparison);
  if (result !== closing.result) await closings(tx).where({ event_id: id }).update({ result });
  if (compared.state === event.state) return compared;
  await tx.table(POS_EVENTS_TABLE).where({ id }).update({ state: compared.state });
  const named = { id, external_id: event.external_id, mode };
  await publishClosing(app, named, compared, connections.get(connection));
  return compared;
};

const closings = (db: Db) => db.table(POS_CLOSINGS_TABLE);

const closingOf = async (db: Db, eventId: number): Promise<PosClosingRow | undefined> =>
  closings(db).where({ event_id: eventId }).first();

type Answered = { status: 200 | 202; body: ClosingAnswer | Accepted };

/** Answers a used id: of this closing, another one, or a record of another kind. */
const answerAgain = async (
  tx: Tx,
  app: App,
  { submission, stored }: { submission: Submission<ClosingRecord>; stored: StoredEvent },
  connections: Connections
): Promise<Answered> => {
  const duplicate = duplicateOf(submission, stored);
  const { eventId, mismatch } = duplicate;
  if (mismatch && !stored.payload_mismatch) {
    await tx.table(POS_EVENTS_TABLE).where({ id: eventId }).update({ payload_mismatch: true });
  }
  const closing = await closingOf(tx, eventId);
  const compared = closing && (await compareAgain(tx, app, closing, connections));
  if (!compared) return answerOfAcceptance('closing', duplicate);
  const body = closingAnswer(eventId, compared, true);
  return { status: 200, body: { ...body, ...(mismatch && { payload_mismatch: true as const }) } };
};

/** Closings are judged on acceptance, so they are never in the queue. */
const accept = async (
  tx: Tx,
  app: App,
  submission: Submission<ClosingRecord>,
  connections: Connections
): Promise<Answered> => {
  const { connection, record, receivedAtMs } = submission;
  const place = { connection: Number(connection.id), mode: connection.mode };
  const compared = await compareWithRecords(tx, record, place, connections);
  await tx
    .table(POS_EVENTS_TABLE)
    .insert({ ...rowOf(submission), state: compared.state, processed_at: receivedAtMs });
  const stored = (await findStored(tx, [submission])).get(submission.key);
  if (!stored) throw new Error('An accepted closing is not in its transaction.');
  const eventId = Number(stored.id);
  await closings(tx).insert({
    event_id: eventId,
    connection_id: place.connection,
    mode: place.mode,
    from_at: record.fromMs,
    to_at: record.toMs,
    result: JSON.stringify(compared.comparison),
  });
  const named = { id: eventId, external_id: record.externalId, mode: place.mode };
  await publishClosing(app, named, compared, connection);
  return { status: 202, body: closingAnswer(eventId, compared, false) };
};

/** Accepts a closing, or answers what it comes to now (docs/tills.md#closing-a-shift). */
export const answerClosing = (app: App, submission: Submission<ClosingRecord>): Promise<Answered> =>
  app.db.unique(() =>
    withConnections(app, [Number(submission.connection.id)], async (tx, connections) => {
      const stored = (await findStored(tx, [submission])).get(submission.key);
      return stored
        ? answerAgain(tx, app, { submission, stored }, connections)
        : accept(tx, app, submission, connections);
    })
  );

type Range = Pick<PosClosingRow, 'event_id' | 'connection_id' | 'mode' | 'from_at' | 'to_at'>;

/**
 * Marks closings due whose range contains one of these records, in the transaction that processes them; each is
 * compared once afterwards. Locks the connections like accepting and comparing do, so a record that a closing missed is
 * found here, whichever came first.
 */
export const markClosings = async (tx: Tx, app: App, rows: readonly Touched[]) => {
  if (rows.length === 0) return;
  const touched = rows.map(({ connection_id: connection, mode, occurred_ms: at }) => ({
    connection: Number(connection),
    mode,
    at: Number(at),
  }));
  const earliest = touched.reduce((least, { at }) => Math.min(least, at), Infinity);
  const latest = touched.reduce((most, { at }) => Math.max(most, at), -Infinity);
  const ranges: Range[] = await closings(tx)
    .select('event_id', 'connection_id', 'mode', 'from_at', 'to_at')
    .whereIn('connection_id', [...new Set(touched.map(({ connection }) => connection))])
    .where('to_at', '>', earliest)
    .where('to_at', '<=', latest + LIMITS.closingMs)
    .where('from_at', '<=', latest)
    .whereNull('due_at');
  const due = ranges.filter(({ connection_id: connection, mode, from_at: from, to_at: to }) =>
    touched.some(
      (one) =>
        one.connection === Number(connection) &&
        one.mode === mode &&
        one.at >= Number(from) &&
        one.at < Number(to)
    )
  );
  const dueAt = app.clock.now();
  for (const some of inChunks(due.map(({ event_id: id }) => id))) {
    await closings(tx).whereIn('event_id', some).update({ due_at: dueAt });
  }
  if (due.length > 0) tx.onCommit(() => comparing(app).wake());
};

/** Compares the closing of an event with the current records; `onlyDue` skips it if another node has done it since. */
export const compareStored = async (
  app: App,
  eventId: number,
  { onlyDue = false }: { onlyDue?: boolean } = {}
): Promise<void> => {
  const known = await closingOf(await app.db.current(), eventId);
  if (!known) return;
  await withConnections(app, [Number(known.connection_id)], async (tx, connections) => {
    const closing = await closingOf(tx, eventId);
    if (!closing || (onlyDue && closing.due_at === null)) return;
    await compareAgain(tx, app, closing, connections);
    await closings(tx).where({ event_id: eventId }).update({ due_at: null });
  });
};

type DueClosing = Pick<PosClosingRow, 'event_id' | 'due_at'>;

/** One that cannot be compared is tried again after so long. */
const RETRY_MS = 600_000;

const createComparing = (app: App): DueRows<DueClosing> =>
  new DueRows<DueClosing>(app, {
    tableName: POS_CLOSINGS_TABLE,
    columns: [],
    work: ({ event_id: id }) => compareStored(app, id, { onlyDue: true }),
    failed({ event_id: id }, error) {
      app.log.error(`switchboard: the closing ${id} was not compared again: ${errorText(error)}`);
      return { due_at: app.clock.now() + RETRY_MS };
    },
    // Records are processed between batches.
    longestRestMs: 1_000,
    fault: 'closings were not compared again',
  });

export const comparing = (app: App): DueRows<DueClosing> => app.part(createComparing);
