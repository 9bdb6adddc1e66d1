import { inChunks } from '../database/matching-documents';
import type { AcceptedCount } from '../stock/ledger';
import { type Place, placeKey } from '../stock/levels';
import type { Big } from '../stock/tables';
import { POS_TRIAL_COUNTS_TABLE } from './tables';
import type { Db, Tx } from '../database/db';

interface TrialCountRow {
  item_id: number;
  location_id: number;
  at: Big;
}

const placeOf = ({ item_id: item, location_id: location }: TrialCountRow): Place => ({
  item: Number(item),
  location: Number(location),
});

/** The times of the newest counts of test mode, by `placeKey`. */
export const readTrialCounts = async (
  db: Db,
  places: readonly Place[]
): Promise<Map<string, number>> => {
  const times = new Map<string, number>();
  for (const some of inChunks(places)) {
    const rows = (await db
      .table(POS_TRIAL_COUNTS_TABLE)
      .select('item_id', 'location_id', 'at')
      .whereIn('item_id', [...new Set(some.map(({ item }) => item))])
      .whereIn('location_id', [
        ...new Set(some.map(({ location }) => location)),
      ])) as TrialCountRow[];
    for (const row of rows) times.set(placeKey(placeOf(row)), Number(row.at));
  }
  return times;
};

/** Writes down counts that test mode accepted; a newer one of the same place stays. */
export const saveTrialCounts = async (tx: Tx, counts: readonly AcceptedCount[]): Promise<void> => {
  // SQLite takes five hundred rows of one statement.
  for (const some of inChunks(counts)) {
    await tx
      .table(POS_TRIAL_COUNTS_TABLE)
      .insert(some.map(({ item, location, at }) => ({ item_id: item, location_id: location, at })))
      .onConflict(['item_id', 'location_id'])
      .ignore();
    for (const { item, location, at } of some) {
      await tx
        .table(POS_TRIAL_COUNTS_TABLE)
        .where({ item_id: item, location_id: location })
        .where('at', '<', at)
        .update({ at });
    }
  }
};

/** Counts of test mode turn out to be of something else. */
export const withdrawTrialCounts = async (
  tx: Tx,
  counts: readonly AcceptedCount[]
): Promise<void> => {
  for (const { item, location, at } of counts) {
    await tx
      .table(POS_TRIAL_COUNTS_TABLE)
      .where({ item_id: item, location_id: location, at })
      .delete();
  }
};
