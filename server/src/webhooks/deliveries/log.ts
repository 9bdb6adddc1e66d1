import type { Knex } from 'knex';
import type {
  Attempt,
  CursorPage,
  Delivery,
  DeliveryState,
  FailureCause,
  FailureCauses,
  Page,
  Subject,
} from '../../../../shared/contracts/webhooks';
import { COUNT_LIMIT, offsetOf, type PageRequest, paginationMeta } from '../../http/pagination';
import { nextTurn } from '../../runtime/event-loop';
import { isoTime, isoTimeOrNull } from '../../runtime/text';
import type { FoundRow } from '../../queue/queue';
import { stateOf } from '../rules/delivery-state';
import { DELIVERIES_TABLE, type DeliveryRow } from '../tables';
import { readAttempts, removeAttempts } from './attempts';
import {
  type Branch,
  branchesOf,
  type DeliveryFilter,
  formatCursor,
  isAfter,
  type LogCursor,
  type LogPlace,
  type Search,
  type SearchedLog,
} from './log-filter';
import { readBodies, releaseMessages } from './messages';
import { getDeliveryStore } from './store';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** Which rows of the log are read: those after a place, at most so many, without the first ones. */
interface Stretch {
  after?: LogPlace | null;
  limit: number;
  offset?: number;
}

const union = (db: Db, parts: readonly Knex.QueryBuilder[]): Knex.QueryBuilder | undefined => {
  const [first, ...others] = parts.map((part) => db.from(part).select('*'));
  return first && (others.length > 0 ? first.unionAll(others) : first);
};

/**
 * The rows after a place as two parts, each one stretch of an index on every database: those of the
 * same time, and those of earlier ones.
 */
const after = (rows: () => Knex.QueryBuilder, place: LogPlace | null): Knex.QueryBuilder[] =>
  place
    ? [
        rows().where('created_at', place.at).where('id', '<', place.id),
        rows().where('created_at', '<', place.at),
      ]
    : [rows()];

const NEWEST_FIRST = [
  { column: 'created_at', order: 'desc' },
  { column: 'id', order: 'desc' },
];

const placeOf = ({ id, created_at: at }: Pick<DeliveryRow, 'id' | 'created_at'>): LogPlace => ({
  id: Number(id),
  at: Number(at),
});

/** The places of a stretch of the log, newest first. */
const readPlaces = async (
  db: Db,
  branches: readonly Branch[],
  { after: place = null, limit, offset = 0 }: Stretch
): Promise<LogPlace[]> => {
  const parts = branches.flatMap(({ orderedBy, rows }) =>
    after(rows, place).map((part) =>
      part
        .select('id', 'created_at')
        .orderBy([...orderedBy, 'created_at', 'id'].map((column) => ({ column, order: 'desc' })))
        .limit(offset + limit)
    )
  );
  const all = union(db, parts);
  if (!all) return [];
  const page = db.from(all).select('id', 'created_at').orderBy(NEWEST_FIRST).limit(limit);
  if (offset > 0) page.offset(offset);
  return ((await page) as Pick<DeliveryRow, 'id' | 'created_at'>[]).map(placeOf);
};

/** The rows at some places, in their order; without `columns`, whole. */
const rowsAt = async <Row extends { id: number } = DeliveryRow>(
  db: Db,
  places: readonly LogPlace[],
  columns: readonly string[] = ['*']
): Promise<Row[]> => {
  const ids = places.map(({ id }) => id);
  const found = (await rows(db)
    .select(...columns)
    .whereIn('id', ids)) as Row[];
  const byId = new Map(found.map((row) => [Number(row.id), row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
};

/** How many rows there are, counted up to `COUNT_LIMIT + 1`. */
const countPlaces = async (db: Db, branches: readonly Branch[]): Promise<number> => {
  const most = COUNT_LIMIT + 1;
  const all = union(
    db,
    branches.map(({ rows }) => rows().select('id').limit(most))
  );
  if (!all) return 0;
  const limited = db.from(all).select('id').limit(most);
  const [row] = (await db.from(limited).count({ n: '*' })) as { n: number | string }[];
  return Number(row?.n ?? 0);
};

/** Deliveries that are looked at at most, newest first, where no index finds what is looked for. */
const LOOKED_AT = 50_000;
/** Read together: few enough that on SQLite the event loop is not held. */
const AT_ONCE = 1_000;

const LOOKED_AT_COLUMNS = [
  'id',
  'document_id',
  'webhook_id',
  'error',
  'subject_type',
  'subject_label',
  'created_at',
  'site_instance',
] as const;

/** The searched columns of a delivery. */
type LookedAt = Pick<DeliveryRow, (typeof LOOKED_AT_COLUMNS)[number]>;

/** The rows of one branch after a place, newest first, part by part. */
async function* partsOf<Row extends { id: number }>(
  db: Db,
  branch: Branch,
  columns: readonly string[],
  after: LogPlace | null = null
): AsyncGenerator<Row[]> {
  for (let last = after; ;) {
    // SQLite's driver answers within the same turn of the event loop.
    await nextTurn();
    const places: LogPlace[] = await readPlaces(db, [branch], { after: last, limit: AT_ONCE });
    // By the places: a row may be gone by now.
    yield await rowsAt<Row>(db, places, columns);
    last = places.at(-1) ?? null;
    if (!last || places.length < AT_ONCE) return;
  }
}

/**
 * The newest `LOOKED_AT` of the rows that the branches have, newest first.
 * @param after begins after this place; null: with the newest
 */
async function* newest(
  db: Db,
  branches: readonly Branch[],
  after: LogPlace | null = null
): AsyncGenerator<LookedAt> {
  const readers = branches.map((branch) => ({
    parts: partsOf<LookedAt>(db, branch, LOOKED_AT_COLUMNS, after),
    rows: [] as LookedAt[],
    next: 0,
    isRead: false,
  }));
  for (let looked = 0; looked < LOOKED_AT; looked += 1) {
    let first: (typeof readers)[number] | undefined;
    let head: LookedAt | undefined;
    for (const reader of readers) {
      while (reader.next >= reader.rows.length && !reader.isRead) {
        const { value, done = false } = await reader.parts.next();
        Object.assign(reader, { rows: value ?? [], next: 0, isRead: done });
      }
      const row = reader.rows[reader.next];
      if (!row || (head && isAfter(placeOf(row), placeOf(head)))) continue;
      [first, head] = [reader, row];
    }
    if (!first || !head) return;
    first.next += 1;
    yield head;
  }
}

/** Tests if a delivery matches a search; texts in any case. */
const matcher = ({ text, subjectType }: Search): ((row: LookedAt) => boolean) => {
  const wanted = text?.toLowerCase() ?? '';
  const has = (value: string | null): boolean => value?.toLowerCase().includes(wanted) ?? false;
  return ({ document_id: id, error, subject_type: type, subject_label: label }) =>
    (subjectType === undefined || type === subjectType) && [id, label, error].some(has);
};

interface Found {
  places: LogPlace[];
  /** null: there was nothing to look at. */
  searched: SearchedLog | null;
}

/** Looks through the newest `LOOKED_AT`. @returns every match, however many there are. */
const findAll = async (db: Db, branches: readonly Branch[], search: Search): Promise<Found> => {
  const matches = matcher(search);
  const places: LogPlace[] = [];
  let end: LogPlace | null = null;
  for await (const row of newest(db, branches)) {
    end = placeOf(row);
    if (matches(row)) places.push(end);
  }
  const total = Math.min(places.length, COUNT_LIMIT);
  const totalCapped = places.length > COUNT_LIMIT;
  return { places, searched: end && { end, total, totalCapped } };
};

/**
 * Goes on with a search after a place, to where it ended.
 * @param limit of the matches that are wanted
 */
const findMore = async (
  db: Db,
  branches: readonly Branch[],
  { search, after, end, limit }: { search: Search; after: LogPlace; end: LogPlace; limit: number }
): Promise<LogPlace[]> => {
  const matches = matcher(search);
  const places: LogPlace[] = [];
  for await (const row of newest(db, branches, after)) {
    const place = placeOf(row);
    if (isAfter(place, end)) break;
    if (matches(row)) places.push(place);
    if (places.length >= limit) break;
  }
  return places;
};

/** The log of deliveries: its queries, and how it forgets. The queue's half is `store.ts`. */

/** Facts about a delivery before it is sent again. */
interface LoggedDelivery {
  event: string;
  /** It belongs to another site, which alone may send it. */
  foreign: boolean;
}

const rows = (db: Db) => db.table(DELIVERIES_TABLE);

const subjectOf = (row: DeliveryRow): Subject | null => {
  const { subject_type: type, subject_id: id, subject_label: label } = row;
  return type === null || id === null ? null : { type, id, label: label ?? id };
};

/**
 * @param body null if its message is gone
 * @param attempts oldest first
 */
const toDelivery = (row: DeliveryRow, body: string | null, attempts: Attempt[]): Delivery => {
  const last = attempts.at(-1);
  const tries = Number(row.tries);
  return {
    id: Number(row.id),
    delivery_id: row.document_id,
    webhook_id: Number(row.webhook_id),
    event: row.event,
    subject: subjectOf(row),
    status: row.status,
    state: stateOf({ status: row.status, tries, isTest: Boolean(row.is_test) }),
    replayed: Boolean(row.replayed),
    tries,
    first_attempt_at: attempts[0]?.at ?? null,
    next_attempt_at: isoTimeOrNull(row.next_attempt_at),
    created_at: isoTime(Number(row.created_at)),
    finished_at: isoTimeOrNull(row.finished_at),
    request: {
      url: last?.request.url ?? row.url,
      headers: last?.request.headers ?? {},
      body: body ?? '',
    },
    answer: last?.answer ?? null,
    error: row.error,
    duration_ms: last?.duration_ms ?? null,
    attempts,
  };
};

const withAttempts = async (
  db: Db,
  app: App,
  found: readonly DeliveryRow[]
): Promise<Delivery[]> => {
  const ids = found.map(({ id }) => Number(id));
  const attempts = await readAttempts(db, ids);
  const bodies = await readBodies(db, app, found);
  return found.map((row, at) =>
    toDelivery(row, bodies[at] ?? null, attempts.get(Number(row.id)) ?? [])
  );
};

/** The deliveries at some places of the log, in that order. */
export const deliveriesAt = async (
  db: Db,
  app: App,
  places: readonly LogPlace[]
): Promise<Delivery[]> => withAttempts(db, app, await rowsAt(db, places));

const searchedFrom = (searched: SearchedLog | null): { searched_from: string | null } => ({
  searched_from: searched && isoTime(searched.end.at),
});

/**
 * A page of the log, newest first, by its number.
 * @param search what is looked for in the newest deliveries; null: nothing is
 */
export const listDeliveries = async (
  app: App,
  filter: DeliveryFilter,
  search: Search | null,
  page: PageRequest
): Promise<Page<Delivery>> => {
  const db = await app.db.current();
  const branches = await branchesOf(db, app, filter);
  const offset = offsetOf(page);
  if (search) {
    const { places, searched } = await findAll(db, branches, search);
    const data = await deliveriesAt(db, app, places.slice(offset, offset + page.per_page));
    return { data, meta: { ...paginationMeta(page, places.length), ...searchedFrom(searched) } };
  }
  const counted = await countPlaces(db, branches);
  const places = await readPlaces(db, branches, { limit: page.per_page, offset });
  return {
    data: await deliveriesAt(db, app, places),
    meta: paginationMeta(page, counted),
  };
};

/** The beginning of a page of the log, and its most deliveries. */
interface LogPageRequest {
  cursor: LogCursor | null;
  limit: number;
}

/** One place more than the page has, where another page follows; and of a search, what it found in all. */
const placesOfPage = async (
  db: Db,
  branches: readonly Branch[],
  search: Search | null,
  { cursor, limit }: LogPageRequest
): Promise<Found> => {
  const after = cursor?.after ?? null;
  if (!search) {
    return { places: await readPlaces(db, branches, { after, limit: limit + 1 }), searched: null };
  }
  if (!cursor?.searched) return findAll(db, branches, search);
  const { end } = cursor.searched;
  const range = { search, after: cursor.after, end, limit: limit + 1 };
  return { places: await findMore(db, branches, range), searched: cursor.searched };
};

/**
 * A page of the log, newest first, by a cursor: deliveries that are made meanwhile neither move nor
 * repeat what is read.
 * @param search what is looked for in the newest deliveries; null: nothing is. A cursor of another search does not
 * go with it.
 */
export const readDeliveries = async (
  app: App,
  filter: DeliveryFilter,
  search: Search | null,
  request: LogPageRequest
): Promise<CursorPage<Delivery>> => {
  const db = await app.db.current();
  const branches = await branchesOf(db, app, filter);
  const counted = search ? null : await countPlaces(db, branches);
  const { places, searched } = await placesOfPage(db, branches, search, request);
  const shown = places.slice(0, request.limit);
  const last = places.length > shown.length ? shown.at(-1) : undefined;
  return {
    data: await deliveriesAt(db, app, shown),
    meta: {
      next_cursor: last ? formatCursor({ after: last, searched }) : null,
      total: counted === null ? (searched?.total ?? 0) : Math.min(counted, COUNT_LIMIT),
      total_capped: counted === null ? (searched?.totalCapped ?? false) : counted > COUNT_LIMIT,
      ...(search && searchedFrom(searched)),
    },
  };
};

/** One delivery by the id of its row, or by the id that the receiver knows. */
export const showDelivery = async (app: App, id: number | string): Promise<Delivery | null> => {
  const db = await app.db.current();
  const row = (await rows(db)
    .where(typeof id === 'number' ? { id } : { document_id: id })
    .first()) as DeliveryRow | undefined;
  return row ? ((await withAttempts(db, app, [row]))[0] ?? null) : null;
};

/**
 * The bodies of a webhook's latest deliveries, the newest first; tests and those whose message is gone
 * are left out.
 */
export const latestBodies = async (
  app: App,
  { webhook, event }: Pick<DeliveryFilter, 'webhook' | 'event'>,
  limit: number
): Promise<{ deliveryId: string; event: string; body: string }[]> => {
  const db = await app.db.current();
  const found = (await rows(db)
    .select('document_id', 'event', 'body', 'message_id')
    .where({ webhook_id: webhook, is_test: false, ...(event && { event }) })
    .orderBy(NEWEST_FIRST)
    .limit(limit)) as Pick<DeliveryRow, 'document_id' | 'event' | 'body' | 'message_id'>[];
  const bodies = await readBodies(db, app, found);
  return found.flatMap((row, at) => {
    const body = bodies[at];
    return typeof body === 'string'
      ? [{ deliveryId: row.document_id, event: row.event, body }]
      : [];
  });
};

export const findDelivery = async (app: App, id: number): Promise<LoggedDelivery | null> => {
  const row = (await rows(await app.db.current())
    .select('event', 'site_instance')
    .where({ id })
    .first()) as Pick<DeliveryRow, 'event' | 'site_instance'> | undefined;
  return row ? { event: row.event, foreign: app.site.isForeign(row) } : null;
};

/**
 * Removes deliveries, then their attempts and messages: an attempt that is being recorded holds its delivery, so
 * it is there by the time the attempts go.
 * @param isKept whether one stays that is in the queue
 * @returns how many deliveries went.
 */
const remove = (
  app: App,
  ids: readonly number[],
  isKept: (place: FoundRow) => boolean
): Promise<number> =>
  app.db.retrying(async (tx) => {
    const store = getDeliveryStore(app);
    const places = await store.queue.lock(tx, ids);
    const free = ids.filter((id) => {
      const place = places.get(Number(id));
      return !place || !isKept(place);
    });
    // Locked before they go: another node that removes the same ones finds them gone.
    const going = (await rows(tx)
      .whereIn('id', free)
      .select('id', 'message_id')
      .orderBy('id')
      .forUpdate()) as Pick<DeliveryRow, 'id' | 'message_id'>[];
    if (going.length === 0) return 0;
    const gone = going.map(({ id }) => Number(id));
    await rows(tx).whereIn('id', gone).delete();
    await store.remove(tx, gone);
    await removeAttempts(tx, gone);
    const shared = going.flatMap(({ message_id: id }) => (id === null ? [] : [Number(id)]));
    if (shared.length > 0) await releaseMessages(tx, shared);
    return gone.length;
  });

/** Removes up to `limit` deliveries of a deleted webhook, pending ones too. @returns how many there were. */
export const removeDeliveriesOf = async (
  app: App,
  webhook: number,
  limit: number
): Promise<number> => {
  const ids = (await rows(await app.db.current())
    .where({ webhook_id: webhook })
    .orderBy(['created_at', 'id'])
    .limit(limit)
    .pluck('id')) as number[];
  if (ids.length > 0) await remove(app, ids, () => false);
  return ids.length;
};

/**
 * Up to `limit` that ended before a time (epoch milliseconds), and that nobody is sending again now, by
 * the time at which they were made.
 * @param after goes on behind this place; null: from the oldest
 * @returns how many went, and the last place that was looked at; null: that was all
 */
export const removeFinishedDeliveries = async (
  app: App,
  before: number,
  limit: number,
  after: LogPlace | null
): Promise<{ removed: number; last: LogPlace | null }> => {
  const db = await app.db.current();
  const found = (await rows(db)
    .select('id', 'created_at')
    .where('created_at', '>=', after?.at ?? 0)
    .andWhere('created_at', '<', before)
    .andWhere((later) => {
      if (after) later.where('created_at', '>', after.at).orWhere('id', '>', after.id);
    })
    .andWhere('finished_at', '<', before)
    .orderBy(['created_at', 'id'])
    .limit(limit)) as Pick<DeliveryRow, 'id' | 'created_at'>[];
  if (found.length === 0) return { removed: 0, last: null };
  const ids = found.map(({ id }) => Number(id));
  const isUnderWay = ({ state, isHeld }: FoundRow): boolean => isHeld || state !== 'ended';
  const last = found.length < limit ? undefined : found.at(-1);
  return { removed: await remove(app, ids, isUnderWay), last: last ? placeOf(last) : null };
};

const COUNTED: readonly DeliveryState[] = ['failing', 'failed'];

/**
 * Why deliveries are failing or failed: for each webhook and cause how many, the most first. Only the
 * newest `LOOKED_AT` deliveries that the filter leaves are counted.
 * @param search only what is looked for; null: all
 */
export const countCauses = async (
  app: App,
  { states, ...filter }: DeliveryFilter,
  search: Search | null
): Promise<FailureCauses> => {
  const db = await app.db.current();
  const branches = await branchesOf(db, app, {
    ...filter,
    states: COUNTED.filter((state) => states?.includes(state) ?? true),
  });
  const matches = search && matcher(search);
  const found = new Map<string, FailureCause>();
  let from: string | null = null;
  for await (const row of newest(db, branches)) {
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

const MATCHING_COLUMNS = ['id', 'webhook_id', 'created_at', 'site_instance'] as const;
type MatchingRow = Pick<DeliveryRow, (typeof MATCHING_COLUMNS)[number]>;

/** A query of the log, up to a row. */
export interface MatchingRequest {
  filter: DeliveryFilter;
  /** null: everything that the filter leaves. */
  search: Search | null;
  /** The id of the newest row that is looked at. */
  boundary: number;
}

/** A delivery that a filter leaves. */
interface MatchingDelivery {
  place: LogPlace;
  webhook: number;
}

/** The id of the newest delivery; 0: there is none. */
export const newestDelivery = async (app: App): Promise<number> => {
  const rows = (await app.db.current()).table(DELIVERIES_TABLE);
  const [row] = (await rows.max({ id: 'id' })) as { id: number | null }[];
  return Number(row?.id ?? 0);
};

/**
 * All deliveries that a filter leaves, part by part, in no order; where a text is searched, of the newest
 * `LOOKED_AT`. Deliveries of another site are left out: only that site may send them.
 */
export async function* matchingDeliveries(
  app: App,
  { filter, search, boundary }: MatchingRequest
): AsyncGenerator<MatchingDelivery[]> {
  const db = await app.db.current();
  const branches = await branchesOf(db, app, filter);
  const ours = (row: MatchingRow): boolean =>
    Number(row.id) <= boundary && !app.site.isForeign(row);
  const toMatching = (row: MatchingRow): MatchingDelivery => ({
    place: placeOf(row),
    webhook: Number(row.webhook_id),
  });
  if (search) {
    const matches = matcher(search);
    let part: MatchingDelivery[] = [];
    for await (const row of newest(db, branches)) {
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
    for await (const part of partsOf<MatchingRow>(db, branch, MATCHING_COLUMNS)) {
      yield part.filter(ours).map(toMatching);
    }
  }
}
