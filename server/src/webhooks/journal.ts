import type { Knex } from 'knex';
import type { Subject, SubjectType, Webhook } from '../../../shared/contracts/webhooks';
import { withTransientRetry } from '../database/retry';
import { SITE_TABLE } from '../database/site';
import type { PlainTable, RowOf } from '../database/tables/plain-tables';
import { nextTurn, TimeSlice } from '../runtime/event-loop';
import { DAY_MS } from '../runtime/text';
import { declarations, moduleOff } from './catalogue';
import { bodyOf, type FrozenMessage } from './deliveries/messages';
import { matches } from './rules/data-filter';
import { uuidV7 } from '../runtime/ids';
import type { App } from '../app';
import type { Db } from '../database/db';

export const JOURNAL_TABLE = 'switchboard_journal';
export const REPLAYS_TABLE = 'switchboard_journal_replays';

/**
 * Each published event, once, even without subscribers, if `webhooks.journalDays` is not 0. `entry_id` is its
 * envelope's id; `frame` and `data` are the rest as sent. `webhooks` is a JSON list of receivers' ids at publication,
 * or null. `number` is its place, given after the commit; `created_at` is when it happened, epoch milliseconds.
 */
export const journalTable = {
  tableName: JOURNAL_TABLE,
  attributes: {
    number: { type: 'biginteger', null: true },
    entry_id: { type: 'string', column: { args: [36] } },
    event: { type: 'string' },
    created_at: { type: 'biginteger' },
    subject_type: { type: 'string', null: true },
    subject_id: { type: 'string', null: true },
    subject_label: { type: 'string', null: true },
    webhooks: { type: 'text', null: true },
    frame: { type: 'text' },
    data: { type: 'text' },
  },
  indexes: [
    { name: 'sb_journal_number', columns: ['number', 'id'] },
    { name: 'sb_journal_time', columns: ['created_at', 'id'] },
  ],
} satisfies PlainTable;

/** Which event of the journal which webhook was sent later, and by which recovery: each once. */
export const replaysTable: PlainTable = {
  tableName: REPLAYS_TABLE,
  withoutId: true,
  attributes: {
    journal_id: { type: 'integer' },
    webhook_id: { type: 'integer' },
    recovery_id: { type: 'integer' },
  },
  indexes: [{ name: 'sb_replay', columns: ['journal_id', 'webhook_id'], type: 'unique' }],
};

export type JournalRow = RowOf<typeof journalTable> & { subject_type: SubjectType | null };

const NUMBERED_AT_ONCE = 1000;
/** The last number that was given. The transaction that gives numbers locks this row until the commit. */
const HEAD = { name: 'journal' };

const head = (db: Db): Knex.QueryBuilder => db.table(SITE_TABLE).where(HEAD);

const lastOf = async (query: Knex.QueryBuilder): Promise<number> => {
  const row = (await query.select('value').first()) as { value: string } | undefined;
  return Number(row?.value ?? 0);
};

const unnumbered = (db: Db): Knex.QueryBuilder =>
  db.table(JOURNAL_TABLE).whereNull('number').orderBy('id');

const giveNumbers = (app: App): Promise<number> =>
  app.db.transaction(async (tx) => {
    // No other transaction gives numbers until the commit: a reader of one sees all smaller ones.
    const before = await lastOf(head(tx).forUpdate());
    const ids = ((await unnumbered(tx).limit(NUMBERED_AT_ONCE).pluck('id')) as number[]).map(
      Number
    );
    const [first] = ids;
    if (first === undefined) return before;
    // Ids are in order among themselves, and behind what has a number already by so much.
    const shift = Math.max(0, before + 1 - first);
    await tx
      .table(JOURNAL_TABLE)
      .whereIn('id', ids)
      .update({ number: tx.raw('id + ?', [shift]) });
    const last = (ids.at(-1) as number) + shift;
    await head(tx).update({ value: String(last) });
    return last;
  });

/**
 * Numbers up to 1,000 committed events. Numbers follow these commits, not the events': an event of a long transaction
 * gets one that has not been read past. Returns the last number given.
 */
const numberEvents = async (app: App): Promise<number> => {
  const db = await app.db.current();
  const some = (await unnumbered(db).limit(1).pluck('id')) as number[];
  return some.length > 0 ? withTransientRetry(() => giveNumbers(app)) : lastOf(head(db));
};

/** Makes the row of the last number, at the first boot. */
export const prepareNumbering = async (app: App): Promise<void> => {
  const row = { ...HEAD, value: '0' };
  await app.db.pool.insert(SITE_TABLE, [row], { unique: ['name'], then: 'ignore' });
};

/** The journal: what was published, kept for `webhooks.journalDays`; docs/management-api.md#the-journal. */

export interface JournalEntry extends FrozenMessage {
  subject: Subject | null;
  webhooks: readonly number[];
}

/** Characters of a page, beyond which it has fewer events than were asked for, but one at least. */
const PAGE_CHARACTERS = 4_000_000;
const READ_AT_ONCE = 10;
const BATCH = 500;

const rows = (db: Db): Knex.QueryBuilder => db.table(JOURNAL_TABLE);

/** Keeps events in `tx`'s transaction: they are there if and only if it commits. */
export const insertEntries = (db: Db, entries: readonly JournalEntry[]): Promise<void> =>
  db.insert(
    JOURNAL_TABLE,
    entries.map(({ event, at, frame, data, subject, webhooks }) => ({
      entry_id: uuidV7(at),
      event,
      created_at: at,
      subject_type: subject?.type ?? null,
      subject_id: subject?.id ?? null,
      subject_label: subject?.label ?? null,
      webhooks: webhooks.length > 0 ? JSON.stringify(webhooks) : null,
      frame,
      data,
    }))
  );

/**
 * Journal events after a place, in readable order: a late commit appears late, and none is skipped.
 * @param after the `last` of the page before; 0 for the beginning
 * @returns envelopes as JSON texts, and the place up to which the reader has now seen everything
 */
export const readJournal = async (app: App, { after, limit }: { after: number; limit: number }) => {
  const given = await numberEvents(app);
  const db = await app.db.current();
  // An unknown place comes from a database that a backup has replaced.
  let last = after > given ? 0 : after;
  const envelopes: string[] = [];
  let characters = 0;
  while (envelopes.length < limit && characters < PAGE_CHARACTERS) {
    const wanted = Math.min(READ_AT_ONCE, limit - envelopes.length);
    const found = (await rows(db)
      .select('number', 'entry_id', 'frame', 'data')
      .where('number', '>', last)
      .orderBy('number')
      .limit(wanted)) as Pick<JournalRow, 'number' | 'entry_id' | 'frame' | 'data'>[];
    for (const { number, entry_id: id, ...pieces } of found) {
      const envelope = bodyOf(id, pieces);
      if (envelopes.length > 0 && characters + envelope.length > PAGE_CHARACTERS) {
        return { envelopes, last };
      }
      envelopes.push(envelope);
      characters += envelope.length;
      last = Number(number);
    }
    if (found.length < wanted) break;
  }
  return { envelopes, last };
};

/** Removes up to 500 events older than the journal's days; all, if there is none. @returns whether more may follow */
export const removeOldEntries = async (app: App, now: number): Promise<boolean> => {
  const db = await app.db.current();
  const before = now - app.options.webhooks.journalDays * DAY_MS;
  const ids = (await rows(db)
    .where('created_at', '<', before)
    .orderBy(['created_at', 'id'])
    .limit(BATCH)
    .pluck('id')) as number[];
  if (ids.length > 0) {
    await app.db.retrying(async (tx) => {
      await rows(tx).whereIn('id', ids).delete();
      await tx.table(REPLAYS_TABLE).whereIn('journal_id', ids).delete();
    });
  }
  return ids.length === BATCH;
};

/** The part of the journal to send to a webhook. Times are epoch milliseconds. */
export interface ReplayRange {
  from: number;
  /** The first moment that is not in it. */
  to: number;
  /** null: every event that the webhook asks for. */
  events: readonly string[] | null;
}

/** How many are read together; their data only if needed. */
const MATCHED_AT_ONCE = 500;
const WITH_DATA_AT_ONCE = 20;

/** The names that are asked for; null: all. */
const namesOf = (webhook: Webhook, events: readonly string[] | null): readonly string[] | null => {
  const names = events === null || events.includes('*') ? null : events;
  if (webhook.events.includes('*')) return names;
  return names ? webhook.events.filter((event) => names.includes(event)) : webhook.events;
};

/** Rows, among some of the journal, that a webhook was sent later. */
export const replayedTo = async (db: Db, webhook: number, ids: readonly number[]) => {
  const found = (await db
    .table(REPLAYS_TABLE)
    .where({ webhook_id: webhook })
    .whereIn('journal_id', [...ids])
    .pluck('journal_id')) as number[];
  return new Set(found.map(Number));
};

/** True if a webhook was sent an event when it was published. */
export const wasSent = ({ webhooks }: Pick<JournalRow, 'webhooks'>, webhook: number): boolean =>
  webhooks !== null && (JSON.parse(webhooks) as number[]).includes(webhook);

/** True if a webhook's filter matches an event; one that cannot be judged does not. */
const isWanted = ({ filter }: Webhook, { data }: Pick<JournalRow, 'data'>): boolean => {
  if (filter === null) return true;
  try {
    return matches(filter, JSON.parse(data));
  } catch {
    return false;
  }
};

/** Tells whether the module of an event is off. */
export const createHeld = async (app: App): Promise<(event: string) => boolean> => {
  const [enabled, declared] = [await app.modules.enabled(), await declarations(app)];
  return (event) => !enabled.has('webhooks') || moduleOff(declared, event, enabled) !== null;
};

/** Journal events that a webhook selects and did not get, oldest first, of modules that are on, up to `boundary`. */
export async function* matchingEntries(
  app: App,
  webhook: Webhook,
  { from, to, events }: ReplayRange,
  boundary: number
): AsyncGenerator<{ id: number; at: number }[]> {
  const db = await app.db.current();
  const names = namesOf(webhook, events);
  const isHeld = await createHeld(app);
  const limit = webhook.filter === null ? MATCHED_AT_ONCE : WITH_DATA_AT_ONCE;
  const columns = ['id', 'event', 'created_at', 'webhooks', ...(webhook.filter ? ['data'] : [])];
  const slice = new TimeSlice();
  let after = { at: from, id: 0 };
  for (;;) {
    // SQLite's driver answers within the same turn of the event loop.
    await nextTurn();
    const query: Knex.QueryBuilder = db
      .table(JOURNAL_TABLE)
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
    const rows = (await query) as JournalRow[];
    const ids = rows.map(({ id }) => Number(id));
    const replayed = await replayedTo(db, webhook.id, ids);
    const part: { id: number; at: number }[] = [];
    for (const row of rows) {
      const id = Number(row.id);
      if (slice.isOver()) await slice.next();
      if (replayed.has(id) || wasSent(row, webhook.id) || isHeld(row.event)) continue;
      if (isWanted(webhook, row)) part.push({ id, at: Number(row.created_at) });
    }
    yield part;
    const last = rows.at(-1);
    if (!last || rows.length < limit) return;
    after = { at: Number(last.created_at), id: Number(last.id) };
  }
}
