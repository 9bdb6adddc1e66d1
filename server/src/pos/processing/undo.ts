import type { MappingKind } from '../../../../shared/contracts/pos-mapping';
import { Ledger, undoCounts } from '../../stock/ledger';
import type { LevelChange, Place } from '../../stock/ledger';
import type { ProcessingContext } from '../processing/processing-context';
import { getRecordStore } from '../processing/record-store';
import { noteOf, quantityOf } from '../rules/records';
import { POS_MAPPED_LINES_TABLE, POS_MAPPINGS_TABLE } from '../tables';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

interface UndoneLine {
  id: number;
  event_id: number;
  line: number;
  kind: MappingKind;
}

const CHUNK = 500;

const undoneLines = async (tx: Tx, events: readonly number[]): Promise<UndoneLine[]> => {
  const rows: UndoneLine[] = [];
  for (let start = 0; start < events.length; start += CHUNK) {
    rows.push(
      ...((await tx
        .table(`${POS_MAPPED_LINES_TABLE} as d`)
        .join(`${POS_MAPPINGS_TABLE} as m`, 'm.id', 'd.mapping_id')
        .select('d.id', 'd.event_id', 'd.line', 'm.kind')
        .whereIn('d.event_id', events.slice(start, start + CHUNK))
        .whereNotNull('m.undone_at')) as UndoneLine[])
    );
  }
  return rows;
};

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
  work.items = items.map((item, line) => (lines.has(line) ? null : item));
  work.ignored = work.ignored.filter((line) => !lines.has(line));
  work.locationId = location;
  return posted;
};

const isCounted = ({ work: { record } }: Posted): boolean =>
  record.kind === 'inventory' && record.mode === 'absolute';

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
export const takeBack = async (
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
  for (let start = 0; start < undone.length; start += CHUNK) {
    await tx
      .table(POS_MAPPED_LINES_TABLE)
      .whereIn(
        'id',
        undone.slice(start, start + CHUNK).map(({ id }) => id)
      )
      .delete();
  }
  const counted = posted.filter(isCounted);
  const moved = posted.filter((one) => !isCounted(one));
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

/** The records that a mapping decided something of. */
const recordsOfMapping = async (db: Db, mapping: number): Promise<number[]> => {
  const rows = (await db
    .table(POS_MAPPED_LINES_TABLE)
    .distinct('event_id')
    .where({ mapping_id: mapping })
    .orderBy('event_id')) as { event_id: number }[];
  return rows.map(({ event_id: id }) => Number(id));
};

/** Has the records of a mapping that was undone worked on again, after their commit. */
export const wakeMapped = async (db: Db, app: App, mapping: number): Promise<number[]> => {
  const store = getRecordStore(app);
  const ids = await recordsOfMapping(db, mapping);
  await store.bringForward(db, ids, 'mapping_undone');
  app.db.afterCommit(store.announce);
  return ids;
};

/**
 * A mapping that was undone while a record was being applied by it did not know of that record, and
 * the record saw it hold. Whoever commits last sees the other: here, or in the undoing.
 */
export const notifyUndone = async (
  app: App,
  batch: readonly ProcessingContext[]
): Promise<void> => {
  const used = [...new Set(batch.flatMap(({ mapped }) => mapped.map(({ mapping }) => mapping)))];
  if (used.length === 0) return;
  await app.db.transaction(async (tx) => {
    for (let start = 0; start < used.length; start += CHUNK) {
      const undone = (await tx
        .table(POS_MAPPINGS_TABLE)
        .select('id')
        .whereIn('id', used.slice(start, start + CHUNK))
        .whereNotNull('undone_at')) as { id: number }[];
      for (const { id } of undone) await wakeMapped(tx, app, Number(id));
    }
  });
};
