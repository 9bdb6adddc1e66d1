import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../database/connection';
import { markChanged } from './catalogue/changes';
import { foldInDatabase } from './fold-level';
import { type LevelChange, lockLevels, type Place, placeKey } from './levels';
import { lockMappedItems, writeThrough } from './product-mapping';
import { type LevelRow, LEVELS_TABLE, type MovementRow, MOVEMENTS_TABLE } from './tables';

/** A line of a count that is to be taken back. */
export interface CountToUndo extends Place {
  event: number;
  line: number;
}

/**
 * Takes counts back: their lines stay in the ledger, marked, and no level starts from them any more.
 * What the level becomes by that is a line of its own, so that the effects still add up to it.
 */
export const undoCounts = async (
  strapi: Core.Strapi,
  trx: Executor,
  counts: readonly CountToUndo[]
): Promise<LevelChange[]> => {
  if (counts.length === 0) return [];
  await lockMappedItems(
    strapi,
    trx,
    counts.map(({ item }) => item)
  );
  const levels = await lockLevels(strapi, trx, counts);
  const changes: LevelChange[] = [];
  for (const [key, level] of levels) {
    const own = counts.filter((one) => placeKey(one) === key);
    if (own.length > 0) changes.push(...(await undoOnLevel(strapi, trx, level, own)));
  }
  await markChanged(
    strapi,
    trx,
    changes.map(({ item }) => item)
  );
  await writeThrough(strapi, trx, changes);
  return changes;
};

const undoOnLevel = async (
  strapi: Core.Strapi,
  trx: Executor,
  level: LevelRow,
  counts: readonly CountToUndo[]
): Promise<LevelChange[]> => {
  const movements = () => table(strapi, trx, MOVEMENTS_TABLE).where({ level_id: level.id });
  const undone: MovementRow[] = [];
  for (const { event, line } of counts) {
    const rows = () =>
      movements().where({ type: 'count', event_id: event, line }).whereNull('undone');
    undone.push(...((await rows().select('*')) as MovementRow[]));
    await rows().update({ undone: true });
  }
  const { quantity, lastCount } = await foldInDatabase(strapi, trx, level);
  const [newest] = (await movements()
    .where({ type: 'count' })
    .whereNull('undone')
    .max({ at: 'at' })) as { at: number | string | null }[];
  const at = Date.now();
  const accepted = level.accepted_count_at ?? null;
  // A newer one was accepted, and may wait to be processed: what is older stays stale.
  const isNewer = accepted !== null && undone.every((one) => Number(one.at) < Number(accepted));
  await table(strapi, trx, LEVELS_TABLE)
    .where({ id: level.id })
    .update({
      quantity,
      count_at: lastCount?.time ?? null,
      count_seq: lastCount?.seq ?? null,
      count_line: lastCount?.line ?? null,
      accepted_count_at: isNewer ? accepted : (newest?.at ?? null),
      updated_at: at,
    });
  const before = Number(level.quantity);
  const [first] = undone;
  if (first) {
    await table(strapi, trx, MOVEMENTS_TABLE).insert({
      level_id: level.id,
      type: 'count',
      at: Number(first.at),
      seq: first.seq,
      line: first.line,
      quantity: 0,
      effect: quantity - before,
      quantity_after: quantity,
      reason: 'mapping_undone',
      note: first.note,
      event_id: first.event_id,
      undone: true,
      created_at: at,
    });
  }
  if (quantity === before) return [];
  const place = { item: Number(level.item_id), location: Number(level.location_id) };
  return [{ ...place, levelId: Number(level.id), before, after: quantity }];
};
