import type { ItemLookup } from '../../stock/items';
import type { NamedLocation } from '../rules/settle-refunds';
import type { PosRecord, RefundRecord, SaleRecord } from '../rules/records';
import type { EventFlag, EventState } from '../rules/states';
import { lineNames } from '../rules/record-lines';
import { readRecord } from '../rules/validate';
import { type ConnectionRow, mappedLocations, type PosEventRow } from '../tables';
import type { SimulatedLine } from '../serialize';

/** An event while it is worked on. */
export interface ProcessingContext {
  id: number;
  row: PosEventRow;
  connection: ConnectionRow;
  record: PosRecord;
  /** It is leased by this batch; else it is a relative of one that is (refund-groups.ts). */
  mine: boolean;
  /** For each line the item it was found to be. */
  items: (number | null)[];
  /** Lines that get their movement now. */
  toPlace: number[];
  locationId: number | null;
  onlyLocationId: number | null;
  state: EventState;
  flags: EventFlag[];
  simulated: SimulatedLine[];
  /** Of a refund: pieces that its sale's goods allow it. */
  took: number | null;
  /** What it waits for. */
  waits: string[];
}

export type ContextOf<R extends PosRecord> = ProcessingContext & { record: R };
export const isSale = (work: ProcessingContext): work is ContextOf<SaleRecord> =>
  work.record.kind === 'sale';
export const isRefund = (work: ProcessingContext): work is ContextOf<RefundRecord> =>
  work.record.kind === 'refund';

/**
 * Reads a stored event back.
 * @throws Error where the stored body is no record any more; the event is then `failed`.
 */
export const openContext = (
  row: PosEventRow,
  connection: ConnectionRow,
  mine: boolean
): ProcessingContext => {
  const reading = readRecord(row.kind, Buffer.from(row.body, 'utf8'), {
    receivedAtMs: Number(row.received_at),
  });
  if (!reading.ok) throw new Error(`The stored record is not valid: ${reading.issue.message}`);
  const { record } = reading;
  const known = row.items === null ? [] : (JSON.parse(row.items) as (number | null)[]);
  return {
    id: Number(row.id),
    row,
    connection,
    record,
    mine,
    items: lineNames(record).map((_line, index) => known[index] ?? null),
    toPlace: [],
    locationId: row.location_id === null ? null : Number(row.location_id),
    onlyLocationId: row.only_location_id === null ? null : Number(row.only_location_id),
    state: row.state,
    flags: [],
    simulated: [],
    took: row.took === null || row.took === undefined ? null : Number(row.took),
    waits: [],
  };
};

/**
 * Finds out what can be found out now: the location, and the items of lines. Lines that are known
 * with their place for the first time are to be placed; in test mode, where nothing is ever
 * written, all of them are, each time.
 */
export const resolveContext = (work: ProcessingContext, lookup: ItemLookup): void => {
  const { record, row, connection } = work;
  const mapped = mappedLocations(connection);
  const placedBefore = work.items.map(
    (item) => row.mode === 'live' && item !== null && work.locationId !== null
  );
  if (work.locationId === null && record.locationRef !== null) {
    work.locationId = mapped.find(({ ref }) => ref === record.locationRef)?.location ?? null;
  }
  if (work.onlyLocationId === null && mapped.length === 1) {
    work.onlyLocationId = mapped[0]?.location ?? null;
  }
  work.items = lineNames(record).map((name, index) => work.items[index] ?? lookup(name));
  if (record.kind === 'refund' || work.locationId === null) return;
  work.toPlace = work.items.flatMap((item, line) =>
    item !== null && !placedBefore[line] ? [line] : []
  );
};

/** Where a refund says its goods went. */
export const namedLocation = ({ record, locationId }: ProcessingContext): NamedLocation => {
  if (locationId !== null) return locationId;
  return record.locationRef === null ? 'none' : 'unknown';
};

/** Lines of a sale or count that are in the ledger once this work is done. */
export const placedLines = (work: ProcessingContext): number[] =>
  work.locationId === null ? [] : work.items.flatMap((item, line) => (item === null ? [] : [line]));
