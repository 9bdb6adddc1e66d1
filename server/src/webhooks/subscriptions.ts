import type { Knex } from 'knex';
import { MODULE_IDS, type ModuleId } from '../../../shared/contracts/modules';
import type { Webhook } from '../../../shared/contracts/webhooks';
import { rowsOf, type Statement } from '../database/connection';
import { qualified } from '../database/dialects/shared';
import { currentTurn } from '../database/transactions';
import { inChunks } from '../database/written-rows';
import type { PlainTable } from '../database/tables/plain-tables';
import { enabledModules, storedModules } from '../modules/modules';
import { nextTurn, TimeSlice } from '../runtime/event-loop';
import { declarations, moduleOff } from './catalogue';
import { SUBSCRIPTIONS_TABLE, WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from './tables';
import { chosenEvents, toWebhook } from './webhook';
import type { App } from '../app';
import type { Db } from '../database/db';

/** The subscribers of some events, as the database had them at one moment; only ask for those events. */
export class Subscriptions {
  private readonly subscribers = new Map<string, readonly Webhook[]>();

  /**
   * @param readAt `performance.now()` of the query
   * @param webhooks active ones, by their ids
   * @param isSent whether the module of an event is on
   */
  constructor(
    private readonly app: App,
    readonly readAt: number,
    private readonly webhooks: readonly Webhook[],
    private readonly isSent: (event: string) => boolean
  ) {}

  /** Active webhooks that asked for the event, by their ids; none if its module is off. */
  subscribersOf(event: string): readonly Webhook[] {
    const known = this.subscribers.get(event);
    if (known) return known;
    const chosen = this.webhooks.filter(
      ({ events }) => events.includes(event) || events.includes('*')
    );
    const found = this.isSent(event) ? chosen : [];
    this.subscribers.set(event, found);
    return found;
  }

  /** True if handlers of `service_crm_webhook` get the event; not if its module is off. */
  isListenedTo(event: string): boolean {
    return this.app.hooks.hasListeners() && this.isSent(event);
  }

  /** True if the event is kept in the journal; not if its module is off. */
  isJournaled(event: string): boolean {
    return this.app.options.webhooks.journalDays > 0 && this.isSent(event);
  }

  /** True if anybody gets the event: a webhook that asked for it, a handler that listens, the journal. */
  isSubscribed(event: string): boolean {
    return (
      this.isListenedTo(event) || this.isJournaled(event) || this.subscribersOf(event).length > 0
    );
  }

  isAnySubscribed(events: readonly string[]): boolean {
    return events.some((event) => this.isSubscribed(event));
  }
}

/** The most webhooks that one statement looks at: SQLite's driver reads all of them in one turn. */
const READ_AT_ONCE = 500;

/**
 * The next indexed webhooks for these events, and those newer than the index (created without a lifecycle), with module
 * switches. `looked_at` is the webhook's id; other columns are null if it is inactive or another site's. If handlers
 * listen or the journal is on, the switches are needed without webhooks too: then one row has only them.
 * @returns a statement for so many events, with the bindings of its first part
 */
const buildStatement = (db: Db, count: number, anyEvent: boolean) => {
  const schema = db.schema;
  const subscriptions = qualified({ name: SUBSCRIPTIONS_TABLE, schema });
  const webhooks = qualified({ name: WEBHOOKS_TABLE, schema });
  const modules = storedModules(db).toSQL();
  const switches = modules.bindings as Knex.RawBinding[];
  // PostgreSQL estimates a third of all webhooks as newer than the index, and reads and joins the table for them. So
  // this first checks whether there are any, and steps from each match into the key.
  const isPostgres = db.client === 'postgres';
  const indexed = '(SELECT COALESCE(MAX(webhook_id), 0) FROM ??)';
  const isAnyNewer = isPostgres ? `AND (SELECT MAX(id) FROM ??) > ${indexed}` : '';
  const matching = `(
    SELECT webhook_id AS looked_at FROM ?? WHERE event IN (${'?, '.repeat(count)}'*') AND webhook_id > ?
    UNION SELECT id FROM (
      SELECT id FROM ?? WHERE id > ? AND id > ${indexed} ${isAnyNewer}
      ORDER BY id LIMIT ${READ_AT_ONCE}
    ) unknown
    ORDER BY looked_at LIMIT ${READ_AT_ONCE}
  ) m`;
  const isServed = 'active = ? AND (site_instance = ? OR site_instance IS NULL)';
  const join = isPostgres
    ? `LEFT JOIN LATERAL (SELECT * FROM ?? WHERE id = m.looked_at AND ${isServed} LIMIT 1) w ON true`
    : `LEFT JOIN ?? w ON w.id = m.looked_at AND w.active = ?
         AND (w.site_instance = ? OR w.site_instance IS NULL)`;
  const nothing: readonly Knex.RawBinding[] = Array<string>(count).fill('');
  // Names are filled in here, values each time.
  const { sql } = (db.knex as Knex)
    .raw(
      `SELECT m.looked_at, w.*, (${modules.sql}) AS modules
       FROM ${anyEvent ? `(SELECT 1 AS one) o LEFT JOIN ${matching} ON o.one = 1` : matching}
       ${join} ORDER BY m.looked_at`,
      [
        ...[...switches, subscriptions, ...nothing, 0, webhooks, 0, subscriptions],
        ...(isPostgres ? [webhooks, subscriptions] : []),
        ...[webhooks, true, db.site.instance],
      ]
    )
    .toSQL();
  return { sql, switches };
};

/** Every write runs one; building it would cost as much as running it. */
const built = (): Map<string, ReturnType<typeof buildStatement>> => new Map();

const statementAfter = (app: App, events: readonly string[], after: number): Statement => {
  const statements = app.part(built);
  const anyEvent = app.hooks.hasListeners() || app.options.webhooks.journalDays > 0;
  const key = `${anyEvent}/${events.length}`;
  const statement = statements.get(key) ?? buildStatement(app.db.pool, events.length, anyEvent);
  statements.set(key, statement);
  const bindings = [...statement.switches, ...events, after, after, true, app.site.instance];
  return { sql: statement.sql, bindings };
};

type Row = { [K in keyof WebhookRow]: WebhookRow[K] | null } & {
  looked_at: number | null;
  modules: string | null;
};

/**
 * Reads the subscribers of events, in slices, as a site may have thousands of webhooks.
 * @param ask runs a statement; the first one is asked before this returns
 * @throws if one statement is required but does not read all webhooks
 */
const load = async (
  app: App,
  events: readonly string[],
  ask: (statement: Statement) => Promise<unknown>,
  isOneStatement = false
): Promise<Subscriptions> => {
  const readAt = performance.now();
  const webhooks: Webhook[] = [];
  const slice = new TimeSlice();
  let isSent: ((event: string) => boolean) | null = null;
  for (let after = 0; ;) {
    const rows = rowsOf<Row>(await ask(statementAfter(app, events, after)));
    if (!isSent) {
      const enabled = enabledModules(rows[0]?.modules);
      if (!rows[0] || !enabled.has('webhooks')) {
        return new Subscriptions(app, readAt, [], () => false);
      }
      // The module of an event matters only if one is off.
      const isAllOn = enabled.size === MODULE_IDS.length;
      const declared = isAllOn ? null : await declarations(app);
      isSent = (event) => !declared || moduleOff(declared, event, enabled) === null;
    }
    for (const row of rows) {
      if (row.id === null) continue;
      webhooks.push(toWebhook(row as WebhookRow));
      if (slice.isOver()) await slice.next();
    }
    if (rows.length < READ_AT_ONCE) return new Subscriptions(app, readAt, webhooks, isSent);
    if (isOneStatement) throw new Error('There are more webhooks than one statement reads.');
    after = Number(rows.at(-1)?.looked_at);
  }
};

/** Milliseconds of caching. Other processes answer a change that much later (`nodes.ts`), so later writes see it. */
export const REMEMBERED_MS = 500;

/** `REMEMBERED_MS` while other processes do not wait for this one. */
const UNANNOUNCED_MS = 5;

/** An older answer is read again in the background, while writes, and what is sent of them, still use it. */
const REFRESH_MS = 200;

/** The largest number of webhooks that `onRead` is given. */
const FEW = 16;

/** More than a site has: the number of kinds of writes whose subscribers are kept in memory. */
const KINDS_OF_WRITES = 500;

/** When something was read of webhooks. */
export interface Mark {
  /** The revision of this process's webhooks when the query started. */
  readonly revision: number;
  /** Start time, by `performance.now()`. */
  readonly at: number;
  /** True if handlers listened: then modules matter without webhooks too. */
  readonly isListened: boolean;
}

export interface SubscriptionQuery extends Mark {
  readonly events: readonly string[];
  readonly answer: Promise<Subscriptions>;
  found?: Subscriptions;
  isRefreshing?: boolean;
}

/** By the lists of events that writes ask with, which stay the same: joined into a key. */
const keys = new WeakMap<readonly string[], string>();

const keyOf = (events: readonly string[]): string => {
  let key = keys.get(events);
  if (key === undefined) keys.set(events, (key = events.join()));
  return key;
};

/** Transactions that have changed webhooks or modules, which only they see until they commit. */
const changing = new WeakSet<object>();

/** A transaction's queries, one for each kind of events, by its knex. */
const byTransaction = new WeakMap<object, SubscriptionQuery[]>();

/** The subscribers of events, with this process's memory of the latest queries. */
export class Subscribers {
  /** Time by `performance.now()` until which other processes delay their answers for this memory. */
  rememberUntil = 0;
  /** Gets what was read of the webhooks of an event, if they are few: the next to be asked for are likely theirs. */
  onRead: ((webhook: WebhookRow, enabled: ReadonlySet<ModuleId>, mark: Mark) => void) | null = null;
  /** Counts changes of webhooks and modules in this process, which invalidate queries; shared with sender threads. */
  readonly changes = new Int32Array(new SharedArrayBuffer(4));
  /** By their events. */
  private readonly queries = new Map<string, SubscriptionQuery>();

  constructor(private readonly app: App) {}

  private get revision(): number {
    return Atomics.load(this.changes, 0);
  }

  /** For what is about to be read of webhooks outside of a transaction. */
  mark(): Mark {
    const isListened = this.app.hooks.hasListeners();
    return { revision: this.revision, at: performance.now(), isListened };
  }

  /** True if nothing was changed here since then, and it was not longer ago than that. */
  isCurrent({ revision, at, isListened }: Mark, forMs: number, now = performance.now()): boolean {
    if (revision !== this.revision || now - at >= forMs) return false;
    return isListened === this.app.hooks.hasListeners();
  }

  /** True while other processes delay their answers for this memory. */
  get isTrusted(): boolean {
    return performance.now() < this.rememberUntil;
  }

  /** How long what is read may be used, in milliseconds. */
  get goodForMs(): number {
    return this.isTrusted ? REMEMBERED_MS : UNANNOUNCED_MS;
  }

  /** To be called with each change of webhooks or modules in this process, in its transaction. */
  async forget(): Promise<void> {
    const { db } = this.app;
    if (db.inTransaction()) changing.add((await db.current()).knex);
    const note = () => void Atomics.add(this.changes, 0, 1);
    note();
    // A query between did not see the change.
    db.afterCommit(note);
  }

  /**
   * Looks up subscribers before a write opens its transaction: from memory or on another connection, which on a
   * database server saves a round trip while the host validates. Not in a transaction: a holder of a connection must
   * not wait for another. Returns null there, and if no other process delays its answers for this cache.
   */
  prefetch(events: readonly string[]): SubscriptionQuery | null {
    if (this.app.db.inTransaction()) return null;
    const recalled = this.recall(events);
    if (recalled || !this.isTrusted) return recalled;
    const query = this.queryApart(events);
    // A site may make up names of events.
    if (this.queries.size >= KINDS_OF_WRITES) this.queries.clear();
    this.queries.set(keyOf(events), query);
    return query;
  }

  /** As `current`, if the answer is in memory; otherwise null. */
  known(events: readonly string[]): Subscriptions | null {
    const { strapi, db } = this.app;
    const trx = db.inTransaction() ? currentTurn(strapi)?.transaction?.trx : db.pool.knex;
    return trx && !changing.has(trx) ? (this.recall(events)?.found ?? null) : null;
  }

  /** Subscribers of events: cached for half a second, or as the transaction sees them if it changed webhooks itself. */
  async current(events: readonly string[]): Promise<Subscriptions> {
    const { app } = this;
    const known = this.known(events);
    if (known) return known;
    const db = await app.db.current();
    const ask = () => load(app, events, (statement) => db.prepared(statement));
    // Within a transaction another write's query may wait for the connection that this one holds.
    if (!app.db.inTransaction()) return this.prefetch(events)?.answer.catch(ask) ?? ask();

    const answers = byTransaction.get(db.knex) ?? [];
    const same = answers.find((one) => this.isFresh(one, events));
    if (same) return same.answer;
    const answer = ask();
    byTransaction.set(db.knex, [...answers, { events, answer, ...this.mark() }]);
    return answer;
  }

  /** True if a query of a transaction may be used for these events. */
  private isFresh(query: SubscriptionQuery, wanted: readonly string[]): boolean {
    const { events } = query;
    return this.isCurrent(query, REMEMBERED_MS) && wanted.every((event) => events.includes(event));
  }

  /** Finds a recent query of another write, and starts the next one in time. */
  private recall(events: readonly string[]): SubscriptionQuery | null {
    const known = this.queries.get(keyOf(events));
    const now = performance.now();
    if (!known || now >= this.rememberUntil) return null;
    if (!this.isCurrent(known, REMEMBERED_MS, now)) return null;
    if (!known.isRefreshing && now - known.at >= REFRESH_MS) {
      known.isRefreshing = true;
      const next = this.app.detached(() => this.queryApart(events));
      void next.answer.then(
        () => this.queries.set(keyOf(events), next),
        () => {}
      );
    }
    return known;
  }

  /** Runs one statement: a second one could wait for the connection of the very write that waits for it. */
  private queryApart(events: readonly string[]): SubscriptionQuery {
    const { app } = this;
    const mark = this.mark();
    const ask = async (statement: Statement): Promise<Row[]> => {
      const rows = rowsOf<Row>(await app.db.apart(statement));
      if (this.onRead && rows.length <= FEW) {
        const enabled = enabledModules(rows[0]?.modules);
        for (const row of rows) if (row.id !== null) this.onRead(row as WebhookRow, enabled, mark);
      }
      return rows;
    };
    const answer = load(app, events, ask, true);
    const query: SubscriptionQuery = { events, answer, ...mark };
    // On failure the write reads again in its transaction; perhaps the answer is not needed.
    answer.then(
      (found) => (query.found = found),
      () => {}
    );
    return query;
  }
}

const ofApps = new WeakMap<App, Subscribers>();

export const subscribersOf = (app: App): Subscribers => {
  let subscribers = ofApps.get(app);
  if (!subscribers) ofApps.set(app, (subscribers = new Subscribers(app)));
  return subscribers;
};

/** A row for each event that a webhook chose, also `*`. Its own `events` decide; a row too many costs a look. */
export const subscriptionsTable: PlainTable = {
  tableName: SUBSCRIPTIONS_TABLE,
  attributes: {
    event: { type: 'string' },
    webhook_id: { type: 'integer' },
  },
  indexes: [
    { name: 'sb_subscription_event', columns: ['event', 'webhook_id'], type: 'unique' },
    { name: 'sb_subscription_webhook', columns: ['webhook_id'] },
  ],
};

const AT_ONCE = 200;
const ROWS_AT_ONCE = 100;
const LONGEST_NAME = 255;

type Indexed = Pick<WebhookRow, 'id' | 'events'>;

const idsOf = (rows: readonly Indexed[]): number[] => rows.map(({ id }) => Number(id));

interface Subscription {
  event: string;
  webhook_id: number;
}

const toSubscriptions = ({ id, events }: Indexed): Subscription[] =>
  [...new Set(chosenEvents(events))]
    .filter((event) => event.length <= LONGEST_NAME)
    .map((event) => ({ event, webhook_id: Number(id) }));

const webhooks = (db: Db): Knex.QueryBuilder =>
  db.table(WEBHOOKS_TABLE).select('id', 'events').orderBy('id');

/** Removes outdated index rows. By ids, so that nothing else is locked. */
const removeLeft = async (db: Db, ids: readonly number[], chosen: readonly Subscription[]) => {
  const subscriptions = () => db.table(SUBSCRIPTIONS_TABLE);
  const keyOf = ({ event, webhook_id: webhook }: Subscription): string => `${webhook}/${event}`;
  const kept = new Set(chosen.map(keyOf));
  const held = (await subscriptions()
    .select('id', 'event', 'webhook_id')
    .whereIn('webhook_id', [...ids])) as (Subscription & { id: number })[];
  const left = held.filter((one) => !kept.has(keyOf(one))).map(({ id }) => id);
  if (left.length > 0) await subscriptions().whereIn('id', left).delete();
};

/**
 * Updates the index rows of webhooks in the current transaction. Concurrent writers and sweeps are safe: each locks its
 * webhooks while it reads their events, and existing rows are equivalent to inserted ones.
 */
const index = async (app: App, ids: readonly number[]): Promise<void> => {
  const db = await app.db.current();
  // In the order of ids, and by nothing but ids: so MySQL locks no webhook that others are about to make.
  const locked = (await webhooks(db)
    .whereIn('id', [...ids])
    .forUpdate()) as Indexed[];
  const rows = locked.flatMap(toSubscriptions);
  await removeLeft(db, ids, rows);
  await db.inParts(rows, { count: ROWS_AT_ONCE, valuesOf: (row) => ({ ...row }) }, async (part) => {
    await db
      .table(SUBSCRIPTIONS_TABLE)
      .insert([...part])
      .onConflict(['event', 'webhook_id'])
      .merge(['webhook_id']);
  });
  const { knex } = db;
  const indexed = db.table(WEBHOOKS_TABLE).whereIn('id', idsOf(locked));
  await indexed.update({ indexed_id: knex.ref('id'), indexed_events: knex.ref('events') });
};

/** Webhooks whose events were written past the index, copies of rows included. */
const stale = (db: Db): Knex.QueryBuilder =>
  webhooks(db).where((either) => {
    either
      .whereNull('indexed_id')
      .orWhereNot('indexed_id', db.knex.ref('id'))
      .orWhereRaw("COALESCE(??, '') <> COALESCE(??, '')", ['indexed_events', 'events']);
  });

/** Indexes webhooks that came or changed without a lifecycle, such as by an import; at boot and by the clock. */
export const repairSubscriptionIndex = async (app: App): Promise<void> => {
  // Nearly always there is nothing to do, and so no transaction to begin.
  for (;;) {
    const db = await app.db.current();
    const some = (await stale(db).limit(AT_ONCE)) as Indexed[];
    if (some.length === 0) return;
    await app.db.retrying(() => index(app, idsOf(some)));
    await nextTurn();
  }
};

/** Indexes a new webhook and those before it: events look for unindexed ones only after the last indexed one. */
const indexNew = async (app: App, made: number): Promise<void> => {
  const db = await app.db.current();
  const last = db.table(SUBSCRIPTIONS_TABLE).max('webhook_id as last').first();
  const { last: after } = ((await last) ?? {}) as { last?: number | null };
  const found = (await stale(db).where('id', '>', after ?? 0)) as Indexed[];
  for (const some of inChunks([...new Set([...idsOf(found), made])])) {
    await index(app, some);
    await nextTurn();
  }
};

/** Keeps the index with every write of a webhook, in its transaction, and forgets. To be called in `register`. */
export const keepSubscriptionIndex = (app: App): void => {
  const repair = async (): Promise<void> => {
    await subscribersOf(app).forget();
    await repairSubscriptionIndex(app);
  };
  const idOf = (result: unknown): number => Number((result as { id?: number } | null)?.id ?? 0);
  app.strapi.db.lifecycles.subscribe({
    models: [WEBHOOK],
    async afterCreate({ result }) {
      await subscribersOf(app).forget();
      await app.db.transaction(() => indexNew(app, idOf(result)));
    },
    async afterUpdate({ params, result }) {
      await subscribersOf(app).forget();
      if ((params.data as { events?: unknown } | undefined)?.events === undefined) return;
      await app.db.transaction(() => index(app, [idOf(result)]));
    },
    async afterDelete({ result }) {
      await subscribersOf(app).forget();
      const db = await app.db.current();
      await db
        .table(SUBSCRIPTIONS_TABLE)
        .where({ webhook_id: idOf(result) })
        .delete();
    },
    afterCreateMany: repair,
    afterUpdateMany: repair,
    afterDeleteMany: () => subscribersOf(app).forget(),
  });
};
