import type { ClosingSummary, PosEvent, SimulatedMovement } from '../../../shared/contracts/pos';
import type { LocationSummary } from '../../../shared/contracts/stock';
import { isoTime, isoTimeOrNull } from '../runtime/text';
import type { LedgerLine } from '../stock/ledger';
import type { ItemRow, LocationRow } from '../stock/tables';
import { readCounted } from './money/sales-figures';
import { lineNames } from './rules/records';
import type { EventState } from './rules/states';
import { readRecord } from './rules/validate';
import type { PosEventRow } from './tables';

/** What a test-mode record would have written, as it is stored with its event. */
export type SimulatedLine = LedgerLine;

/** Test mode parks nothing, but what it did not know would be parked once the connection is live. */
const WITH_UNKNOWN: readonly EventState[] = [
  'needs_mapping',
  'partially_applied',
  'simulated',
  'held',
];

/** Whether lines of an event may wait for something; only then is its body looked at in lists. */
export const mayWait = ({ state }: Pick<PosEventRow, 'state'>): boolean =>
  WITH_UNKNOWN.includes(state);

/** Lines that a mapping says to ignore. */
const ignoredOf = ({ ignored }: Pick<PosEventRow, 'ignored'>): number[] =>
  JSON.parse(ignored ?? '[]') as number[];

/** What the lines of an event wait for, from its stored state. */
const waitingOf = (row: PosEventRow): PosEvent['waiting'] => {
  if (!mayWait(row) || row.kind === 'closing') return [];
  const reading = readRecord(row.kind, Buffer.from(row.body, 'utf8'), {
    receivedAtMs: Number(row.received_at),
  });
  if (!reading.ok) return [];
  const items = JSON.parse(row.items ?? '[]') as (number | null)[];
  const ignored = ignoredOf(row);
  const lines = lineNames(reading.record).flatMap(({ sku, gtin }, line) =>
    (items[line] ?? null) === null && !ignored.includes(line)
      ? [{ line, ...(sku !== null && { sku }), ...(gtin !== null && { gtin }) }]
      : []
  );
  const located = row.location_id !== null || row.location_ref === null;
  return located ? lines : [...lines, { line: null, location_ref: row.location_ref ?? '' }];
};

/** Which sale a held refund waits for, and until when: one without lines until it comes. */
const holdOf = (
  row: PosEventRow,
  graceMs: number
): Pick<PosEvent, 'held_until' | 'waiting_for_sale'> => {
  const none = { held_until: null, waiting_for_sale: null };
  if (row.state !== 'held' || row.kind !== 'refund') return none;
  const receivedAtMs = Number(row.received_at);
  const reading = readRecord(row.kind, Buffer.from(row.body, 'utf8'), { receivedAtMs });
  if (!reading.ok || reading.record.kind !== 'refund') return none;
  const { lines, saleExternalId } = reading.record;
  return {
    held_until: lines === null ? null : isoTime(receivedAtMs + graceMs),
    waiting_for_sale: saleExternalId,
  };
};

/** What is remarked on an event, at its acceptance and since. */
export const flagsOf = (
  row: Pick<PosEventRow, 'flags' | 'settled_flags' | 'payload_mismatch'>
): string[] => [
  ...(JSON.parse(row.flags || '[]') as string[]),
  ...(JSON.parse(row.settled_flags || '[]') as string[]),
  ...(row.payload_mismatch ? ['payload_mismatch'] : []),
];

/** What a live sale or refund counts for in the figures. */
export const moneyOf = ({
  kind,
  counted,
}: Pick<PosEventRow, 'kind' | 'counted'>): { currency: string; amount: bigint } | null => {
  if (counted === null || (kind !== 'sale' && kind !== 'refund')) return null;
  const { currency, amount } = readCounted(counted, { kind, connection: 0, at: 0 });
  return { currency, amount };
};

const shownMoney = (row: PosEventRow): PosEvent['money'] => {
  const money = moneyOf(row);
  return money && { currency: money.currency, total: Number(money.amount) };
};

/**
 * @param closing  how it compares, where it is a closing
 * @param customerError  why the customer of a sale could not be attached
 */
export const toPosEvent = (
  row: PosEventRow & { connection_name: string },
  graceMs: number,
  closing: ClosingSummary | null = null,
  customerError: string | null = null
): PosEvent => ({
  id: Number(row.id),
  event_id: Number(row.id),
  connection: { id: Number(row.connection_id), name: row.connection_name },
  kind: row.kind,
  external_id: row.external_id,
  state: row.state,
  mode: row.mode,
  flags: flagsOf(row),
  occurred_at: row.occurred_at,
  effective_at: isoTime(Number(row.effective_at)),
  received_at: isoTime(Number(row.received_at)),
  processed_at: isoTimeOrNull(row.processed_at),
  ...holdOf(row, graceMs),
  accepted_without_sale_at: isoTimeOrNull(row.accepted_at),
  location_ref: row.location_ref,
  stale: JSON.parse(row.stale || '[]') as PosEvent['stale'],
  waiting: waitingOf(row),
  ignored: ignoredOf(row),
  error: row.error,
  customer_error: customerError,
  money: shownMoney(row),
  closing_summary: closing,
});

const summary = (locations: ReadonlyMap<number, LocationRow>, id: number): LocationSummary => {
  const row = locations.get(id);
  return { id, code: row?.code ?? '', name: row?.name ?? '' };
};

export const toSimulated = (
  line: SimulatedLine,
  items: ReadonlyMap<number, ItemRow>,
  locations: ReadonlyMap<number, LocationRow>
): SimulatedMovement => ({
  type: line.type,
  sku: items.get(line.item)?.sku ?? line.sku ?? '',
  location: summary(locations, line.location),
  effective_at: isoTime(line.at),
  quantity: line.quantity,
  effect: line.effect,
  reason: line.reason,
});
