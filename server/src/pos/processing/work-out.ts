import { TimeSlice } from '../../runtime/event-loop';
import { type ItemLookup, lookUpItems, lookUpTrialItems, type TrialItems } from '../../stock/items';
import { defaultLocation } from '../../stock/locations';
import {
  Ledger,
  type LedgerLine,
  type LevelChange,
  mergeChanges,
  type Place,
  undoCounts,
} from '../../stock/ledger';
import { stateOfLines } from '../rules/refunds';
import { lineNames, noteOf, quantityOf } from '../rules/records';
import type { MappingKind } from '../../../../shared/contracts/pos-mapping';
import { findInChunks, inChunks } from '../../database/written-rows';
import {
  type ConnectionRow,
  POS_MAPPED_LINES_TABLE,
  POS_MAPPINGS_TABLE,
  type PosEventRow,
} from '../tables';
import {
  isStocktake,
  itemWaitsOf,
  locationWaitOf,
  openContext,
  placedLines,
  type ProcessingContext,
  resolveContext,
  unknownNames,
  waitingLines,
  withdrawMisplaced,
  placesOf,
} from './processing-context';
import {
  loadRefundGroups,
  type RefundDifference,
  type RefundGroup,
  settleGoods,
  type Times,
} from './refund-group';
import { loadFoundItems, loadMappings, type Mappings } from '../mappings';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

interface UndoneLine {
  id: number;
  event_id: number;
  line: number;
  kind: MappingKind;
}

const undoneLines = (tx: Tx, events: readonly number[]): Promise<UndoneLine[]> =>
  findInChunks<UndoneLine>(events, (some) =>
    tx
      .table(`${POS_MAPPED_LINES_TABLE} as d`)
      .join(`${POS_MAPPINGS_TABLE} as m`, 'm.id', 'd.mapping_id')
      .select('d.id', 'd.event_id', 'd.line', 'm.kind')
      .whereIn('d.event_id', some)
      .whereNotNull('m.undone_at')
  );

/** A line of a record that is in the ledger and has to come out of it. */
interface Posted extends Place {
  work: ProcessingContext;
  line: number;
}

/** Forgets what an undone mapping decided of a record. @returns its lines that are in the ledger */
const forget = (work: ProcessingContext, undone: readonly UndoneLine[]): Posted[] => {
  const { items, locationId, row } = work;
  const lines = new Set<number>();
  let location = locationId;
  for (const { line, kind } of undone) {
    if (kind === 'location_ref') location = null;
    else lines.add(Number(line));
  }
  const isPosted = row.mode === 'live' && row.kind !== 'refund' && locationId !== null;
  const posted = items.flatMap((item, line): Posted[] =>
    isPosted && item !== null && (location === null || lines.has(line))
      ? [{ work, line, item, location: locationId }]
      : []
  );
  // Version 0.2 did not write down what a stocktake was placed as.
  if (isPosted && row.counted_places === null) row.counted_places = placesOf(work);
  work.items = items.map((item, line) => (lines.has(line) ? null : item));
  work.ignored = work.ignored.filter((line) => !lines.has(line));
  work.locationId = location;
  return posted;
};

/** Moves back what sales and adjustments moved, at their own time: the fold is as if they had not. */
const moveBack = async (tx: Tx, app: App, posted: readonly Posted[]): Promise<LevelChange[]> => {
  const ledger = new Ledger(app, tx);
  await ledger.lock(posted);
  for (const { work, line, item, location } of posted) {
    const { record, row } = work;
    const quantity = quantityOf(record, line);
    const moved = ledger.move({
      item,
      location,
      at: Number(row.effective_at),
      eventId: work.id,
      note: noteOf(record, line),
      type: record.kind === 'sale' ? 'sale' : 'adjustment',
      reason: 'mapping_undone',
      quantity: record.kind === 'sale' ? quantity : -quantity,
    });
    work.moved.push(moved);
  }
  return ledger.flush();
};

/**
 * Takes back what mappings decided that were undone since: lines wait again, and what they did to the
 * shelves is reversed. Refunds are shared out anew by whoever settles them.
 * @returns what changed on the shelves
 */
const takeBack = async (
  tx: Tx,
  app: App,
  batch: readonly ProcessingContext[]
): Promise<LevelChange[]> => {
  const again = new Map(
    batch.filter(({ row }) => row.processed_at !== null).map((work) => [work.id, work])
  );
  if (again.size === 0) return [];
  const undone = await undoneLines(tx, [...again.keys()]);
  if (undone.length === 0) return [];
  const posted = [...again.values()].flatMap((work) => {
    const own = undone.filter(({ event_id: id }) => Number(id) === work.id);
    return own.length === 0 ? [] : forget(work, own);
  });
  for (const some of inChunks(undone.map(({ id }) => id))) {
    await tx.table(POS_MAPPED_LINES_TABLE).whereIn('id', some).delete();
  }
  const counted = posted.filter(({ work }) => isStocktake(work));
  const moved = posted.filter(({ work }) => !isStocktake(work));
  return [
    ...(moved.length > 0 ? await moveBack(tx, app, moved) : []),
    ...(await undoCounts(
      tx,
      app,
      counted.map(({ work, line, item, location }) => ({ event: work.id, line, item, location }))
    )),
  ];
};

/** Writes down which lines mappings decided now. */
export const storeMappedLines = (tx: Tx, batch: readonly ProcessingContext[]): Promise<void> =>
  tx.insert(
    POS_MAPPED_LINES_TABLE,
    batch.flatMap(({ id, mapped }) =>
      mapped.map(({ mapping, line }) => ({ mapping_id: mapping, event_id: id, line }))
    )
  );

const placesToLock = (
  works: readonly ProcessingContext[],
  differences: readonly RefundDifference[]
): Place[] => [
  ...works.flatMap(({ toPlace, items, locationId }) =>
    toPlace.map((line) => ({ item: items[line] as number, location: locationId as number }))
  ),
  ...differences.map(({ item, location }) => ({ item, location })),
];

/** Puts the lines of a sale, a count or an adjustment into the ledger. */
const placeLines = async (ledger: Ledger, work: ProcessingContext): Promise<LedgerLine[]> => {
  const { record, toPlace, items, locationId, row } = work;
  const at = Number(row.effective_at);
  const asked = toPlace.map((line) => ({
    item: items[line] as number,
    location: locationId as number,
    at,
    eventId: work.id,
    line,
    quantity: quantityOf(record, line),
    note: noteOf(record, line),
  }));
  if (record.kind === 'inventory' && record.mode === 'absolute') return ledger.count(asked);
  const type = record.kind === 'sale' ? ('sale' as const) : ('adjustment' as const);
  return asked.map(({ line: _line, quantity, ...one }) =>
    ledger.move({ ...one, type, reason: null, quantity: type === 'sale' ? -quantity : quantity })
  );
};

const write = async (
  ledger: Ledger,
  works: readonly ProcessingContext[],
  differences: readonly RefundDifference[]
): Promise<LevelChange[]> => {
  await ledger.lock(placesToLock(works, differences));
  const slice = new TimeSlice();
  for (const work of works) {
    if (work.toPlace.length === 0) continue;
    if (slice.isOver()) await slice.next();
    const lines = await placeLines(ledger, work);
    work.moved.push(...lines);
  }
  for (const { work, item, location, quantity, reason } of differences) {
    const at = Number(work.row.effective_at);
    const base = { item, location, at, eventId: work.id, note: work.record.reason };
    const line = ledger.move({ ...base, type: 'refund', quantity, reason });
    work.moved.push(line);
  }
  return ledger.flush();
};

/**
 * What the owner said of lines that no item goes by, and of locations. A record that is worked on again
 * is asked about every line: an item that goes by the name now may have been made by a mapping.
 */
const mappingsFor = (
  tx: Tx,
  batch: readonly ProcessingContext[],
  lookupOf: (work: ProcessingContext) => ItemLookup
): Promise<Mappings> =>
  loadMappings(
    tx,
    batch.flatMap((work) =>
      unknownNames(work).filter(
        (name) => work.row.processed_at !== null || lookupOf(work)(name) === null
      )
    ),
    batch.flatMap(({ locationId, record, connection }) =>
      locationId === null && record.locationRef !== null
        ? [{ connection: Number(connection.id), ref: record.locationRef }]
        : []
    )
  );

type Products = TrialItems['products'];

/** Trials that were processed before: their products may have become items, and say what they have. */
const tryAgain = async (
  tx: Tx,
  app: App,
  relatives: readonly ProcessingContext[]
): Promise<Products> => {
  const isProduct = (item: number | null | undefined): boolean => (item ?? 0) < 0;
  const works = relatives.filter(({ items }) => items.some(isProduct));
  const names = works.flatMap(({ record, items }) =>
    lineNames(record).filter((_name, line) => isProduct(items[line]))
  );
  const { lookup, products } = await lookUpTrialItems(tx, app, names);
  for (const work of works) {
    const own = lineNames(work.record);
    work.items = work.items.map((item, line) => {
      const name = own[line];
      return isProduct(item) && name ? (lookup(name) ?? item) : item;
    });
  }
  return products;
};

/** Says in a trial's movements which products they would be of. */
const nameProducts = (work: ProcessingContext, products: Products): void => {
  work.moved = work.moved.map((line) => {
    const product = products.get(line.item);
    return product ? { ...line, sku: product.sku } : line;
  });
};

/** State and waits of sales and inventory messages; refunds are settled with their groups. */
const settleLines = (work: ProcessingContext): void => {
  if (work.record.kind === 'refund') return;
  const waiting = waitingLines(work);
  work.state = stateOfLines(work.row.mode, placedLines(work).length, waiting);
  work.waits = [
    ...itemWaitsOf(work),
    ...(work.locationId === null && waiting > 0 ? [locationWaitOf(work)] : []),
  ];
};

/** What the records of a batch came to, and the refund groups that were settled with them. */
export interface WorkedOut {
  batch: ProcessingContext[];
  groups: RefundGroup[];
  /** Levels that are other ones than before. */
  changes: LevelChange[];
}

/**
 * Works out what becomes of records: their items and places, their refund groups, and their movements,
 * which are written to the ledger. What the records and their events are then is for the caller to
 * write.
 * @param connections  those of the records and of their groups, by id
 * @param preview  nothing is written, and no level and no sale is locked
 */
export const workOut = async (
  tx: Tx,
  app: App,
  rows: readonly PosEventRow[],
  connections: ReadonlyMap<number, ConnectionRow>,
  times: Times,
  { preview = false }: { preview?: boolean } = {}
): Promise<WorkedOut> => {
  const batch: ProcessingContext[] = [];
  const slice = new TimeSlice();
  for (const row of rows) {
    const connection = connections.get(Number(row.connection_id));
    if (connection) batch.push(openContext(row, connection, true));
    if (slice.isOver()) await slice.next();
  }
  const takenBack = preview ? [] : await takeBack(tx, app, batch);
  const isTrial = ({ row }: ProcessingContext): boolean => preview || row.mode === 'test';
  const namesOf = (works: readonly ProcessingContext[]) => works.flatMap(unknownNames);
  const tried = await lookUpTrialItems(tx, app, namesOf(batch.filter(isTrial)));
  const live = batch.filter((work) => !isTrial(work));
  const adopted = await lookUpItems(tx, app, namesOf(live), tx);
  const lookupOf = (work: ProcessingContext): ItemLookup =>
    isTrial(work) ? tried.lookup : adopted;
  const mappings = await mappingsFor(tx, batch, lookupOf);
  const found = await loadFoundItems(
    tx,
    batch.flatMap((work) =>
      unknownNames(work)
        .flatMap((name) => [lookupOf(work)(name), mappings.ofLine(name)?.item ?? null])
        .flatMap((item) => item ?? [])
    )
  );
  for (const work of batch) resolveContext(work, lookupOf(work), mappings, found);
  if (!preview) await withdrawMisplaced(tx, app, batch);
  const groups = await loadRefundGroups(tx, batch, connections, { times, withMoney: !preview });
  const relatives = groups.flatMap((group) => group.settledRelatives);
  const products = new Map([
    ...tried.products,
    ...(await tryAgain(tx, app, relatives.filter(isTrial))),
  ]);
  const differences = await settleGoods(tx, groups, { preview });
  const { id: defaultPlace } = products.size > 0 ? await defaultLocation(tx) : { id: 0 };
  // A product's quantity is what its item would have there, once it is made.
  const openingOf = ({ item, location }: Place): number =>
    location === Number(defaultPlace) ? (products.get(item)?.quantity ?? 0) : 0;
  const changes: LevelChange[] = [...takenBack];
  for (const mode of ['live', 'test'] as const) {
    const changed = await write(
      new Ledger(app, tx, { simulate: preview || mode === 'test', openingOf }),
      batch.filter(({ row }) => row.mode === mode),
      differences.filter(({ work }) => work.row.mode === mode)
    );
    changes.push(...changed);
  }
  for (const work of [...batch, ...relatives].filter(isTrial)) nameProducts(work, products);
  batch.forEach(settleLines);
  return { batch, groups, changes: mergeChanges(changes) };
};
