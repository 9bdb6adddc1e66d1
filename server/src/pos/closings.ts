import type { Core } from '@strapi/strapi';
import type { ClosingAnswer, ClosingComparison } from '../../../shared/contracts/pos';
import { type Executor, table } from '../database/connection';
import { createTimeSlice } from '../runtime/event-loop';
import { type EventToPublish, getPublisher } from '../webhooks/publish';
import { readCounted } from './money/rollups';
import {
  type Connections,
  loadMembers,
  type MoneyRow,
  priceMembers,
  rowsOfGroups,
} from './money/members';
import { compareClosing, type ClosedRecord } from './rules/closing-comparison';
import type { ClosingRecord } from './rules/records';
import type { ConnectionMode } from './rules/states';
import { readClosing } from './rules/validate';
import {
  type ConnectionRow,
  type PosClosingRow,
  type PosEventRow,
  POS_CLOSINGS_TABLE,
  POS_EVENTS_TABLE,
} from './tables';

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
  strapi: Core.Strapi,
  trx: Executor,
  sales: readonly RangeRow[]
): Promise<Map<number, Pick<ClosedRecord, 'currency' | 'amount'>>> => {
  const money = new Map<number, Pick<ClosedRecord, 'currency' | 'amount'>>();
  const uncounted: number[] = [];
  const slice = createTimeSlice();
  for (const { id, connection_id: connection, effective_at: at, counted } of sales) {
    if (slice.isOver()) await slice.next();
    if (counted === null) uncounted.push(Number(id));
    else {
      const base = { kind: 'sale' as const, connection: Number(connection), at: Number(at) };
      money.set(Number(id), readCounted(counted, base));
    }
  }
  for (const { row, record } of await loadMembers(strapi, trx, uncounted)) {
    if (record.kind === 'sale') {
      money.set(Number(row.id), { currency: record.currency, amount: BigInt(record.total) });
    }
  }
  return money;
};

/** What refunds cost by all that was accepted, whether it was processed or not. */
const refundMoney = async (
  strapi: Core.Strapi,
  trx: Executor,
  refunds: readonly RangeRow[],
  mode: ConnectionMode,
  connections: Connections
): Promise<Map<number, Pick<ClosedRecord, 'currency' | 'amount'>>> => {
  const digests = [...new Set(refunds.flatMap(({ family_digest: digest }) => digest ?? []))];
  const rows: MoneyRow[] = await rowsOfGroups(strapi, trx, digests, connections, (query) =>
    query.where({ mode }).orderBy('id')
  );
  const ids = rows.map(({ id }) => Number(id));
  return priceMembers(await loadMembers(strapi, trx, ids), connections).refunds;
};

/**
 * Compares a closing with the sales and refunds of its connection that were accepted in its mode and
 * its range, held and waiting ones too (docs/tills.md#closing-a-shift).
 * @param connections  the closing's own and those of its group, locked
 */
export const compareWithRecords = async (
  strapi: Core.Strapi,
  trx: Executor,
  record: ClosingRecord,
  { connection, mode }: { connection: number; mode: ConnectionMode },
  connections: Connections
): Promise<ComparedClosing> => {
  const rows = (await table(strapi, trx, POS_EVENTS_TABLE)
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
      strapi,
      trx,
      rows.filter(({ kind }) => kind === 'sale')
    )),
    ...(await refundMoney(
      strapi,
      trx,
      rows.filter(({ kind }) => kind === 'refund'),
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
  strapi: Core.Strapi,
  trx: Executor,
  closing: PosClosingRow,
  connections: Connections
): Promise<ComparedClosing | null> => {
  const id = Number(closing.event_id);
  const event = (await table(strapi, trx, POS_EVENTS_TABLE)
    .select('state', 'body', 'received_at')
    .where({ id })
    .first()) as Pick<PosEventRow, 'state' | 'body' | 'received_at'> | undefined;
  if (!event) return null;
  const reading = readClosing(Buffer.from(event.body, 'utf8'), {
    receivedAtMs: Number(event.received_at),
  });
  if (!reading.ok) return null;
  const { mode } = closing;
  const connection = Number(closing.connection_id);
  const compared = await compareWithRecords(
    strapi,
    trx,
    reading.record,
    { connection, mode },
    connections
  );
  const result = JSON.stringify(compared.comparison);
  if (result !== closing.result) {
    await table(strapi, trx, POS_CLOSINGS_TABLE).where({ event_id: id }).update({ result });
  }
  if (compared.state === event.state) return compared;
  await table(strapi, trx, POS_EVENTS_TABLE).where({ id }).update({ state: compared.state });
  const row = connections.get(connection);
  if (mode === 'live' && row) {
    await getPublisher(strapi).publish([closingEvent(id, compared, row)]);
  }
  return compared;
};
