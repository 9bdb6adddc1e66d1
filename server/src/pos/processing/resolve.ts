import type { App } from '../../app';
import type { Tx } from '../../database/db';
import { findInChunks, inChunks } from '../../database/written-rows';
import { TimeSlice } from '../../runtime/event-loop';
import { type AcceptedCount, withdrawCounts, withdrawTrialCounts } from '../../stock/counts';
import { type FoundItems, gtinDigest, type ItemLookup, lookUpItems } from '../../stock/items';
import {
  type CountingInput,
  Ledger,
  type LedgerLine,
  type LevelChange,
  mergeChanges,
  type Place,
  undoCounts,
} from '../../stock/ledger';
import { defaultLocation } from '../../stock/locations';
import type { PostingDifference } from '../../stock/rules/allocation';
import type { MappingKind } from '../../../../shared/contracts/pos-mapping';
import { mappedLocations } from '../connections';
import {
  connectionWait,
  type ItemOrigins,
  loadItemOrigins,
  loadMappings,
  type MappedLine,
  mappingDigest,
  type Mappings,
  type Wait,
} from '../mappings';
import {
  type EventFlag,
  type EventKind,
  type EventState,
  linesOf,
  type PosRecord,
  type RefundRecord,
  type SaleRecord,
  stateOfLines,
  type StockLine,
} from '../rules/records';
import { readRecord } from '../rules/validate';
import {
  type ConnectionRow,
  POS_EVENTS_TABLE,
  POS_MAPPED_LINES_TABLE,
  POS_MAPPINGS_TABLE,
  type PosEventRow,
  WHOLE_RECORD,
} from '../tables';

/**
 * Record processing is a difference, whatever its cause (new record, changed mapping, known item, other group):
 * `resolve` finds items and places of lines, `post` appends lines that the ledger lacks or has at another place.
 * Returned goods follow from their groups in the same way (refund-group.ts).
 */

/** For each line of a record its place; null if it is unknown so far. */
type Places = readonly (Place | null)[];

export interface ProcessingContext {
  id: number;
  row: PosEventRow;
  connection: ConnectionRow;
  record: PosRecord;
  /** It is leased by this batch; else it is a relative of one that is (refund-group.ts). */
  inBatch: boolean;
  /** For each line the item it was found to be. */
  items: (number | null)[];
  /** Lines that a mapping ignores. */
  ignored: number[];
  mapped: MappedLine[];
  /** The places of a sale's or an inventory message's lines in the ledger. */
  posted: Places;
  locationId: number | null;
  onlyLocationId: number | null;
  state: EventState;
  flags: EventFlag[];
  /** Its new lines of the ledger; in test mode, the lines that it would have. */
  moved: LedgerLine[];
  /** Refunds only: pieces that its sale's goods allow it. */
  took: number | null;
  waits: Wait[];
  /** Its amounts in the sales figures, as they are stored (sales-figures.ts). */
  counted: string | null;
}

export type ContextOf<R extends PosRecord> = ProcessingContext & { record: R };
export const isSale = (work: ProcessingContext): work is ContextOf<SaleRecord> =>
  work.record.kind === 'sale';
export const isRefund = (work: ProcessingContext): work is ContextOf<RefundRecord> =>
  work.record.kind === 'refund';
export const isStocktake = ({ record }: ProcessingContext): boolean =>
  record.kind === 'inventory' && record.mode === 'absolute';

export const placesOf = ({ items, locationId }: ProcessingContext): Places =>
  items.map((item) =>
    item === null || locationId === null ? null : { item, location: locationId }
  );

export const readStored = <K extends EventKind>(
  kind: K,
  { body, received_at: at }: Pick<PosEventRow, 'body' | 'received_at'>
) => readRecord(kind, Buffer.from(body, 'utf8'), Number(at));

/** Reads a stored event back. @throws Error if the stored body is no record any more; the event is then `failed`. */
export const openContext = (
  row: PosEventRow,
  connection: ConnectionRow,
  inBatch: boolean
): ProcessingContext => {
  if (row.kind === 'closing') throw new Error('A closing is not processed.');
  const reading = readStored(row.kind, row);
  if (!reading.ok) throw new Error(`The stored record is not valid: ${reading.issue.message}`);
  const { value: record } = reading;
  const known = JSON.parse(row.items ?? '[]') as (number | null)[];
  const work: ProcessingContext = {
    id: Number(row.id),
    row,
    connection,
    record,
    inBatch,
    items: linesOf(record).map((_line, index) => known[index] ?? null),
    ignored: JSON.parse(row.ignored ?? '[]') as number[],
    mapped: [],
    posted: [],
    locationId: row.location_id === null ? null : Number(row.location_id),
    onlyLocationId: row.only_location_id === null ? null : Number(row.only_location_id),
    state: row.state,
    flags: [],
    moved: [],
    took: row.took === null || row.took === undefined ? null : Number(row.took),
    waits: [],
    counted: row.counted ?? null,
  };
  if (row.mode === 'live' && record.kind !== 'refund') work.posted = placesOf(work);
  return work;
};

/** Lines that wait for an item; those that are ignored do not. */
export const unknownLines = ({ record, items, ignored }: ProcessingContext): StockLine[] =>
  linesOf(record).filter((_line, index) => items[index] === null && !ignored.includes(index));

/** Lines of a sale or count that are missing from the ledger. */
export const waitingLines = (work: ProcessingContext): number =>
  work.items.length - work.ignored.length - placesOf(work).filter((place) => place).length;

type UndoneLine = Record<'id' | 'event_id' | 'line', number> & { kind: MappingKind };

/** Makes records that are processed again forget mappings that were undone since. */
const forgetUndone = async (tx: Tx, again: readonly ProcessingContext[]): Promise<void> => {
  const works = new Map(again.map((work) => [work.id, work]));
  const undone = await findInChunks<UndoneLine>(works.keys(), (some) =>
    tx
      .table(`${POS_MAPPED_LINES_TABLE} as d`)
      .join(`${POS_MAPPINGS_TABLE} as m`, 'm.id', 'd.mapping_id')
      .select('d.id', 'd.event_id', 'd.line', 'm.kind')
      .whereIn('d.event_id', some)
      .whereNotNull('m.undone_at')
  );
  for (const { event_id: event, line, kind } of undone) {
    const work = works.get(Number(event));
    if (!work) continue;
    if (kind === 'location_ref') work.locationId = null;
    else {
      work.items[Number(line)] = null;
      work.ignored = work.ignored.filter((one) => one !== Number(line));
    }
  }
  for (const some of inChunks(undone.map(({ id }) => id))) {
    await tx.table(POS_MAPPED_LINES_TABLE).whereIn('id', some).delete();
  }
};

const resolveLocation = (work: ProcessingContext, mappings: Mappings): void => {
  const { record, connection } = work;
  const mapped = mappedLocations(connection);
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
};

/** Items stay what they were found to be, until a mapping is undone. */
const resolveItems = (
  work: ProcessingContext,
  lookup: ItemLookup,
  mappings: Mappings,
  { gone, makers }: ItemOrigins
): void => {
  for (const [line, name] of linesOf(work.record).entries()) {
    if (work.items[line] !== null || work.ignored.includes(line)) continue;
    const ofName = lookup(name);
    const own = ofName !== null && gone.has(ofName) ? null : ofName;
    const found = mappings.ofLine(name);
    const to = found?.item && gone.has(found.item) ? null : found;
    // An item that goes by the name itself comes first; the item that a mapping created does.
    const isMapped = to !== null && (own === null || own === to.item);
    const item = isMapped ? to.item : own;
    work.items[line] = item;
    if (isMapped) work.mapped.push({ mapping: to.mapping, line });
    if (isMapped && item === null) work.ignored.push(line);
    const maker = item === null ? undefined : makers.get(item);
    if (maker !== undefined && !(isMapped && maker === to.mapping)) {
      work.mapped.push({ mapping: maker, line });
    }
  }
};

/** Products that stand for items in test mode, by the ids that stand for these. */
export type Products = FoundItems['products'];

/** Resolves lines to items and places as far as known now. `preview`, as test mode, creates no items of products. */
export const resolve = async (
  tx: Tx,
  app: App,
  batch: readonly ProcessingContext[],
  { preview }: { preview: boolean }
): Promise<Products> => {
  const again = batch.filter(({ row }) => row.processed_at !== null);
  if (again.length > 0 && !preview) await forgetUndone(tx, again);
  const trials = batch.filter(({ row }) => preview || row.mode === 'test');
  const live = batch.filter(({ row }) => !preview && row.mode === 'live');
  const tried = await lookUpItems(tx, app, trials.flatMap(unknownLines), 'stand in');
  const adopted = await lookUpItems(tx, app, live.flatMap(unknownLines), 'adopt');
  const looked = [
    ...trials.map((work) => ({ work, lookup: tried.lookup })),
    ...live.map((work) => ({ work, lookup: adopted.lookup })),
  ];
  // Reprocessed records look up every line: the item that has the name now may come from a mapping.
  const names = looked.flatMap(({ work, lookup }) =>
    unknownLines(work).filter((name) => work.row.processed_at !== null || lookup(name) === null)
  );
  const locations = batch.flatMap(({ locationId, record, connection }) =>
    locationId === null && record.locationRef !== null
      ? [{ connection: Number(connection.id), ref: record.locationRef }]
      : []
  );
  const mappings = await loadMappings(tx, names, locations);
  const possible = looked.flatMap(({ work, lookup }) =>
    unknownLines(work)
      .flatMap((name) => [lookup(name), mappings.ofLine(name)?.item ?? null])
      .flatMap((item) => item ?? [])
  );
  const origins = await loadItemOrigins(tx, possible);
  for (const { work, lookup } of looked) {
    if (work.locationId === null || work.onlyLocationId === null) resolveLocation(work, mappings);
    resolveItems(work, lookup, mappings, origins);
  }
  return tried.products;
};

const isStandIn = (item: number | null | undefined): boolean => (item ?? 0) < 0;

/** Trials that were processed before: their products may have become items, and say what they have. */
export const resolveStandIns = async (tx: Tx, app: App, works: readonly ProcessingContext[]) => {
  const names = works.flatMap(({ record, items }) =>
    linesOf(record).filter((_name, line) => isStandIn(items[line]))
  );
  const { lookup, products } = await lookUpItems(tx, app, names, 'stand in');
  for (const work of works) {
    for (const [line, name] of linesOf(work.record).entries()) {
      if (isStandIn(work.items[line])) work.items[line] = lookup(name) ?? work.items[line] ?? null;
    }
  }
  return products;
};

const misplacedOf = (before: Places, now: Places) =>
  now.flatMap((place, line) => {
    const was = before[line] ?? null;
    const isSame = was?.item === place?.item && was?.location === place?.location;
    return isSame ? [] : [{ line, before: was, now: place }];
  });

const misplacedLines = (work: ProcessingContext) =>
  isRefund(work) ? [] : misplacedOf(work.posted, placesOf(work));

/** As an event's `counted_places`; null if no line counts anything yet. */
export const writePlaces = (places: Places): string | null =>
  places.every((place) => place === null)
    ? null
    : JSON.stringify(places.map((place) => place && [place.item, place.location]));

const readPlaces = (text: string): Places =>
  (JSON.parse(text) as ([item: number, location: number] | null)[]).map(
    (place) => place && { item: place[0], location: place[1] }
  );

/** Live counts that were accepted and are not in the ledger yet. */
const queuedCounts = async (tx: Tx, except: readonly number[]): Promise<AcceptedCount[]> => {
  const query = tx
    .table(POS_EVENTS_TABLE)
    .select('id', 'effective_at', 'counted_places')
    .whereIn('state', ['pending', 'failed'])
    .where({ kind: 'inventory', mode: 'live' })
    .whereNotNull('counted_places');
  // One that was accepted while the levels were waited for, too.
  const rows = (await tx.latest(query)) as Pick<
    PosEventRow,
    'id' | 'effective_at' | 'counted_places'
  >[];
  return rows
    .filter(({ id }) => !except.includes(Number(id)))
    .flatMap(({ effective_at: at, counted_places: text }) =>
      readPlaces(text ?? '[]').flatMap((place) => (place ? [{ ...place, at: Number(at) }] : []))
    );
};

/** Withdraws stocktakes whose lines were accepted or counted as something else: they no longer make counts stale. */
const withdrawMisplaced = async (tx: Tx, app: App, stocktakes: readonly ProcessingContext[]) => {
  const withdrawnIn = (mode: PosEventRow['mode']): AcceptedCount[] =>
    stocktakes.flatMap((work) => {
      const { mode: own, counted_places: text, effective_at: at } = work.row;
      if (own !== mode) return [];
      // Version 0.2 did not write down what a stocktake was accepted as.
      const accepted = text === null ? work.posted : readPlaces(text);
      return misplacedOf(accepted, placesOf(work)).flatMap(({ before }) =>
        before ? [{ ...before, at: Number(at) }] : []
      );
    });
  const ids = stocktakes.map(({ id }) => id);
  await withdrawCounts(tx, app, withdrawnIn('live'), () => queuedCounts(tx, ids));
  await withdrawTrialCounts(tx, withdrawnIn('test'));
};

/** Updates the ledger for a record whose places are locked, each line at the record's own time. */
const postLines = async (ledger: Ledger, work: ProcessingContext): Promise<void> => {
  const { record, row, id: eventId } = work;
  const lines = linesOf(record);
  const type = record.kind === 'sale' ? ('sale' as const) : ('adjustment' as const);
  const counts: CountingInput[] = [];
  for (const { line, before, now } of misplacedLines(work)) {
    const { quantity = 0, note = null } = lines[line] ?? {};
    const base = { at: Number(row.effective_at), eventId, note };
    if (isStocktake(work)) {
      if (now) counts.push({ ...base, ...now, line, quantity });
      continue;
    }
    const gained = type === 'sale' ? -quantity : quantity;
    if (before) {
      const reason = 'mapping_undone' as const;
      work.moved.push(ledger.move({ ...base, ...before, type, quantity: -gained, reason }));
    }
    if (now) {
      work.moved.push(ledger.move({ ...base, ...now, type, quantity: gained, reason: null }));
    }
  }
  if (counts.length > 0) work.moved.push(...(await ledger.count(counts)));
};

/** A difference that the ledger has to append, with the refund it belongs to. */
export interface RefundDifference extends PostingDifference {
  work: ContextOf<RefundRecord>;
}

interface Posted {
  batch: readonly ProcessingContext[];
  refunds: readonly RefundDifference[];
  products: Products;
  preview: boolean;
}

/** Appends to the ledger what it lacks of the batch and of its refund groups. @returns what changed on the shelves */
export const post = async (tx: Tx, app: App, { batch, refunds, products, preview }: Posted) => {
  const changes: LevelChange[] = [];
  const stocktakes = preview ? [] : batch.filter(isStocktake);
  if (stocktakes.length > 0) {
    const counted = stocktakes.flatMap((work) =>
      misplacedLines(work).flatMap(({ line, before }) =>
        before ? [{ ...before, event: work.id, line }] : []
      )
    );
    changes.push(...(await undoCounts(tx, app, counted)));
    await withdrawMisplaced(tx, app, stocktakes);
  }
  const main = products.size > 0 ? Number((await defaultLocation(tx)).id) : null;
  // A product's quantity is what its item would have at the default location, once it is made.
  const openingOf = ({ item, location }: Place): number =>
    location === main ? (products.get(item)?.quantity ?? 0) : 0;
  const slice = new TimeSlice();
  for (const mode of ['live', 'test'] as const) {
    const works = batch.filter(({ row }) => row.mode === mode);
    const differences = refunds.filter(({ work }) => work.row.mode === mode);
    if (works.length === 0 && differences.length === 0) continue;
    const ledger = new Ledger(app, tx, {
      simulate: preview || mode === 'test',
      openingOf: main === null ? null : openingOf,
    });
    await ledger.lock([
      ...works
        .flatMap(misplacedLines)
        .flatMap(({ before, now }) => [before, now])
        .filter((place) => place !== null),
      ...differences,
    ]);
    for (const work of works) {
      if (slice.isOver()) await slice.next();
      await postLines(ledger, work);
    }
    for (const { work, item, location, quantity, reason } of differences) {
      const base = {
        at: Number(work.row.effective_at),
        eventId: work.id,
        note: work.record.reason,
      };
      work.moved.push(ledger.move({ ...base, item, location, type: 'refund', quantity, reason }));
    }
    changes.push(...(await ledger.flush()));
  }
  for (const work of [...batch, ...refunds.map((one) => one.work)]) {
    for (const line of work.moved) {
      const product = products.get(line.item);
      if (product) line.sku = product.sku;
    }
  }
  // Only an undone count and a new one change a level twice.
  return stocktakes.length > 0 ? mergeChanges(changes) : changes;
};

const otherWait = (digest: string): Wait => ({
  digest,
  kind: 'other',
  value: null,
  inbox: null,
  pieces: 0,
});

/** The waits of a record's lines with unknown items; a line is in one row of the inbox. */
export const itemWaitsOf = (work: ProcessingContext): Wait[] =>
  unknownLines(work).flatMap(({ sku, gtin, quantity }): Wait[] => {
    const [kind, value] = sku === null ? (['gtin', gtin] as const) : (['sku', sku] as const);
    if (value === null) return [];
    const digest = mappingDigest(kind, value, null);
    const wait = { digest, kind, value, inbox: digest, pieces: Math.abs(quantity) };
    return kind === 'gtin' || gtin === null ? [wait] : [wait, otherWait(gtinDigest(gtin))];
  });

export const locationWaitOf = ({ record, connection, ignored }: ProcessingContext): Wait => {
  const id = Number(connection.id);
  const { locationRef } = record;
  if (locationRef === null) return otherWait(connectionWait(id));
  const pieces = linesOf(record).reduce(
    (sum, { quantity }, line) => (ignored.includes(line) ? sum : sum + Math.abs(quantity)),
    0
  );
  const inbox = mappingDigest('location_ref', locationRef, id);
  return { digest: connectionWait(id), kind: 'location_ref', value: locationRef, inbox, pieces };
};

/** The wait of a refund for its sale or its location, which its connection or its group may still get. */
export const saleWaitOf = ({ connection }: ProcessingContext): Wait =>
  otherWait(connectionWait(Number(connection.id)));

/** State and waits of sales and inventory messages; refunds are settled with their groups. */
export const settleLines = (work: ProcessingContext): void => {
  if (isRefund(work)) return;
  const waiting = waitingLines(work);
  const placed = work.items.length - work.ignored.length - waiting;
  work.state = stateOfLines(work.row.mode, placed, waiting);
  if (waiting === 0) return;
  work.waits = [...itemWaitsOf(work), ...(work.locationId === null ? [locationWaitOf(work)] : [])];
};
