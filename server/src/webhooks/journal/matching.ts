import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { createTimeSlice, nextTurn } from '../../runtime/event-loop';
import { getModules } from '../../modules';
import { moduleHolding } from '../sending/modules-off';
import { matches } from '../rules/data-filter';
import { JOURNAL_TABLE, type JournalRow, REPLAYS_TABLE } from './tables';

/** What of the journal a webhook is to be sent. Times are epoch milliseconds. */
export interface ReplayRange {
  from: number;
  /** The first moment that is not in it. */
  to: number;
  /** null: every event that the webhook asks for. */
  events: readonly string[] | null;
}

/** An event of the journal that a webhook is to be sent. */
export interface MatchingEntry {
  id: number;
  at: number;
}

/** Read together: with their data only where that is looked at. */
const AT_ONCE = 500;
const WITH_DATA_AT_ONCE = 20;

/** The id of the newest row of the journal; 0: there is none. */
export const newestEntry = async (strapi: Core.Strapi): Promise<number> => {
  const rows = table(strapi, await currentExecutor(strapi), JOURNAL_TABLE);
  const [row] = (await rows.max({ id: 'id' })) as { id: number | string | null }[];
  return Number(row?.id ?? 0);
};

/** The names that are asked for; null: all. */
const namesOf = (webhook: Webhook, events: readonly string[] | null): readonly string[] | null => {
  const asked = events === null || events.includes('*') ? null : events;
  if (webhook.events.includes('*')) return asked;
  return asked ? webhook.events.filter((event) => asked.includes(event)) : webhook.events;
};

/** Those of some rows of the journal that a webhook was sent later. */
export const replayedTo = async (
  strapi: Core.Strapi,
  executor: Executor,
  webhook: number,
  ids: readonly number[]
): Promise<Set<number>> => {
  const found = (await table(strapi, executor, REPLAYS_TABLE)
    .where({ webhook_id: webhook })
    .whereIn('journal_id', [...ids])
    .pluck('journal_id')) as number[];
  return new Set(found.map(Number));
};

/** Whether a webhook was sent an event when it was published. */
export const wasSent = ({ webhooks }: Pick<JournalRow, 'webhooks'>, webhook: number): boolean =>
  webhooks !== null && (JSON.parse(webhooks) as number[]).includes(webhook);

/** Whether the data of an event is what a webhook wants; one that cannot be judged is not. */
const isWanted = ({ filter }: Webhook, { data }: Pick<JournalRow, 'data'>): boolean => {
  if (filter === null) return true;
  try {
    return matches(filter, JSON.parse(data));
  } catch {
    return false;
  }
};

type Row = Pick<JournalRow, 'id' | 'event' | 'created_at' | 'webhooks' | 'data'>;

/** Asks whether the module of an event is off, once for each event. */
const createHeld = async (strapi: Core.Strapi): Promise<(event: string) => Promise<boolean>> => {
  const enabled = await getModules(strapi).enabled();
  const known = new Map<string, boolean>();
  return async (event) => {
    const held = known.get(event) ?? (await moduleHolding(strapi, event, enabled)) !== null;
    known.set(event, held);
    return held;
  };
};

/**
 * The events of the journal that a webhook asks for and has not had, as it is now, part by part, the
 * oldest first. Those of a module that is off are left out.
 * @param boundary the id of the newest row that is looked at
 */
export async function* matchingEntries(
  strapi: Core.Strapi,
  webhook: Webhook,
  { from, to, events }: ReplayRange,
  boundary: number
): AsyncGenerator<MatchingEntry[]> {
  const executor = await currentExecutor(strapi);
  const names = namesOf(webhook, events);
  const isHeld = await createHeld(strapi);
  const limit = webhook.filter === null ? AT_ONCE : WITH_DATA_AT_ONCE;
  const columns = ['id', 'event', 'created_at', 'webhooks', ...(webhook.filter ? ['data'] : [])];
  const slice = createTimeSlice();
  let after = { at: from, id: 0 };
  for (;;) {
    // SQLite's driver answers within the same turn of the event loop.
    await nextTurn();
    const query: Knex.QueryBuilder = table(strapi, executor, JOURNAL_TABLE)
      .select(columns)
      .where('created_at', '>=', after.at)
      .where('created_at', '<', to)
      .where('id', '<=', boundary)
      .where((next) => {
        next.where('created_at', '>', after.at).orWhere('id', '>', after.id);
      })
      .orderBy(['created_at', 'id'])
      .limit(limit);
    if (names !== null) query.whereIn('event', [...names]);
    const rows = (await query) as Row[];
    const ids = rows.map(({ id }) => Number(id));
    const replayed = await replayedTo(strapi, executor, webhook.id, ids);
    const part: MatchingEntry[] = [];
    for (const row of rows) {
      const id = Number(row.id);
      if (slice.isOver()) await slice.next();
      if (replayed.has(id) || wasSent(row, webhook.id) || (await isHeld(row.event))) continue;
      if (isWanted(webhook, row)) part.push({ id, at: Number(row.created_at) });
    }
    yield part;
    const last = rows.at(-1);
    if (!last || rows.length < limit) return;
    after = { at: Number(last.created_at), id: Number(last.id) };
  }
}
