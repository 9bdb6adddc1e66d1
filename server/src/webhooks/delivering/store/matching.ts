import type { Core } from '@strapi/strapi';
import { currentExecutor, table } from '../../../database/connection';
import { isFromAnotherSite } from '../../../database/site-instance';
import { nextTurn } from '../../../runtime/event-loop';
import type { LogPlace } from '../../rules/log-place';
import { DELIVERIES_TABLE } from '../../tables';
import { branchesOf, type DeliveryFilter } from '../../deliveries/log-filter';
import { placeOf, readStretch } from './log-pages';
import { matcher, newest, type Search } from './log-search';

/** Read together: few enough that on SQLite the event loop is not held. */
const AT_ONCE = 1000;

const COLUMNS = ['id', 'webhook_id', 'created_at', 'site_instance'] as const;

/** What the log is asked for, up to a row. */
export interface MatchingRequest {
  filter: DeliveryFilter;
  /** null: everything that the filter leaves. */
  search: Search | null;
  /** The id of the newest row that is looked at. */
  boundary: number;
}

/** A delivery that a filter leaves. */
export interface MatchingDelivery {
  place: LogPlace;
  webhook: number;
}

interface Row {
  id: number;
  webhook_id: number;
  created_at: number | string;
  site_instance: string | null;
}

/** The id of the newest delivery; 0: there is none. */
export const newestDelivery = async (strapi: Core.Strapi): Promise<number> => {
  const rows = table(strapi, await currentExecutor(strapi), DELIVERIES_TABLE);
  const [row] = (await rows.max({ id: 'id' })) as { id: number | null }[];
  return Number(row?.id ?? 0);
};

/**
 * All deliveries that a filter leaves, part by part, in no order; where a text is searched, of the newest
 * `LOOKED_AT`. Those that belong to another site are left out: it alone may send them.
 */
export async function* matchingDeliveries(
  strapi: Core.Strapi,
  { filter, search, boundary }: MatchingRequest
): AsyncGenerator<MatchingDelivery[]> {
  const executor = await currentExecutor(strapi);
  const branches = await branchesOf(strapi, executor, filter);
  const ours = (row: Row): boolean => Number(row.id) <= boundary && !isFromAnotherSite(strapi, row);
  const toMatching = (row: Row): MatchingDelivery => ({
    place: placeOf(row),
    webhook: Number(row.webhook_id),
  });
  if (search) {
    const matches = matcher(search);
    let part: MatchingDelivery[] = [];
    for await (const row of newest(executor, branches)) {
      if (!matches(row) || !ours(row)) continue;
      part.push(toMatching(row));
      if (part.length < AT_ONCE) continue;
      yield part;
      part = [];
    }
    yield part;
    return;
  }
  for (const branch of branches) {
    for (let after: LogPlace | null = null; ;) {
      // SQLite's driver answers within the same turn of the event loop.
      await nextTurn();
      const stretch = { after, limit: AT_ONCE };
      const rows: Row[] = await readStretch(executor, [branch], COLUMNS, stretch);
      yield rows.filter(ours).map(toMatching);
      const last = rows.at(-1);
      if (!last || rows.length < AT_ONCE) break;
      after = placeOf(last);
    }
  }
}
