import { type LevelRow, LEVELS_TABLE } from './tables';
import type { Db, Tx } from '../database/db';

/** Where an item is kept. */
export interface Place {
  item: number;
  location: number;
}

export const placeKey = ({ item, location }: Place): string => `${item}@${location}`;

const CHUNK = 200;

const byPlace = (a: Place, b: Place): number => a.item - b.item || a.location - b.location;

const distinct = (places: readonly Place[]): Place[] =>
  [...new Map(places.map((place) => [placeKey(place), place])).values()].sort(byPlace);

const chunksOf = <T>(list: readonly T[]): T[][] => {
  const chunks: T[][] = [];
  for (let at = 0; at < list.length; at += CHUNK) chunks.push(list.slice(at, at + CHUNK));
  return chunks;
};

const select = async (db: Db, places: readonly Place[], lock: boolean): Promise<LevelRow[]> => {
  const rows: LevelRow[] = [];
  for (const chunk of chunksOf(places)) {
    const query = db
      .table(LEVELS_TABLE)
      .select('*')
      .whereIn('item_id', [...new Set(chunk.map(({ item }) => item))])
      .whereIn('location_id', [...new Set(chunk.map(({ location }) => location))])
      .orderBy(['item_id', 'location_id']);
    rows.push(...((await (lock ? query.forUpdate() : query)) as LevelRow[]));
  }
  return rows;
};

const byKey = (rows: readonly LevelRow[]): Map<string, LevelRow> =>
  new Map(
    rows.map((row) => [
      placeKey({ item: Number(row.item_id), location: Number(row.location_id) }),
      row,
    ])
  );

/** The levels of these places as they are; places without a level are absent. Locks nothing. */
export const readLevels = async (
  db: Db,
  places: readonly Place[]
): Promise<Map<string, LevelRow>> => byKey(await select(db, distinct(places), false));

/**
 * Makes the levels that are missing, locks all of these places until the transaction ends, and
 * returns them by `placeKey`. Always in the order of item and location, so that two transactions
 * never wait for each other in a circle.
 */
export const lockLevels = async (
  tx: Tx,
  places: readonly Place[]
): Promise<Map<string, LevelRow>> => {
  const wanted = distinct(places);
  if (wanted.length === 0) return new Map();
  const locked = byKey(await select(tx, wanted, true));
  const missing = wanted.filter((place) => !locked.has(placeKey(place)));
  if (missing.length === 0) return locked;
  const at = Date.now();
  for (const chunk of chunksOf(missing)) {
    await tx
      .table(LEVELS_TABLE)
      .insert(
        chunk.map(({ item, location }) => ({
          item_id: item,
          location_id: location,
          opening: 0,
          quantity: 0,
          updated_at: at,
        }))
      )
      .onConflict(['item_id', 'location_id'])
      .ignore();
  }
  return byKey(await select(tx, wanted, true));
};

/** A level whose quantity is another one than before the transaction. */
export interface LevelChange extends Place {
  levelId: number;
  before: number;
  after: number;
}

/** One change a level, in the order in which the levels first changed; none where it is as before. */
export const mergeChanges = (changes: readonly LevelChange[]): LevelChange[] => {
  const merged = new Map<number, LevelChange>();
  for (const change of changes) {
    const { before } = merged.get(change.levelId) ?? change;
    merged.set(change.levelId, { ...change, before });
  }
  return [...merged.values()].filter(({ before, after }) => before !== after);
};
