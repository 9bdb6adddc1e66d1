import type { Core } from '@strapi/strapi';
import type {
  DeliveryState,
  FailureCause,
  FailureCauses,
} from '../../../../../shared/contracts/webhooks';
import { currentExecutor } from '../../../database/connection';
import { isoTime } from '../../../runtime/iso-time';
import { branchesOf, type DeliveryFilter } from '../../deliveries/log-filter';
import { matcher, newest, type Search } from './log-search';

const COUNTED: readonly DeliveryState[] = ['failing', 'failed'];

/**
 * Why deliveries are failing or failed: for each webhook and cause how many, the most first. Of the
 * deliveries that a filter leaves, the newest `LOOKED_AT` are counted.
 * @param search only what is looked for; null: all
 */
export const countCauses = async (
  strapi: Core.Strapi,
  { states, ...filter }: DeliveryFilter,
  search: Search | null
): Promise<FailureCauses> => {
  const executor = await currentExecutor(strapi);
  const branches = await branchesOf(strapi, executor, {
    ...filter,
    states: COUNTED.filter((state) => states?.includes(state) ?? true),
  });
  const matches = search && matcher(search);
  const found = new Map<string, FailureCause>();
  let from: string | null = null;
  for await (const row of newest(executor, branches)) {
    const at = isoTime(Number(row.created_at));
    from = at;
    if (row.error === null || matches?.(row) === false) continue;
    const key = `${row.webhook_id} ${row.error}`;
    const group = found.get(key);
    if (group) {
      group.count += 1;
      // Newest first: each is older than those before it.
      group.first_at = at;
      continue;
    }
    const webhook = Number(row.webhook_id);
    found.set(key, { cause: row.error, webhook_id: webhook, count: 1, first_at: at, last_at: at });
  }
  const data = [...found.values()].sort(
    (a, b) => b.count - a.count || b.last_at.localeCompare(a.last_at)
  );
  return { data, meta: { searched_from: from } };
};
