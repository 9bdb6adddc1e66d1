import type { Knex } from 'knex';
import type {
  Attempt,
  CursorPage,
  Delivery,
  DeliveryState,
  DeliverySummary,
  FailureCause,
  FailureCauses,
  FilterSample,
  Page,
  Subject,
} from '../../../../shared/contracts/webhooks';
import {
  COUNT_LIMIT,
  countUpToLimit,
  offsetOf,
  type PageRequest,
  paginationMeta,
} from '../../http/pagination';
import { findInChunks } from '../../database/written-rows';
import { firstOrNotFound } from '../../database/retry';
import { nextTurn } from '../../runtime/event-loop';
import { isoTime, isoTimeOrNull } from '../../runtime/text';
import type { FoundRow } from '../../queue/queue';
import { stateOf } from '../rules/delivery-state';
import {
  ATTEMPTS_TABLE,
  type AttemptRow,
  DELIVERIES_TABLE,
  type DeliveryRow,
  MESSAGES_TABLE,
  type WebhookRow,
  WEBHOOKS_TABLE,
} from '../tables';
import { ATTEMPTS_KEPT, FIRST_KEPT } from './attempts';
import {
  type Branch,
  branchesOf,
  cursorOf,
  type DeliveryFilter,
  formatCursor,
  isAfter,
  type LogCursor,
  type LogPlace,
  type LogSelection,
  type Search,
  type SearchedLog,
} from './log-filter';
import { readBodies } from './messages';
import { getDeliveryStore } from './store';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** The log of deliveries: its queries, and how it forgets. The queue's half is `store.ts`. */

const rows = (db: Db) => db.table(DELIVERIES_TABLE);

const union = (db: Db, parts: readonly Knex.QueryBuilder[]): Knex.QueryBuilder | undefined => {
  const [first, ...others] = parts.map((part) => db.from(part).select('*'));
  return first && (others.length > 0 ? first.unionAll(others) : first);
};

/** The rows after a place, as two stretches of an index on every database: of its time, and of earlier ones. */
const rowsAfter = (rows: () => Knex.QueryBuilder, place: LogPlace | null): Knex.QueryBuilder[] =>
  place
    ? [
        rows().where('created_at', place.at).where('id', '<', place.id),
        rows().where('created_at', '<', place.at),
      ]
    : [rows()];

const newestFirst = (before: readonly string[] = []) =>
  [...before, 'created_at', 'id'].map((column) => ({ column, order: 'desc' }));

const placeOf = ({ id, created_at: at }: Pick<DeliveryRow, 'id' | 'created_at'>): LogPlace => ({
  id: Number(id),
  at: Number(at),
});

/** The places of a section of the log, newest first: after a place, up to a limit, without the first ones. */
const readPlaces = async (
  db: Db,
  branches: readonly Branch[],
  { after = null, limit, offset = 0 }: { after?: LogPlace | null; limit: number; offset?: number }
): Promise<LogPlace[]> => {
  const parts = branches.flatMap(({ orderedBy, rows }) =>
    rowsAfter(rows, after).map((part) =>
      part
        .select('id', 'created_at')
        .orderBy(newestFirst(orderedBy))
        .limit(offset + limit)
    )
  );
  const all = union(db, parts);
  if (!all) return [];
  const page = db.from(all).select('id', 'created_at').orderBy(newestFirst()).limit(limit);
  if (offset > 0) page.offset(offset);
  return ((await page) as Pick<DeliveryRow, 'id' | 'created_at'>[]).map(placeOf);
};

/** Deliveries at some places of the log, in their order. */
export type ShowPlaces<Shown> = (db: Db, app: App, places: readonly LogPlace[]) => Promise<Shown[]>;

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
  const parts = branches.map(({ rows }) =>
    rows()
      .select('id')
      .limit(COUNT_LIMIT + 1)
  );
  const all = union(db, parts);
  return all ? countUpToLimit(db, db.from(all)) : 0;
};

/** Maximum of deliveries to look at, newest first, if no index serves the search. */
const LOOKED_AT = 50_000;
/** Read together: few enough that on SQLite the event loop is not held. */
const AT_ONCE = 1_000;

const LOOKED_AT_COLUMNS = [
  ...(['id', 'document_id', 'webhook_id', 'error', 'created_at'] as const),
  ...(['subject_type', 'subject_label', 'site_instance'] as const),
];

type LookedAt = Pick<DeliveryRow, (typeof LOOKED_AT_COLUMNS)[number]>;

/** The rows of one branch after a place, newest first, part by part. */
async function* partsOf(db: Db, branch: Branch, after: LogPlace | null = null) {
  for (let last = after; ;) {
    // SQLite's driver answers within the same turn of the event loop.
    await nextTurn();
    const places: LogPlace[] = await readPlaces(db, [branch], { after: last, limit: AT_ONCE });
    // By the places: a row may be gone by now.
    yield await rowsAt<LookedAt>(db, places, LOOKED_AT_COLUMNS);
    last = places.at(-1) ?? null;
    if (!last || places.length < AT_ONCE) return;
  }
}

/** The newest `LOOKED_AT` of the branches' rows, newest first; `after`: only rows after this place. */
async function* newest(db: Db, branches: readonly Branch[], after: LogPlace | null = null) {
  const readers = branches.map((branch) => ({
    parts: partsOf(db, branch, after),
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

/** Searches the newest `LOOKED_AT`, or from a page to the first match after the next page; null: nothing to search. */
const find = async (
  db: Db,
  branches: readonly Branch[],
  search: Search,
  { cursor, limit }: { cursor: LogCursor | null; limit: number } = { cursor: null, limit: 0 }
): Promise<{ places: LogPlace[]; searched: SearchedLog | null }> => {
  const matches = matcher(search);
  const known = cursor?.searched ?? null;
  const places: LogPlace[] = [];
  let end: LogPlace | null = null;
  for await (const row of newest(db, branches, cursor?.after)) {
    const place = placeOf(row);
    if (known && isAfter(place, known.end)) break;
    end = place;
    if (matches(row)) places.push(place);
    if (known && places.length > limit) break;
  }
  if (known) return { places, searched: known };
  const total = Math.min(places.length, COUNT_LIMIT);
  const totalCapped = places.length > COUNT_LIMIT;
  return { places, searched: end && { end, total, totalCapped } };
};

/** The record that the event of a delivery, or of the journal, is about. */
export const subjectOf = ({
  subject_type: type,
  subject_id: id,
  subject_label: label,
}: Pick<DeliveryRow, 'subject_type' | 'subject_id' | 'subject_label'>): Subject | null =>
  type === null || id === null ? null : { type, id, label: label ?? id };

const toAttempt = (row: AttemptRow): Attempt => ({
  at: isoTime(Number(row.at)),
  request: {
    url: row.url,
    headers: JSON.parse(row.request_headers) as Record<string, string>,
  },
  answer:
    row.status === null
      ? null
      : {
          status: Number(row.status),
          headers: JSON.parse(row.answer_headers ?? '{}') as Record<string, string>,
          body: row.answer_body ?? '',
          truncated: Boolean(row.truncated),
        },
  error: row.error,
  duration_ms: Number(row.duration_ms),
  manual: Boolean(row.manual),
});

/** The attempts of some deliveries that the log keeps, oldest first, by the ids of the deliveries' rows. */
const readAttempts = async (db: Db, deliveries: readonly number[]) => {
  const found = new Map<number, Attempt[]>(deliveries.map((id) => [id, []]));
  if (deliveries.length === 0) return found;
  const kept = (await db
    .table(ATTEMPTS_TABLE)
    .whereIn('delivery_id', [...deliveries])
    .orderBy('id')) as AttemptRow[];
  for (const row of kept) found.get(Number(row.delivery_id))?.push(toAttempt(row));
  // Another writer left more: `appendAttempts` leaves no more of them.
  for (const own of found.values()) {
    if (own.length > ATTEMPTS_KEPT) own.splice(FIRST_KEPT, own.length - ATTEMPTS_KEPT);
  }
  return found;
};

type Owner = Pick<WebhookRow, 'id' | 'name' | 'active'>;

/** The webhooks of deliveries by their ids; those that are gone are left out. */
const readOwners = async (db: Db, of: readonly Pick<DeliveryRow, 'webhook_id'>[]) => {
  const ids = of.map((row) => Number(row.webhook_id));
  const owners = await findInChunks<Owner>(ids, (some) =>
    db.table(WEBHOOKS_TABLE).select('id', 'name', 'active').whereIn('id', some)
  );
  return new Map(owners.map((owner) => [Number(owner.id), owner]));
};

type SummaryRow = Pick<DeliveryRow, (typeof SUMMARY_COLUMNS)[number]>;

const SUMMARY_COLUMNS = [
  ...(['id', 'webhook_id', 'event', 'status', 'tries', 'is_test', 'error'] as const),
  ...(['next_attempt_at', 'created_at', 'subject_type', 'subject_id', 'subject_label'] as const),
];

const summaryOf = (row: SummaryRow, owner: Owner | undefined) => {
  const tries = Number(row.tries);
  return {
    id: Number(row.id),
    webhook_id: Number(row.webhook_id),
    webhook_name: owner?.name ?? null,
    event: row.event,
    subject: subjectOf(row),
    state: stateOf({ status: row.status, tries, isTest: Boolean(row.is_test) }),
    tries,
    next_attempt_at: isoTimeOrNull(row.next_attempt_at),
    created_at: isoTime(Number(row.created_at)),
    error: row.error,
  };
};

/** Table rows of the deliveries at some places. */
export const summariesAt: ShowPlaces<DeliverySummary> = async (db, _app, places) => {
  const found = await rowsAt<SummaryRow>(db, places, SUMMARY_COLUMNS);
  const owners = await readOwners(db, found);
  const ids = found.map(({ id }) => Number(id));
  const attempts = (await db
    .table(ATTEMPTS_TABLE)
    .select('delivery_id', 'status')
    .whereIn('delivery_id', ids)
    .orderBy('id')) as Pick<AttemptRow, 'delivery_id' | 'status'>[];
  const last = new Map(attempts.map((one) => [Number(one.delivery_id), one.status]));
  return found.map((row) => {
    const owner = owners.get(Number(row.webhook_id));
    const code = last.get(Number(row.id)) ?? null;
    return {
      ...summaryOf(row, owner),
      webhook_active: Boolean(owner?.active),
      response_code: code === null ? null : Number(code),
    };
  });
};

/** Deliveries as the management routes show them; the body is empty if its message is gone. */
const withAttempts = async (db: Db, app: App, found: readonly DeliveryRow[]) => {
  const ids = found.map(({ id }) => Number(id));
  const byDelivery = await readAttempts(db, ids);
  const bodies = await readBodies(db, app, found);
  const owners = await readOwners(db, found);
  return found.map((row, at) => {
    const attempts = byDelivery.get(Number(row.id)) ?? [];
    const last = attempts.at(-1);
    return {
      ...summaryOf(row, owners.get(Number(row.webhook_id))),
      delivery_id: row.document_id,
      status: row.status,
      replayed: Boolean(row.replayed),
      first_attempt_at: attempts[0]?.at ?? null,
      finished_at: isoTimeOrNull(row.finished_at),
      request: {
        url: last?.request.url ?? row.url,
        headers: last?.request.headers ?? {},
        body: bodies[at] ?? '',
      },
      answer: last?.answer ?? null,
      duration_ms: last?.duration_ms ?? null,
      attempts,
    };
  });
};

export const deliveriesAt: ShowPlaces<Delivery> = async (db, app, places) =>
  withAttempts(db, app, await rowsAt(db, places));

const searchedFrom = (searched: SearchedLog | null): { searched_from: string | null } => ({
  searched_from: searched && isoTime(searched.end.at),
});

/** A page of the log, newest first, by its number. */
export const listDeliveries = async (
  app: App,
  { filter, search }: LogSelection,
  page: PageRequest
): Promise<Page<Delivery>> => {
  const db = await app.db.current();
  const branches = await branchesOf(db, app, filter);
  const offset = offsetOf(page);
  if (search) {
    const { places, searched } = await find(db, branches, search);
    const data = await deliveriesAt(db, app, places.slice(offset, offset + page.per_page));
    return { data, meta: { ...paginationMeta(page, places.length), ...searchedFrom(searched) } };
  }
  const meta = paginationMeta(page, await countPlaces(db, branches));
  const places = await readPlaces(db, branches, { limit: page.per_page, offset });
  return { data: await deliveriesAt(db, app, places), meta };
};

/**
 * A page of the log, newest first, by a cursor: new deliveries do not shift it.
 * @throws ValidationError (400) that names `cursor` if it is one of another search
 */
export const readDeliveries = async <Shown>(
  app: App,
  { filter, search }: LogSelection,
  { cursor: text, limit }: { cursor?: string | undefined; limit: number },
  show: ShowPlaces<Shown>
): Promise<CursorPage<Shown>> => {
  const cursor = cursorOf(text, search);
  const db = await app.db.current();
  const branches = await branchesOf(db, app, filter);
  const counted = search ? null : await countPlaces(db, branches);
  // One place more than the page has, if another page follows.
  const { places, searched } = search
    ? await find(db, branches, search, { cursor, limit })
    : {
        places: await readPlaces(db, branches, { after: cursor?.after, limit: limit + 1 }),
        searched: null,
      };
  const shown = places.slice(0, limit);
  const last = places.length > shown.length ? shown.at(-1) : undefined;
  return {
    data: await show(db, app, shown),
    meta: {
      next_cursor: last ? formatCursor({ after: last, searched }) : null,
      total: counted === null ? (searched?.total ?? 0) : Math.min(counted, COUNT_LIMIT),
      total_capped: counted === null ? (searched?.totalCapped ?? false) : counted > COUNT_LIMIT,
      ...(search && searchedFrom(searched)),
    },
  };
};

/** One delivery by row id or by the receiver's id; throws NotFoundError (404), as `findDelivery` does. */
export const showDelivery = async (app: App, id: number | string): Promise<Delivery> => {
  const db = await app.db.current();
  const query = rows(db).where(typeof id === 'number' ? { id } : { document_id: id });
  const shown = await withAttempts(db, app, [await firstOrNotFound(query, 'Delivery')]);
  return shown[0] as Delivery;
};

/** The data of a webhook's latest deliveries, newest first, without tests and those whose message is gone. */
export const latestData = async (
  app: App,
  { webhook, event }: Pick<DeliveryFilter, 'webhook' | 'event'>,
  limit: number
): Promise<Omit<FilterSample, 'matched'>[]> => {
  const db = await app.db.current();
  const found = (await rows(db)
    .select('document_id', 'event', 'body', 'message_id')
    .where({ webhook_id: webhook, is_test: false, ...(event && { event }) })
    .orderBy(newestFirst())
    .limit(limit)) as Pick<DeliveryRow, 'document_id' | 'event' | 'body' | 'message_id'>[];
  const bodies = await readBodies(db, app, found);
  return found.flatMap((row, at) => {
    const body = bodies[at];
    if (typeof body !== 'string') return [];
    const { data } = JSON.parse(body) as { data: unknown };
    return { event: row.event, delivery_id: row.document_id, data };
  });
};

/** The part of a delivery that matters before it is sent again. */
export const findDelivery = async (
  app: App,
  id: number
): Promise<Pick<DeliveryRow, 'webhook_id' | 'event' | 'site_instance'>> => {
  const query = rows(await app.db.current()).select('webhook_id', 'event', 'site_instance');
  return firstOrNotFound(query.where({ id }), 'Delivery');
};

/** Releases messages of deliveries removed in this transaction, and removes unused ones; `ids` once per delivery. */
const releaseMessages = async (db: Db, ids: readonly number[]): Promise<void> => {
  const counts = new Map<number, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  const byCount = new Map<number, number[]>();
  for (const [id, count] of counts) byCount.set(count, [...(byCount.get(count) ?? []), id]);
  const messages = () => db.table(MESSAGES_TABLE);
  const all = () => messages().whereIn('id', [...counts.keys()]);
  // In the order of their ids, as another node may be removing others of theirs.
  await all().select('id').orderBy('id').forUpdate();
  for (const [count, some] of byCount) {
    await messages().whereIn('id', some).decrement('deliveries', count);
  }
  await all().where('deliveries', '<=', 0).delete();
};

/** Removes deliveries, then their attempts and messages; `isKept` keeps queued ones. Returns how many deliveries. */
const remove = (app: App, ids: readonly number[], isKept: (place: FoundRow) => boolean) =>
  app.db.retrying(async (tx) => {
    const store = getDeliveryStore(app);
    const places = await store.queue.lock(tx, ids);
    const kept = new Set([...places].flatMap(([id, place]) => (isKept(place) ? id : [])));
    const free = ids.filter((id) => !kept.has(Number(id)));
    // Locked before they go: another node that removes the same ones finds them gone.
    const going = (await rows(tx)
      .whereIn('id', free)
      .select('id', 'message_id')
      .orderBy('id')
      .forUpdate()) as Pick<DeliveryRow, 'id' | 'message_id'>[];
    if (going.length === 0) return 0;
    const gone = going.map(({ id }) => Number(id));
    await rows(tx).whereIn('id', gone).delete();
    await store.queue.move(tx, gone, null);
    await store.queue.letPass(tx, gone);
    await tx.table(ATTEMPTS_TABLE).whereIn('delivery_id', gone).delete();
    const shared = going.flatMap(({ message_id: id }) => (id === null ? [] : [Number(id)]));
    if (shared.length > 0) await releaseMessages(tx, shared);
    return gone.length;
  });

/** Removes the deliveries of a deleted webhook, pending ones too, in small batches. */
export const removeDeliveriesOf = async (app: App, webhook: number): Promise<void> => {
  const db = await app.db.current();
  for (;;) {
    const ids = (await rows(db)
      .where({ webhook_id: webhook })
      .orderBy(['created_at', 'id'])
      .limit(AT_ONCE)
      .pluck('id')) as number[];
    if (ids.length === 0) return;
    await remove(app, ids, () => false);
    await nextTurn();
  }
};

const REMOVED_AT_ONCE = 500;

/** Removes deliveries that ended before a time, but for resent ones, oldest first, in batches, with a `pause` between. */
export const removeFinishedDeliveries = async (
  app: App,
  before: number,
  pause: () => Promise<void>
): Promise<number> => {
  const db = await app.db.current();
  const isUnderWay = ({ state, isHeld }: FoundRow): boolean => isHeld || state !== 'ended';
  let removed = 0;
  let after: LogPlace = { at: 0, id: 0 };
  for (;;) {
    const { at, id } = after;
    const found = (await rows(db)
      .select('id', 'created_at')
      .where('created_at', '>=', at)
      .andWhere('created_at', '<', before)
      .andWhere((later) => {
        later.where('created_at', '>', at).orWhere('id', '>', id);
      })
      .andWhere('finished_at', '<', before)
      .orderBy(['created_at', 'id'])
      .limit(REMOVED_AT_ONCE)) as Pick<DeliveryRow, 'id' | 'created_at'>[];
    const last = found.at(-1);
    if (!last) return removed;
    const ids = found.map((row) => Number(row.id));
    removed += await remove(app, ids, isUnderWay);
    if (found.length < REMOVED_AT_ONCE) return removed;
    after = placeOf(last);
    await pause();
  }
};

const COUNTED: readonly DeliveryState[] = ['failing', 'failed'];

/** Deliveries of a webhook with one cause, or with none; the oldest and the newest in epoch milliseconds. */
interface CauseSum extends Record<'webhook' | 'total' | 'first' | 'last', number | string> {
  error: string | null;
}

/** Counts causes in SQL by branch; `from`: oldest place; null: the newest `LOOKED_AT` of each branch. */
const sumCauses = async (db: Db, branches: readonly Branch[], from: LogPlace | null) => {
  const sums: CauseSum[] = [];
  for (const { orderedBy, rows: all, webhook } of branches) {
    // SQLite's driver answers within the same turn of the event loop.
    await nextTurn();
    const since = from && [
      all().where('created_at', from.at).where('id', '>=', from.id),
      all().where('created_at', '>', from.at),
    ];
    for (const part of since ?? [all()]) {
      const newestOf = part
        .select({ webhook }, 'error', 'created_at')
        .orderBy(newestFirst(orderedBy))
        .limit(LOOKED_AT);
      const counted = db
        .from(newestOf)
        .select('webhook', 'error')
        .count({ total: '*' })
        .min({ first: 'created_at' })
        .max({ last: 'created_at' });
      sums.push(...((await counted.groupBy('webhook', 'error')) as CauseSum[]));
    }
  }
  return sums;
};

/** As `sumCauses`, of the newest `LOOKED_AT` of all branches. */
const sumNewest = async (db: Db, branches: readonly Branch[]): Promise<CauseSum[]> => {
  const sums = await sumCauses(db, branches, null);
  if (sums.reduce((all, { total }) => all + Number(total), 0) <= LOOKED_AT) return sums;
  const [from = null] = await readPlaces(db, branches, { limit: 1, offset: LOOKED_AT - 1 });
  return sumCauses(db, branches, from);
};

/** Counts only the matching rows, one by one. */
async function* matchesAmong(db: Db, branches: readonly Branch[], search: Search) {
  const matches = matcher(search);
  for await (const row of newest(db, branches)) {
    const { created_at: at, webhook_id: webhook } = row;
    yield { webhook, error: matches(row) ? row.error : null, total: 1, first: at, last: at };
  }
}

/** Why deliveries are failing or failed, the most frequent cause first; of the newest `LOOKED_AT` only. */
export const countCauses = async (
  app: App,
  { filter: { states, ...filter }, search }: LogSelection,
  by: 'webhook' | 'cause'
): Promise<FailureCauses> => {
  const db = await app.db.current();
  const branches = await branchesOf(db, app, {
    ...filter,
    states: COUNTED.filter((state) => states?.includes(state) ?? true),
  });
  const causes = new Map<string, FailureCause>();
  let from: string | null = null;
  const sums = search ? matchesAmong(db, branches, search) : await sumNewest(db, branches);
  for await (const { error, first, last, total, webhook } of sums) {
    const [first_at, last_at] = [isoTime(Number(first)), isoTime(Number(last))];
    if (from === null || first_at < from) from = first_at;
    if (error === null) continue;
    const key = by === 'cause' ? error : `${webhook} ${error}`;
    const named = { cause: error, ...(by === 'webhook' && { webhook_id: Number(webhook) }) };
    const cause = causes.get(key) ?? { ...named, count: 0, first_at, last_at };
    causes.set(key, cause);
    cause.count += Number(total);
    if (first_at < cause.first_at) cause.first_at = first_at;
    if (last_at > cause.last_at) cause.last_at = last_at;
  }
  const data = [...causes.values()].sort(
    (a, b) => b.count - a.count || b.last_at.localeCompare(a.last_at)
  );
  return { data, meta: { searched_from: from } };
};

/**
 * All deliveries of a filter, in parts, unordered; a text search is limited to the newest `LOOKED_AT`. Deliveries of
 * another site are left out: only that site may send them. `boundary`: newest row id to look at.
 */
export async function* matchingDeliveries(
  app: App,
  { filter, search }: LogSelection,
  boundary: number
): AsyncGenerator<(LogPlace & { webhook: number })[]> {
  const db = await app.db.current();
  const branches = await branchesOf(db, app, filter);
  const ours = (found: readonly LookedAt[]) =>
    found
      .filter((row) => Number(row.id) <= boundary && !app.site.isForeign(row))
      .map((row) => ({ ...placeOf(row), webhook: Number(row.webhook_id) }));
  if (!search) {
    for (const branch of branches) {
      for await (const part of partsOf(db, branch)) yield ours(part);
    }
    return;
  }
  const matches = matcher(search);
  let part: LookedAt[] = [];
  for await (const row of newest(db, branches)) {
    if (matches(row)) part.push(row);
    if (part.length < AT_ONCE) continue;
    yield ours(part);
    part = [];
  }
  yield ours(part);
}
