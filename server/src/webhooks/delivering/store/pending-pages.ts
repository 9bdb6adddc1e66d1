import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, table } from '../../../database/connection';
import { withTransientRetry } from '../../../database/retry';
import { nextTurn } from '../../../runtime/event-loop';
import { DELIVERIES_TABLE, type DeliveryRow } from '../../tables';

const COLUMNS = [
  'id',
  'status',
  'is_test',
  'error',
  'created_at',
  'line',
  'subject_type',
  'subject_id',
] as const;

export type PendingRow = Pick<DeliveryRow, (typeof COLUMNS)[number]>;

const AT_ONCE = 500;

type Part = 'failing' | 'untried';

/**
 * What follows a row in the order of the log's index, as stretches of it: those of the same time, those of
 * later ones, and those with other causes.
 */
const stretchesAfter = (
  rows: () => Knex.QueryBuilder,
  part: Part,
  last: PendingRow | undefined
): Knex.QueryBuilder[] => {
  if (part === 'untried') {
    const untried = () => rows().whereNull('error').orderBy(['created_at', 'id']);
    if (!last) return [untried()];
    const { id, created_at: at } = last;
    return [
      untried().where('created_at', at).where('id', '>', id),
      untried().where('created_at', '>', at),
    ];
  }
  const failing = () => rows().orderBy(['error', 'created_at', 'id']);
  if (!last) return [failing().whereNotNull('error')];
  const { id, created_at: at, error } = last;
  const same = () => failing().where('error', error);
  return [
    same().where('created_at', at).where('id', '>', id),
    same().where('created_at', '>', at),
    failing().where('error', '>', error),
  ];
};

/**
 * What of a webhook is not finished, tests left out, some hundreds of rows at a time: first what has failed,
 * then what was never tried, the oldest first.
 */
export async function* pendingPages(
  strapi: Core.Strapi,
  webhook: number
): AsyncGenerator<PendingRow[]> {
  const executor = await currentExecutor(strapi);
  const rows = () =>
    table(strapi, executor, DELIVERIES_TABLE)
      .select(...COLUMNS)
      .where({ webhook_id: webhook, status: 'pending', is_test: false });
  for (const part of ['failing', 'untried'] as const) {
    for (let last: PendingRow | undefined; ;) {
      const page: PendingRow[] = [];
      for (const stretch of stretchesAfter(rows, part, last)) {
        if (page.length === AT_ONCE) break;
        const found: PendingRow[] = await withTransientRetry(async () =>
          stretch.clone().limit(AT_ONCE - page.length)
        );
        page.push(...found);
      }
      yield page;
      if (page.length < AT_ONCE) break;
      last = page.at(-1);
      await nextTurn();
    }
  }
}
