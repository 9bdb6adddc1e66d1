import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../../database/connection';
import { type ItemName, lookUpItems } from '../../stock/items';
import { lockLevels, type Place, placeKey, readLevels } from '../../stock/levels';
import { loadMappings, type Mappings, type NamedLocation } from '../mapping/mappings';
import { judgeCounts } from '../../stock/rules/staleness';
import { type LevelRow, LEVELS_TABLE } from '../../stock/tables';
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
}

export interface CountJudge {
  /** Judges a stocktake of the batch; one that is accepted makes older ones after it stale. */
  judge(stocktake: Stocktake): CountVerdict;
  /** Writes down the newest accepted times, which later batches are judged by. */
  save(): Promise<void>;
}

const TIME_COLUMNS = {
  live: 'accepted_count_at',
  test: 'test_count_at',
} as const satisfies Record<ConnectionMode, keyof LevelRow>;

/** The times of the newest accepted counts, by `placeKey`. */
class NewestCounts {
  private readonly times: Record<ConnectionMode, Map<string, number>>;
  readonly changed = new Map<string, { level: LevelRow; mode: ConnectionMode; time: number }>();

  constructor(private readonly levels: ReadonlyMap<string, LevelRow>) {
    const timesOf = (mode: ConnectionMode): Map<string, number> =>
      new Map(
        [...levels].flatMap(([key, row]): [string, number][] => {
          const time = row[TIME_COLUMNS[mode]];
          return time === null || time === undefined ? [] : [[key, Number(time)]];
        })
      );
    this.times = { live: timesOf('live'), test: timesOf('test') };
  }

  /** A test count is judged against live ones too, and makes none of them stale. */
  at(key: string, mode: ConnectionMode): number | null {
    const live = this.times.live.get(key) ?? null;
    if (mode === 'live') return live;
    const test = this.times.test.get(key) ?? null;
    return live === null || test === null ? (live ?? test) : Math.max(live, test);
  }

  accept(key: string, mode: ConnectionMode, time: number): void {
    const times = this.times[mode];
    const level = this.levels.get(key);
    if (!level || (times.get(key) ?? Number.NEGATIVE_INFINITY) >= time) return;
    times.set(key, time);
    this.changed.set(`${mode}/${key}`, { level, mode, time });
  }
}

/** A line of a stocktake; `key` is null where nobody can have counted it yet: no item, no place. */
type KeyedLine = StaleLine & { key: string | null };

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
  const places: Place[] = [];
  const linesOf = new Map<CountRecord, KeyedLine[]>();
  for (const stocktake of stocktakes) {
    const { record } = stocktake;
    const location = stocktake.locationId ?? mappedLocation(stocktake, mappings);
    const lines = record.counts.map(({ sku, quantity }): KeyedLine => {
      const item = itemOf({ sku, gtin: null });
      if (item === null || location === null) return { sku, quantity, key: null };
      const place = { item, location };
      places.push(place);
      return { sku, quantity, key: placeKey(place) };
    });
    linesOf.set(record, lines);
  }
  const newest = new NewestCounts(await (lock ? lockLevels : readLevels)(strapi, trx, places));

  return {
    judge({ record, mode }) {
      const time = record.effectiveMs;
      const lines = linesOf.get(record) ?? [];
      const verdict = judgeCounts(
        time,
        lines.map(({ key, ...line }) => ({
          line,
          newestAcceptedTime: key === null ? null : newest.at(key, mode),
        }))
      );
      const stale = verdict.verdict === 'fresh' ? [] : verdict.stale.map(({ line }) => line);
      if (verdict.verdict === 'stale') return { accepted: false, stale };
      for (const { key } of lines) if (key !== null) newest.accept(key, mode, time);
      return { accepted: true, stale };
    },

    async save() {
      for (const { level, mode, time } of newest.changed.values()) {
        await table(strapi, trx, LEVELS_TABLE)
          .where({ id: level.id })
          .update({ [TIME_COLUMNS[mode]]: time });
      }
    },
  };
};
