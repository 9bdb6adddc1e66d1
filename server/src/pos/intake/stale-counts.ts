import type { Core } from '@strapi/strapi';
import type { Executor } from '../../database/connection';
import { acceptCounts, type AcceptedCount } from '../../stock/ledger';
import { type ItemName, lookUpItems } from '../../stock/items';
import { lockLevels, type Place, placeKey, readLevels } from '../../stock/levels';
import { readTrialCounts, saveTrialCounts } from './trial-counts';
import type { CountedPlaces } from '../mapping/counted-places';
import { loadMappings, type Mappings, type NamedLocation } from '../mapping/mappings';
import { judgeCounts } from '../../stock/rules/staleness';
import type { LevelRow } from '../../stock/tables';
import type { CountLine, InventoryRecord, PosRecord } from '../rules/records';
import { lineNames } from '../rules/record-lines';
import type { ConnectionMode } from '../rules/states';

/** A stocktake; an adjustment is never stale. */
export type CountRecord = InventoryRecord & { mode: 'absolute' };

export const isCount = (record: PosRecord): record is CountRecord =>
  record.kind === 'inventory' && record.mode === 'absolute';

/**
 * Where and how a stocktake was taken. Without a location of its connection's own map it is where a
 * mapping of the inbox says; its lines cannot be stale where none does.
 */
export interface Stocktake {
  record: CountRecord;
  connection: number;
  locationId: number | null;
  mode: ConnectionMode;
}

export type StaleLine = Pick<CountLine, 'sku' | 'quantity'>;

export interface CountVerdict {
  /** False: every line is stale. */
  accepted: boolean;
  stale: StaleLine[];
  places: CountedPlaces;
}

export interface CountJudge {
  /** Judges a stocktake of the batch; one that is accepted makes older ones after it stale. */
  judge(stocktake: Stocktake): CountVerdict;
  /** Writes down the newest accepted times, which later batches are judged by. */
  save(): Promise<void>;
}

/** The times of the newest accepted counts, by `placeKey`. */
class NewestCounts {
  readonly changed: Record<ConnectionMode, Map<string, AcceptedCount>> = {
    live: new Map(),
    test: new Map(),
  };

  constructor(private readonly times: Record<ConnectionMode, Map<string, number>>) {}

  /** A test count is judged against live ones too, and makes none of them stale. */
  at(key: string, mode: ConnectionMode): number | null {
    const live = this.times.live.get(key) ?? null;
    if (mode === 'live') return live;
    const test = this.times.test.get(key) ?? null;
    return live === null || test === null ? (live ?? test) : Math.max(live, test);
  }

  accept(place: Place, mode: ConnectionMode, time: number): void {
    const key = placeKey(place);
    if ((this.times[mode].get(key) ?? Number.NEGATIVE_INFINITY) >= time) return;
    this.times[mode].set(key, time);
    this.changed[mode].set(key, { ...place, at: time });
  }
}

const timesOf = (
  levels: ReadonlyMap<string, LevelRow>,
  column: 'accepted_count_at' | 'test_count_at'
): Map<string, number> =>
  new Map(
    [...levels].flatMap(([key, row]): [string, number][] => {
      const time = row[column];
      return time === null || time === undefined ? [] : [[key, Number(time)]];
    })
  );

/** A line of a stocktake; `place` is null where nobody can have counted it yet: no item, no place. */
type PlacedLine = StaleLine & { place: Place | null };

const unmappedLocation = ({ record, connection, locationId }: Stocktake): NamedLocation[] =>
  locationId === null && record.locationRef !== null
    ? [{ connection, ref: record.locationRef }]
    : [];

const mappedLocation = (stocktake: Stocktake, mappings: Mappings): number | null => {
  const [named] = unmappedLocation(stocktake);
  return named ? (mappings.ofLocation(named.connection, named.ref)?.location ?? null) : null;
};

/**
 * Locks the levels of what a batch counts, so that its stocktakes can be judged one after the other
 * (docs/contract-pos.md#order) and no other node accepts a newer one meanwhile. Without stocktakes
 * it asks the database nothing.
 * @param lock  false where nothing is going to be accepted: then a stocktake may be judged, not saved
 */
export const openCountJudge = async (
  strapi: Core.Strapi,
  trx: Executor,
  stocktakes: readonly Stocktake[],
  { lock = true }: { lock?: boolean } = {}
): Promise<CountJudge> => {
  const names = stocktakes.flatMap(({ record }) => lineNames(record));
  const lookup = names.length === 0 ? () => null : await lookUpItems(strapi, trx, names, false);
  const unknown = names.filter((name) => lookup(name) === null);
  const mappings = await loadMappings(strapi, trx, unknown, stocktakes.flatMap(unmappedLocation));
  const itemOf = (name: ItemName) => lookup(name) ?? mappings.ofLine(name)?.item ?? null;
  const places: Record<ConnectionMode, Place[]> = { live: [], test: [] };
  const linesOf = new Map<CountRecord, PlacedLine[]>();
  for (const stocktake of stocktakes) {
    const { record, mode } = stocktake;
    const location = stocktake.locationId ?? mappedLocation(stocktake, mappings);
    const lines = record.counts.map(({ sku, quantity }): PlacedLine => {
      const item = itemOf({ sku, gtin: null });
      if (item === null || location === null) return { sku, quantity, place: null };
      const place = { item, location };
      places[mode].push(place);
      return { sku, quantity, place };
    });
    linesOf.set(record, lines);
  }
  // Test mode makes no levels, and keeps none from others.
  const levels = await (lock ? lockLevels : readLevels)(strapi, trx, places.live);
  const tried = await readLevels(strapi, trx, places.test);
  const trials = await readTrialCounts(strapi, trx, places.test);
  const live = timesOf(new Map([...tried, ...levels]), 'accepted_count_at');
  const test = timesOf(tried, 'test_count_at');
  for (const [key, at] of trials) test.set(key, Math.max(at, test.get(key) ?? at));
  const newest = new NewestCounts({ live, test });

  return {
    judge({ record, mode }) {
      const time = record.effectiveMs;
      const lines = linesOf.get(record) ?? [];
      const verdict = judgeCounts(
        time,
        lines.map(({ place, ...line }) => ({
          line,
          newestAcceptedTime: place === null ? null : newest.at(placeKey(place), mode),
        }))
      );
      const stale = verdict.verdict === 'fresh' ? [] : verdict.stale.map(({ line }) => line);
      const placed = lines.map(({ place }) => place);
      if (verdict.verdict === 'stale') return { accepted: false, stale, places: placed };
      for (const place of placed) if (place !== null) newest.accept(place, mode, time);
      return { accepted: true, stale, places: placed };
    },

    async save() {
      const accepted = [...newest.changed.live].flatMap(([key, { at }]) => {
        const level = levels.get(key);
        return level ? [{ levelId: Number(level.id), at }] : [];
      });
      await acceptCounts(strapi, trx, accepted);
      await saveTrialCounts(strapi, trx, [...newest.changed.test.values()]);
    },
  };
};
