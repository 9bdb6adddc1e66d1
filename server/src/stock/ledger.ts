import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { type Executor, table } from '../database/connection';
import { readLatest } from '../database/latest';
import { markChanged } from './catalogue/changes';
import { moving } from './fold-level';
import { type LevelChange, lockLevels, type Place, placeKey, readLevels } from './levels';
import {
  applyCount,
  applyMovement,
  type AskedReason,
  isLatestCount,
  type LevelState,
  type MovementReason,
  type MovementType,
  type Step,
} from './rules/fold';
import { type LevelRow, LEVELS_TABLE, MOVEMENTS_TABLE } from './tables';
import { lockMappedItems, writeThrough } from './product-mapping';

export interface AskedEntry extends Place {
  /** Effective time, epoch milliseconds. */
  at: number;
  /** What the shelf gains; for a count, what was counted. */
  quantity: number;
  /** The POS event it belongs to; null for the owner's own adjustments. */
  eventId: number | null;
  note: string | null;
  /** The transfer or stocktake it belongs to. */
  documentId?: number;
  /** Who made it by hand. */
  madeBy?: string | null;
}

export interface AskedMove extends AskedEntry {
  type: Exclude<MovementType, 'count'>;
  reason: AskedReason | null;
}

export interface AskedCounting extends AskedEntry {
  line: number;
  /** Orders counts of the very same time; the POS event's id if left out. */
  seq?: number;
}

/** A line of the ledger as it was written, or would be. */
export interface LedgerLine extends Place {
  type: MovementType;
  at: number;
  quantity: number;
  effect: number;
  quantityAfter: number;
  reason: MovementReason | null;
  eventId: number | null;
  seq: number | null;
  line: number | null;
  note: string | null;
  documentId?: number;
  madeBy?: string | null;
}

/**
 * The only writer of levels (docs/tills.md#the-rule-of-stock). Entries are worked out in memory
 * while the levels are locked, and written together by `flush`.
 */
export interface Ledger {
  /** Locks the levels of these places; every place must be locked before it is written to. */
  lock(places: readonly Place[]): Promise<void>;
  move(asked: AskedMove): LedgerLine;
  /** All lines of one count, which share its time. */
  count(asked: readonly AskedCounting[]): Promise<LedgerLine[]>;
  /**
   * Writes everything and follows through to mapped products. What changed is for the caller to
   * publish (`stockChangeEvents`), in the same transaction.
   */
  flush(): Promise<LevelChange[]>;
}

const INSERT_CHUNK = 50;

interface Held {
  row: LevelRow | null;
  before: number;
  state: LevelState;
  acceptedCountAt: number | null;
  lines: LedgerLine[];
}

const numberOrNull = (value: number | string | null): number | null =>
  value === null ? null : Number(value);

const seqOf = ({ seq, eventId }: AskedCounting): number => seq ?? eventId ?? 0;

const stateOf = (row: LevelRow): LevelState => ({
  quantity: Number(row.quantity),
  lastCount:
    row.count_at === null
      ? null
      : { time: Number(row.count_at), seq: Number(row.count_seq), line: Number(row.count_line) },
});

const held = (row: LevelRow | null): Held => {
  const state = row ? stateOf(row) : { quantity: 0, lastCount: null };
  return {
    row,
    before: state.quantity,
    state,
    acceptedCountAt: row ? numberOrNull(row.accepted_count_at) : null,
    lines: [],
  };
};

/**
 * @param simulate  works everything out and writes nothing: for test-mode records. It neither locks
 *   levels nor makes them.
 */
export const createLedger = (
  strapi: Core.Strapi,
  trx: Knex.Transaction | Executor,
  { simulate = false, now = Date.now }: { simulate?: boolean; now?: () => number } = {}
): Ledger => {
  const levels = new Map<string, Held>();
  const pending: LedgerLine[] = [];

  const at = (place: Place): Held => {
    const level = levels.get(placeKey(place));
    if (!level) throw new Error(`The level ${placeKey(place)} is not locked.`);
    return level;
  };

  const append = (
    level: Held,
    step: Step,
    base: Omit<LedgerLine, 'effect' | 'quantityAfter' | 'reason'>
  ): LedgerLine => {
    const { effect, reason } = step;
    const line: LedgerLine = { ...base, effect, reason, quantityAfter: step.level.quantity };
    level.state = step.level;
    level.lines.push(line);
    pending.push(line);
    return line;
  };

  /** By level id: what was moved later than `time`, in the database. */
  const movedAfter = async (ids: readonly number[], time: number): Promise<Map<number, number>> => {
    const sums = new Map<number, number>();
    for (let start = 0; start < ids.length; start += 200) {
      // Of quantities: what a count covered has no effect, and moves again once that count is undone.
      const query = moving(table(strapi, trx, MOVEMENTS_TABLE))
        .select('level_id')
        .sum({ moved: 'quantity' })
        .whereIn('level_id', ids.slice(start, start + 200))
        .where('at', '>', time)
        .groupBy('level_id');
      const rows = (await (simulate ? query : readLatest(strapi, query))) as {
        level_id: number;
        moved: number | string | null;
      }[];
      for (const row of rows) sums.set(Number(row.level_id), Number(row.moved ?? 0));
    }
    return sums;
  };

  const sumPending = (level: Held, time: number): number =>
    level.lines.reduce(
      (sum, line) => (line.type !== 'count' && line.at > time ? sum + line.effect : sum),
      0
    );

  const writeMovements = async (): Promise<void> => {
    const createdAt = now();
    const rows = pending.map((line) => ({
      level_id: at(line).row?.id,
      type: line.type,
      at: line.at,
      seq: line.seq,
      line: line.line,
      quantity: line.quantity,
      effect: line.effect,
      quantity_after: line.quantityAfter,
      reason: line.reason,
      note: line.note,
      event_id: line.eventId,
      document_id: line.documentId ?? null,
      made_by: line.madeBy ?? null,
      created_at: createdAt,
    }));
    for (let start = 0; start < rows.length; start += INSERT_CHUNK) {
      await table(strapi, trx, MOVEMENTS_TABLE).insert(rows.slice(start, start + INSERT_CHUNK));
    }
  };

  const writeLevels = async (touched: readonly Held[]): Promise<void> => {
    const updatedAt = now();
    const rows = touched.map(({ row, state, acceptedCountAt }) => ({
      ...row,
      quantity: state.quantity,
      count_at: state.lastCount?.time ?? null,
      count_seq: state.lastCount?.seq ?? null,
      count_line: state.lastCount?.line ?? null,
      accepted_count_at: acceptedCountAt,
      updated_at: updatedAt,
    }));
    for (let start = 0; start < rows.length; start += INSERT_CHUNK) {
      // The rows exist and are locked: this is an update of many rows in one statement.
      await table(strapi, trx, LEVELS_TABLE)
        .insert(rows.slice(start, start + INSERT_CHUNK))
        .onConflict('id')
        .merge([
          'quantity',
          'count_at',
          'count_seq',
          'count_line',
          'accepted_count_at',
          'updated_at',
        ]);
    }
  };

  return {
    async lock(places) {
      const wanted = places.filter((place) => !levels.has(placeKey(place)));
      if (wanted.length === 0) return;
      if (!simulate)
        await lockMappedItems(
          strapi,
          trx,
          wanted.map(({ item }) => item)
        );
      const rows = await (simulate ? readLevels : lockLevels)(strapi, trx, wanted);
      for (const place of wanted) {
        const key = placeKey(place);
        if (!levels.has(key)) levels.set(key, held(rows.get(key) ?? null));
      }
    },

    move({ reason, ...asked }) {
      const level = at(asked);
      const { at: time, quantity } = asked;
      const step = applyMovement(level.state, { time, quantity, reason });
      return append(level, step, { ...asked, seq: null, line: null });
    },

    async count(asked) {
      const time = asked[0]?.at ?? 0;
      const fresh = asked.filter((one) =>
        isLatestCount(at(one).state, { time, seq: seqOf(one), line: one.line })
      );
      const ids = fresh.flatMap((one) => at(one).row?.id ?? []);
      const sums = await movedAfter(ids, time);
      return asked.map((one) => {
        const level = at(one);
        const { quantity, line } = one;
        const seq = seqOf(one);
        const after = (sums.get(Number(level.row?.id)) ?? 0) + sumPending(level, time);
        const step = applyCount(level.state, { time, seq, line, quantity }, after);
        level.acceptedCountAt = Math.max(level.acceptedCountAt ?? time, time);
        return append(level, step, { ...one, type: 'count', seq });
      });
    },

    async flush() {
      if (simulate || pending.length === 0) return [];
      const touched = [...levels.entries()].filter(([, level]) => level.lines.length > 0);
      await writeMovements();
      await writeLevels(touched.map(([, level]) => level));
      const changes = touched.flatMap(([, level]): LevelChange[] => {
        const { row, before, state } = level;
        if (!row || before === state.quantity) return [];
        const place = { item: Number(row.item_id), location: Number(row.location_id) };
        return [{ ...place, levelId: row.id, before, after: state.quantity }];
      });
      pending.length = 0;
      await markChanged(
        strapi,
        trx,
        changes.map(({ item }) => item)
      );
      await writeThrough(strapi, trx, changes);
      return changes;
    },
  };
};
