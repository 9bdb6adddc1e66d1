import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { RebuildDifference, RebuildReport } from '../../../shared/contracts/stock';
import { type Executor, inTransaction, table } from '../database/connection';
import { withTransientRetry } from '../database/errors/retry';
import { type LevelState, openLevel, STANDING_REASONS } from './rules/fold';
import { writeThrough } from './product-mapping';
import {
  type ItemRow,
  ITEMS_TABLE,
  type LevelRow,
  LEVELS_TABLE,
  type LocationRow,
  LOCATIONS_TABLE,
  type MovementRow,
  MOVEMENTS_TABLE,
} from './tables';

const LEVELS_AT_ONCE = 50;

/** The fold of `rules/fold.ts`, asked of the database, so that a million movements cost no memory. */
const foldInDatabase = async (
  strapi: Core.Strapi,
  trx: Executor,
  level: LevelRow
): Promise<LevelState> => {
  const movements = (): Knex.QueryBuilder =>
    table(strapi, trx, MOVEMENTS_TABLE).where({ level_id: level.id });
  const last = (await movements()
    .where({ type: 'count' })
    .orderBy([
      { column: 'at', order: 'desc' },
      { column: 'seq', order: 'desc' },
      { column: 'line', order: 'desc' },
    ])
    .first()) as MovementRow | undefined;
  const moved = movements()
    .whereNot({ type: 'count' })
    .andWhere((any) => {
      any.whereNull('reason').orWhereNotIn('reason', [...STANDING_REASONS]);
    });
  if (last) moved.andWhere('at', '>', Number(last.at));
  const [sum] = (await moved.sum({ moved: 'quantity' })) as { moved: number | string | null }[];
  const after = Number(sum?.moved ?? 0);
  if (!last) return openLevel(Number(level.opening) + after);
  return {
    quantity: Number(last.quantity) + after,
    lastCount: { time: Number(last.at), seq: Number(last.seq), line: Number(last.line) },
  };
};

interface Finding {
  level: LevelRow;
  should: LevelState;
}

const compareBatch = async (
  strapi: Core.Strapi,
  afterId: number,
  mend: boolean
): Promise<{ rows: LevelRow[]; findings: Finding[] }> =>
  inTransaction(strapi, async ({ trx }) => {
    const rows = (await table(strapi, trx, LEVELS_TABLE)
      .where('id', '>', afterId)
      .orderBy('id')
      .limit(LEVELS_AT_ONCE)
      .forUpdate()) as LevelRow[];
    const findings: Finding[] = [];
    for (const level of rows) {
      const should = await foldInDatabase(strapi, trx, level);
      const sameCount =
        Number(level.count_at ?? Number.NaN) === (should.lastCount?.time ?? Number.NaN);
      const noCount = level.count_at === null && should.lastCount === null;
      if (Number(level.quantity) === should.quantity && (sameCount || noCount)) continue;
      findings.push({ level, should });
    }
    if (!mend) return { rows, findings };
    for (const { level, should } of findings) {
      await table(strapi, trx, LEVELS_TABLE)
        .where({ id: level.id })
        .update({
          quantity: should.quantity,
          count_at: should.lastCount?.time ?? null,
          count_seq: should.lastCount?.seq ?? null,
          count_line: should.lastCount?.line ?? null,
          updated_at: Date.now(),
        });
    }
    await writeThrough(
      strapi,
      trx,
      findings.map(({ level, should }) => ({
        item: Number(level.item_id),
        location: Number(level.location_id),
        levelId: level.id,
        before: Number(level.quantity),
        after: should.quantity,
      }))
    );
    return { rows, findings };
  });

const describe = async (
  strapi: Core.Strapi,
  findings: readonly Finding[]
): Promise<RebuildDifference[]> =>
  inTransaction(strapi, async ({ trx }) => {
    const differences: RebuildDifference[] = [];
    for (const { level, should } of findings) {
      const item = (await table(strapi, trx, ITEMS_TABLE).where({ id: level.item_id }).first()) as
        ItemRow | undefined;
      const location = (await table(strapi, trx, LOCATIONS_TABLE)
        .where({ id: level.location_id })
        .first()) as LocationRow | undefined;
      differences.push({
        level_id: Number(level.id),
        sku: item?.sku ?? '',
        location: location?.code ?? '',
        quantity: Number(level.quantity),
        should_be: should.quantity,
      });
    }
    return differences;
  });

export interface RebuildService {
  /**
   * Works every level out anew from the ledger and reports where the stored one differs; there
   * should be no difference, ever. A few levels at a time, each batch in a short transaction.
   * @param mend  whether the stored levels are set right
   */
  rebuild(options?: { mend?: boolean }): Promise<RebuildReport>;
}

export const createRebuildService = ({ strapi }: { strapi: Core.Strapi }): RebuildService => ({
  async rebuild({ mend = false } = {}) {
    let levels = 0;
    let afterId = 0;
    const findings: Finding[] = [];
    for (;;) {
      const from = afterId;
      const batch = await withTransientRetry(() => compareBatch(strapi, from, mend));
      levels += batch.rows.length;
      findings.push(...batch.findings);
      const last = batch.rows.at(-1);
      if (!last || batch.rows.length < LEVELS_AT_ONCE) break;
      afterId = Number(last.id);
    }
    return { levels, differences: await describe(strapi, findings), mended: mend };
  },
});
