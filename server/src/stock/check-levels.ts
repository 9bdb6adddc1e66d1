import type { LevelCheck, RebuildDifference, RebuildReport } from '../../../shared/contracts/stock';
import { countOf, withTransientRetry } from '../database/retry';
import { ImportTracker, readJob } from '../imports/jobs';
import { giveWay, NO_ROWS } from '../imports/file-import';
import type { ImportWatch } from '../public';
import { logFailure } from '../runtime/text';
import { foldInDatabase, repairLevels } from './ledger';
import { lockMappedItems } from './products';
import type { LevelState } from './rules/fold';
import { ITEMS_TABLE, type LevelRow, LEVELS_TABLE, LOCATIONS_TABLE } from './tables';
import type { App } from '../app';

const LEVELS_AT_ONCE = 50;

interface Finding {
  level: LevelRow;
  should: LevelState;
}

const compareBatch = (app: App, afterId: number, mend: boolean) =>
  app.db.transaction(async (tx) => {
    const some = () =>
      tx.table(LEVELS_TABLE).where('id', '>', afterId).orderBy('id').limit(LEVELS_AT_ONCE);
    if (mend) {
      // Products and items before levels, as everybody locks them.
      const items = (await some().pluck('item_id')) as number[];
      await lockMappedItems(tx, app, items.map(Number));
    }
    const rows = (await some().forUpdate()) as LevelRow[];
    const findings: Finding[] = [];
    for (const level of rows) {
      const should = await foldInDatabase(tx, level);
      const countAt = level.count_at === null ? null : Number(level.count_at);
      const isSame =
        Number(level.quantity) === should.quantity && countAt === (should.lastCount?.time ?? null);
      if (!isSame) findings.push({ level, should });
    }
    if (mend) await repairLevels(tx, app, findings);
    return { rows, findings };
  });

const describe = async (app: App, findings: readonly Finding[]): Promise<RebuildDifference[]> => {
  if (findings.length === 0) return [];
  const ids = findings.map(({ level }) => level.id);
  const db = await app.db.current();
  const rows = (await db
    .table(`${LEVELS_TABLE} as l`)
    .leftJoin(`${ITEMS_TABLE} as i`, 'i.id', 'l.item_id')
    .leftJoin(`${LOCATIONS_TABLE} as p`, 'p.id', 'l.location_id')
    .select('l.id', 'i.sku', 'p.code')
    .whereIn('l.id', ids)) as { id: number; sku: string | null; code: string | null }[];
  const names = new Map(rows.map((row) => [Number(row.id), row]));
  return findings.map(({ level, should }) => ({
    level_id: Number(level.id),
    sku: names.get(Number(level.id))?.sku ?? '',
    location: names.get(Number(level.id))?.code ?? '',
    quantity: Number(level.quantity),
    should_be: should.quantity,
  }));
};

export interface RebuildOptions {
  mend?: boolean;
  /** Called after each batch, one at a time, with the number of levels and those that differ. */
  onBatch?(levels: number, differences: readonly RebuildDifference[]): Promise<void>;
}

/** Recomputes levels from the ledger and reports differences, of which there should be none; in short transactions. */
export const rebuildLevels = async (
  app: App,
  { mend = false, onBatch }: RebuildOptions = {}
): Promise<RebuildReport> => {
  let levels = 0;
  let afterId = 0;
  const differences: RebuildDifference[] = [];
  for (;;) {
    const from = afterId;
    const batch = await withTransientRetry(() => compareBatch(app, from, mend));
    levels += batch.rows.length;
    const found = await describe(app, batch.findings);
    differences.push(...found);
    await onBatch?.(batch.rows.length, found);
    const last = batch.rows.at(-1);
    if (!last || batch.rows.length < LEVELS_AT_ONCE) break;
    afterId = Number(last.id);
  }
  return { levels, differences, mended: mend };
};

/** The listed columns of a level that differs from its movements. */
const HEADINGS = ['level_id', 'sku', 'location', 'quantity', 'should_be'] as const;

const checkAll = async (app: App, mend: boolean, watch: ImportWatch): Promise<void> => {
  const counts = { ...NO_ROWS };
  await rebuildLevels(app, {
    mend,
    async onBatch(levels, differences) {
      differences.forEach((difference, index) => {
        const said = `is ${difference.quantity}, should be ${difference.should_be}`;
        const cells = HEADINGS.map((heading) => String(difference[heading]));
        watch.failed(counts.updated + index + 1, said, cells);
      });
      counts.total += levels;
      counts.updated += differences.length;
      counts.unchanged += levels - differences.length;
      await watch.advance(counts);
      await giveWay();
    },
  });
};

/** Starts to compare levels with their movements, read like an import's progress (docs/shop.md#check-stock-levels). */
export const startLevelCheck = async (
  app: App,
  { mend, madeBy }: { mend: boolean; madeBy: string | null }
): Promise<LevelCheck> => {
  const tracker = new ImportTracker(app, { kind: 'levels', dryRun: !mend, madeBy });
  await tracker.header(HEADINGS);
  const levels = await countOf((await app.db.current()).table(LEVELS_TABLE));
  const { job } = await readJob(app, await tracker.started);
  const work = async (): Promise<void> => {
    try {
      await checkAll(app, mend, tracker);
      await tracker.finish();
    } catch (error) {
      logFailure(app, `the check ${job.id} ended early`)(error);
      await tracker.fail(error);
    }
  };
  work().catch(logFailure(app, `the check ${job.id} is not written down`));
  return { ...job, levels };
};
