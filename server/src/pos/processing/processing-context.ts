import type { App } from '../../app';
import type { Tx } from '../../database/db';
import { type AcceptedCount, withdrawCounts, withdrawTrialCounts } from '../../stock/counts';
import { gtinDigest, type ItemLookup } from '../../stock/items';
import type { LedgerLine, Place } from '../../stock/ledger';
import {
  connectionWait,
  type FoundItems,
  type MappedLine,
  mappingDigest,
  type Mappings,
  type Wait,
} from '../mappings';
import {
  type LineName,
  lineNames,
  type PosRecord,
  quantityOf,
  type RefundRecord,
  type SaleRecord,
} from '../rules/records';
import type { NamedLocation } from '../rules/refunds';
import type { EventFlag, EventState } from '../rules/states';
import { readRecord } from '../rules/validate';
import {
  type ConnectionRow,
  mappedLocations,
  POS_EVENTS_TABLE,
  type PosEventRow,
  WHOLE_RECORD,
} from '../tables';

/** An event while it is worked on. */
export interface ProcessingContext {
  id: number;
  row: PosEventRow;
  connection: ConnectionRow;
  record: PosRecord;
  /** It is leased by this batch; else it is a relative of one that is (refund-group.ts). */
  mine: boolean;
  /** For each line the item it was found to be. */
  items: (number | null)[];
  /** Lines that their owner said to ignore. */
  ignored: number[];
  /** Lines that a mapping decided now. */
  mapped: MappedLine[];
  /** Lines that get their movement now. */
  toPlace: number[];
  locationId: number | null;
  onlyLocationId: number | null;
  state: EventState;
  flags: EventFlag[];
  /** What it puts into the ledger now; in test mode, what it would. */
  moved: LedgerLine[];
  /** Of a refund: pieces that its sale's goods allow it. */
  took: number | null;
  /** What it waits for. */
  waits: Wait[];
  /** What the sales figures have of it, as it is stored (money/sales-figures.ts). */
  counted: string | null;
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
  if (row.kind === 'closing') throw new Error('A closing is not processed.');
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
    ignored: JSON.parse(row.ignored ?? '[]') as number[],
    mapped: [],
    toPlace: [],
    locationId: row.location_id === null ? null : Number(row.location_id),
    onlyLocationId: row.only_location_id === null ? null : Number(row.only_location_id),
    state: row.state,
    flags: [],
    moved: [],
    took: row.took === null || row.took === undefined ? null : Number(row.took),
    waits: [],
    counted: row.counted ?? null,
  };
};

/**
 * Finds out what can be found out now: the location, and the items of lines. Lines that are known
 * with their place for the first time are to be placed; in test mode, where nothing is ever
 * written, all of them are, each time.
 */
export const resolveContext = (
  work: ProcessingContext,
  lookup: ItemLookup,
  mappings: Mappings,
  found: FoundItems
): void => {
  const { record, row, connection } = work;
  const mapped = mappedLocations(connection);
  const placedBefore = work.items.map(
    (item) => row.mode === 'live' && item !== null && work.locationId !== null
  );
  if (work.locationId === null && record.locationRef !== null) {
    work.locationId = mapped.find(({ ref }) => ref === record.locationRef)?.location ?? null;
    const to = mappings.ofLocation(Number(connection.id), record.locationRef);
    if (work.locationId === null && to !== null) {
      work.locationId = to.location;
      work.mapped.push({ mapping: to.mapping, line: WHOLE_RECORD });
    }
  }
  if (work.onlyLocationId === null && mapped.length === 1) {
    work.onlyLocationId = mapped[0]?.location ?? null;
  }
  const decided = (mapping: number | null, line: number): void => {
    if (mapping !== null) work.mapped.push({ mapping, line });
  };
  const notGone = (item: number | null): boolean => item === null || !found.isGone(item);
  work.items = lineNames(record).map((name, line) => {
    const known = work.items[line] ?? null;
    if (known !== null || work.ignored.includes(line)) return known;
    const ofName = lookup(name);
    const own = notGone(ofName) ? ofName : null;
    const mapped = mappings.ofLine(name);
    const to = mapped && notGone(mapped.item) ? mapped : null;
    // What goes by the name itself comes first; the item that a mapping made does.
    const isMapped = to !== null && (own === null || own === to.item);
    const item = isMapped ? to.item : own;
    if (isMapped) decided(to.mapping, line);
    if (isMapped && item === null) work.ignored.push(line);
    const maker = item === null ? null : found.makerOf(item);
    if (!isMapped || maker !== to.mapping) decided(maker, line);
    return item;
  });
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

/** Lines that wait for an item; those that are ignored do not. */
export const unknownLines = ({ items, ignored }: ProcessingContext): number[] =>
  items.flatMap((item, line) => (item === null && !ignored.includes(line) ? [line] : []));

/** What lines name that wait for an item. */
export const unknownNames = (work: ProcessingContext): LineName[] => {
  const unknown = new Set(unknownLines(work));
  return lineNames(work.record).filter((_name, line) => unknown.has(line));
};

/** Lines of a sale or count that are not in the ledger and are to be. */
export const waitingLines = (work: ProcessingContext): number =>
  work.items.length - work.ignored.length - placedLines(work).length;

const other = (digest: string): Wait => ({
  digest,
  kind: 'other',
  value: null,
  inbox: null,
  pieces: 0,
});

const named = (kind: 'sku' | 'gtin', value: string, pieces: number): Wait => {
  const digest = mappingDigest(kind, value, null);
  return { digest, kind, value, inbox: digest, pieces };
};

/** What the lines of a record wait for whose items are not known; a line is in one row of the inbox. */
export const itemWaitsOf = (work: ProcessingContext): Wait[] => {
  const names = lineNames(work.record);
  return unknownLines(work).flatMap((line): Wait[] => {
    const { sku = null, gtin = null } = names[line] ?? {};
    const pieces = Math.abs(quantityOf(work.record, line));
    if (sku === null) return gtin === null ? [] : [named('gtin', gtin, pieces)];
    return [named('sku', sku, pieces), ...(gtin === null ? [] : [other(gtinDigest(gtin))])];
  });
};

/** What a record waits for whose location is not known. */
export const locationWaitOf = ({ record, connection, items, ignored }: ProcessingContext): Wait => {
  const id = Number(connection.id);
  const { locationRef } = record;
  if (locationRef === null) return other(connectionWait(id));
  const pieces = items.reduce(
    (sum: number, _item, line) =>
      ignored.includes(line) ? sum : sum + Math.abs(quantityOf(record, line)),
    0
  );
  const inbox = mappingDigest('location_ref', locationRef, id);
  return { digest: connectionWait(id), kind: 'location_ref', value: locationRef, inbox, pieces };
};

/** What a refund waits for whose sale, or whose location, its connection or its group may still have. */
export const saleWaitOf = ({ connection }: ProcessingContext): Wait =>
  other(connectionWait(Number(connection.id)));

/** For each line of a stocktake what it counts; null where nobody can say yet. */
export type CountedPlaces = readonly (Place | null)[];

type Stored = ([item: number, location: number] | null)[];

/** As an event's `counted_places`; null where no line counts anything yet. */
export const writePlaces = (places: CountedPlaces): string | null =>
  places.every((place) => place === null)
    ? null
    : JSON.stringify(places.map((place) => place && [place.item, place.location]));

const readPlaces = (text: string | null): CountedPlaces =>
  (JSON.parse(text ?? '[]') as Stored).map((place) =>
    place === null ? null : { item: place[0], location: place[1] }
  );

export const isStocktake = ({ record }: ProcessingContext): boolean =>
  record.kind === 'inventory' && record.mode === 'absolute';

/** What a stocktake's lines are of now; null for all other records. */
export const placesOf = (work: ProcessingContext): string | null => {
  if (!isStocktake(work)) return null;
  const { items, locationId } = work;
  return writePlaces(
    items.map((item) =>
      item === null || locationId === null ? null : { item, location: locationId }
    )
  );
};

const QUEUED = ['pending', 'failed'] as const;

/** Live counts that were accepted and are not in the ledger yet. */
const queuedCounts = async (tx: Tx, except: readonly number[]): Promise<AcceptedCount[]> => {
  const query = tx
    .table(POS_EVENTS_TABLE)
    .select('id', 'effective_at', 'counted_places')
    .whereIn('state', QUEUED)
    .where({ kind: 'inventory', mode: 'live' })
    .whereNotNull('counted_places');
  // One that was accepted while the levels were waited for, too.
  const rows = (await tx.latest(query)) as Pick<
    PosEventRow,
    'id' | 'effective_at' | 'counted_places'
  >[];
  const own = new Set(except);
  return rows
    .filter(({ id }) => !own.has(Number(id)))
    .flatMap(({ effective_at: at, counted_places: text }) =>
      readPlaces(text).flatMap((place) => (place ? [{ ...place, at: Number(at) }] : []))
    );
};

/** Lines that are of something else than they were accepted or placed as, with what that was. */
const withdrawnBy = (work: ProcessingContext): AcceptedCount[] => {
  const { items, locationId, row } = work;
  return readPlaces(row.counted_places).flatMap((before, line) => {
    if (before === null) return [];
    const isSame = items[line] === before.item && locationId === before.location;
    return isSame ? [] : [{ ...before, at: Number(row.effective_at) }];
  });
};

/**
 * Stocktakes of the batch whose lines were accepted by a mapping that holds no more: they make no other
 * count stale. For the time after the lines were resolved, and before they are put into the ledger.
 */
export const withdrawMisplaced = async (
  tx: Tx,
  app: App,
  batch: readonly ProcessingContext[]
): Promise<void> => {
  const counts = batch.filter(isStocktake);
  if (counts.length === 0) return;
  const of = (mode: PosEventRow['mode']) =>
    counts.filter(({ row }) => row.mode === mode).flatMap(withdrawnBy);
  const ids = batch.map(({ id }) => id);
  await withdrawCounts(tx, app, of('live'), () => queuedCounts(tx, ids));
  await withdrawTrialCounts(tx, of('test'));
};
