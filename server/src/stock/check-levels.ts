import type { Core } from '@strapi/strapi';
import type { LevelCheck, RebuildDifference } from '../../../shared/contracts/stock';
import { currentExecutor, table } from '../database/connection';
import { giveWay } from '../imports/rows';
import { readJob, trackImport } from '../imports/jobs';
import type { ImportWatch } from '../imports/watch';
import { errorText } from '../runtime/text';
import type { RebuildService } from './rebuild';
import { LEVELS_TABLE } from './tables';

/** What is listed of a level that differs from its movements. */
const HEADINGS = ['level_id', 'sku', 'location', 'quantity', 'should_be'] as const;

const cellsOf = (difference: RebuildDifference): string[] =>
  HEADINGS.map((heading) => String(difference[heading]));

const saidOf = ({ quantity, should_be: right }: RebuildDifference): string =>
  `is ${quantity}, should be ${right}`;

const checkAll = async (strapi: Core.Strapi, mend: boolean, watch: ImportWatch): Promise<void> => {
  const service = strapi.service('plugin::switchboard.stock-rebuild') as unknown as RebuildService;
  const counts = { total: 0, created: 0, updated: 0, unchanged: 0, failed: 0 };
  await service.rebuild({
    mend,
    async onBatch(levels, differences) {
      differences.forEach((difference, index) => {
        watch.failed(counts.updated + index + 1, saidOf(difference), cellsOf(difference));
      });
      counts.total += levels;
      counts.updated += differences.length;
      counts.unchanged += levels - differences.length;
      await watch.advance(counts);
      await giveWay();
    },
  });
};

interface NewLevelCheck {
  /** Whether what differs is set right; otherwise nothing is changed. */
  mend: boolean;
  madeBy: string | null;
}

/**
 * Begins to compare every level with the sum of its movements, and resolves while that goes on; how
 * it gets on and what it lists is read as of an import (docs/tills.md#checking-all-levels).
 */
export const startLevelCheck = async (
  strapi: Core.Strapi,
  { mend, madeBy }: NewLevelCheck
): Promise<LevelCheck> => {
  const tracker = trackImport(strapi, { kind: 'levels', dryRun: !mend, madeBy });
  await tracker.header(HEADINGS);
  const [counted] = (await table(strapi, await currentExecutor(strapi), LEVELS_TABLE).count({
    levels: '*',
  })) as { levels: number | string }[];
  const job = await readJob(strapi, await tracker.started);
  const work = async (): Promise<void> => {
    try {
      await checkAll(strapi, mend, tracker);
      await tracker.finish();
    } catch (error) {
      strapi.log.error(`switchboard: the check ${job.id} ended early: ${errorText(error)}`);
      await tracker.fail(error);
    }
  };
  work().catch((error: unknown) => {
    strapi.log.error(`switchboard: the check ${job.id} is not written down: ${errorText(error)}`);
  });
  return { ...job, levels: Number(counted?.levels ?? 0) };
};
