import type { PosEvent, SimulatedMovement } from '../../../shared/contracts/pos';
import type { LocationSummary } from '../../../shared/contracts/stock';
import { isoTime, isoTimeOrNull } from '../runtime/iso-time';
import type { LedgerLine } from '../stock/ledger';
import type { ItemRow, LocationRow } from '../stock/tables';
import { lineNames } from './rules/record-lines';
import type { EventState } from './rules/states';
import { readRecord } from './rules/validate';
import type { PosEventRow } from './tables';

/** What a test-mode record would have written, as it is stored with its event. */
export type SimulatedLine = LedgerLine;

/** Test mode parks nothing, but what it did not know would be parked once the connection is live. */
const WITH_UNKNOWN: readonly EventState[] = ['needs_mapping', 'partially_applied', 'simulated'];

/** Whether lines of an event may wait for something; only then is its body looked at in lists. */
export const mayWait = ({ state }: Pick<PosEventRow, 'state'>): boolean =>
  WITH_UNKNOWN.includes(state);

/** What the lines of an event wait for, from its stored state. */
const waitingOf = (row: PosEventRow): PosEvent['waiting'] => {
  if (!mayWait(row)) return [];
  const reading = readRecord(row.kind, Buffer.from(row.body, 'utf8'), {
    receivedAtMs: Number(row.received_at),
  });
  if (!reading.ok) return [];
  const items = JSON.parse(row.items ?? '[]') as (number | null)[];
  const lines = lineNames(reading.record).flatMap(({ sku, gtin }, line) =>
    (items[line] ?? null) === null
      ? [{ line, ...(sku !== null && { sku }), ...(gtin !== null && { gtin }) }]
      : []
  );
  const located = row.location_id !== null || row.location_ref === null;
  return located ? lines : [...lines, { line: null, location_ref: row.location_ref ?? '' }];
};

export const toPosEvent = (
  row: PosEventRow & { connection_name: string },
  graceMs: number
): PosEvent => ({
  id: Number(row.id),
  event_id: Number(row.id),
  connection: { id: Number(row.connection_id), name: row.connection_name },
  kind: row.kind,
  external_id: row.external_id,
  state: row.state,
  mode: row.mode,
  flags: [
    ...(JSON.parse(row.flags || '[]') as string[]),
    ...(JSON.parse(row.settled_flags || '[]') as string[]),
    ...(row.payload_mismatch ? ['payload_mismatch'] : []),
  ],
  occurred_at: row.occurred_at,
  effective_at: isoTime(Number(row.effective_at)),
  received_at: isoTime(Number(row.received_at)),
  processed_at: isoTimeOrNull(row.processed_at),
  held_until: row.state === 'held' ? isoTime(Number(row.received_at) + graceMs) : null,
  location_ref: row.location_ref,
  stale: JSON.parse(row.stale || '[]') as PosEvent['stale'],
  waiting: waitingOf(row),
  error: row.error,
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
  sku: items.get(line.item)?.sku ?? '',
  location: summary(locations, line.location),
  effective_at: isoTime(line.at),
  quantity: line.quantity,
  effect: line.effect,
  reason: line.reason,
});
