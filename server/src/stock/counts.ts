import { findInChunks } from '../database/written-rows';
import type { App } from '../app';
import type { Db, Tx } from '../database/db';
import { foldInDatabase, lockLevels, type Place, placeKey, placeOf, readLevels } from './ledger';
import { lockMappedItems } from './products';
import { type Big, type LevelRow, LEVELS_TABLE, TRIAL_COUNTS_TABLE } from './tables';

/** Which counts were accepted, so that older ones are stale; docs/contract-pos.md#the-rule-of-stock. */

/** A count of an item at a location, at its effective time. */
export type AcceptedCount = Place & { at: number };

/** Test mode makes no levels: its counts are kept apart, and make none stale that is live. */
type Mode = 'live' | 'test';

type PlaceRow = Record<'item_id' | 'location_id', number>;

/** The times of the newest counts of test mode, by `placeKey`. */
export const readTrialCounts = async (db: Db, places: readonly Place[]) => {
  const rows = await findInChunks<PlaceRow & { at: Big }, Place>(places, (some) =>
    db
      .table(TRIAL_COUNTS_TABLE)
      .select('item_id', 'location_id', 'at')
      .whereIn('item_id', [...new Set(some.map(({ item }) => item))])
      .whereIn('location_id', [...new Set(some.map(({ location }) => location))])
  );
  return new Map(rows.map((row) => [placeKey(placeOf(row)), Number(row.at)]));
};

/** Writes down counts that test mode accepted; a newer one of the same place stays. */
export const saveTrialCounts = async (tx: Tx, counts: readonly AcceptedCount[]): Promise<void> => {
  const rows = counts.map(({ item, location, at }) => ({
    item_id: item,
    location_id: location,
    at,
  }));
  const conflict = { unique: ['item_id', 'location_id'], then: 'ignore' } as const;
  await tx.insert(TRIAL_COUNTS_TABLE, rows, conflict);
  for (const { at, ...place } of rows) {
    await tx.table(TRIAL_COUNTS_TABLE).where(place).where('at', '<', at).update({ at });
  }
};

/** Counts of test mode that version 0.2 kept with the levels. */
export const takeOverTrialCounts = async (tx: Tx): Promise<void> => {
  const rows: (PlaceRow & { test_count_at: Big })[] = await tx
    .table(LEVELS_TABLE)
    .select('item_id', 'location_id', 'test_count_at')
    .whereNotNull('test_count_at');
  const counts = rows.map((row) => ({ ...placeOf(row), at: Number(row.test_count_at) }));
  await saveTrialCounts(tx, counts);
};

const timesOf = (levels: ReadonlyMap<string, LevelRow>): Map<string, number> =>
  new Map(
    [...levels].flatMap(([key, { accepted_count_at: time }]): [string, number][] =>
      time === null ? [] : [[key, Number(time)]]
    )
  );

const NEVER = Number.NEGATIVE_INFINITY;

/** Judges counts one after the other, before they are accepted; see `openCountJudge`. */
export class CountJudge {
  private readonly changed: Record<Mode, Map<string, AcceptedCount>> = {
    live: new Map(),
    test: new Map(),
  };

  constructor(
    private readonly tx: Tx,
    private readonly levels: ReadonlyMap<string, LevelRow>,
    private readonly newest: Record<Mode, Map<string, number>>
  ) {}

  /**
   * Judges a count by the newest accepted ones of the same places, by effective time: older lines are stale, equal
   * times are corrections. Refused only if every line is stale: the till must not resend it then, and fresh lines would
   * be lost.
   * @param lines `place` is null if it cannot have been counted yet: no item, no place
   */
  judge<Line extends { place: Place | null }>(
    time: number,
    mode: Mode,
    lines: readonly Line[]
  ): { accepted: boolean; stale: Line[] } {
    const stale = lines.filter(({ place }) => place && time < this.newestAt(placeKey(place), mode));
    const accepted = stale.length === 0 || stale.length < lines.length;
    if (accepted) for (const { place } of lines) if (place) this.accept(place, mode, time);
    return { accepted, stale };
  }

  /** Writes down the newest accepted times, which later counts are judged by. */
  async save(): Promise<void> {
    const { live, test } = this.changed;
    for (const [key, { at }] of live) {
      const id = this.levels.get(key)?.id;
      if (id === undefined) continue;
      await this.tx.table(LEVELS_TABLE).where({ id }).update({ accepted_count_at: at });
    }
    await saveTrialCounts(this.tx, [...test.values()]);
  }

  /** A test count is judged against live ones too, and makes none of them stale. */
  private newestAt(key: string, mode: Mode): number {
    const live = this.newest.live.get(key) ?? NEVER;
    return mode === 'live' ? live : Math.max(live, this.newest.test.get(key) ?? NEVER);
  }

  private accept(place: Place, mode: Mode, at: number): void {
    const key = placeKey(place);
    if ((this.newest[mode].get(key) ?? NEVER) >= at) return;
    this.newest[mode].set(key, at);
    this.changed[mode].set(key, { ...place, at });
  }
}

/**
 * Locks the levels of counted places, so that counts are judged one by one and no node accepts a newer one meanwhile.
 * @param lock false if nothing will be accepted: counts may be judged, not saved
 */
export const openCountJudge = async (
  tx: Tx,
  places: Readonly<Record<Mode, readonly Place[]>>,
  { lock }: { lock: boolean }
): Promise<CountJudge> => {
  const levels = await (lock ? lockLevels : readLevels)(tx, places.live);
  const tried = await readLevels(tx, places.test);
  const test = await readTrialCounts(tx, places.test);
  return new CountJudge(tx, levels, { live: timesOf(new Map([...tried, ...levels])), test });
};

/**
 * Withdraws accepted counts that are of something else: they make nothing stale any more. Counts older than a newer
 * accepted one stay stale.
 * @param accepted reads, once the levels are locked, others that are not in the ledger yet
 */
export const withdrawCounts = async (
  tx: Tx,
  app: App,
  withdrawn: readonly AcceptedCount[],
  accepted: () => Promise<readonly AcceptedCount[]>
): Promise<void> => {
  if (withdrawn.length === 0) return;
  // Later moves in this transaction lock their products.
  const items = withdrawn.map(({ item }) => item);
  await lockMappedItems(tx, app, items);
  const levels = await lockLevels(tx, withdrawn);
  const others = await accepted();
  const isOf = (key: string) => (one: AcceptedCount) => placeKey(one) === key;
  for (const [key, level] of levels) {
    const mark = level.accepted_count_at;
    const isMarked = ({ at }: AcceptedCount) => mark !== null && at === Number(mark);
    if (!withdrawn.filter(isOf(key)).some(isMarked)) continue;
    const { lastCount } = await foldInDatabase(tx, level);
    const times = others.filter(isOf(key)).map(({ at }) => at);
    if (lastCount) times.push(lastCount.time);
    const newest = times.length === 0 ? null : Math.max(...times);
    await tx.table(LEVELS_TABLE).where({ id: level.id }).update({ accepted_count_at: newest });
  }
};

/** As `withdrawCounts`, of test mode. */
export const withdrawTrialCounts = async (tx: Tx, counts: readonly AcceptedCount[]) => {
  for (const { item, location, at } of counts) {
    await tx.table(TRIAL_COUNTS_TABLE).where({ item_id: item, location_id: location, at }).delete();
  }
};
