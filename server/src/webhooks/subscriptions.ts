import type { Knex } from 'knex';
import { MODULE_IDS } from '../../../shared/contracts/modules';
import type { Webhook } from '../../../shared/contracts/webhooks';
import { rowsOf, type Statement } from '../database/connection';
import { qualified } from '../database/dialects/shared';
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
   * @param readAt when the database was asked, by `performance.now()`
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
}

/** The most webhooks that one statement looks at: SQLite's driver reads all of them in one turn. */
const READ_AT_ONCE = 500;

/**
 * The next webhooks that the index has for these events, and those that came after the last one of the
 * index without a lifecycle; each with the switches of the modules. `looked_at` is the webhook's id; the
 * rest of the row is null if it is not active, or is another site's.
 *
 * If handlers listen, or the journal is kept, the switches are needed without any webhook, too: there is
 * then one row that has nothing else.
 * @returns a statement for so many events, with the bindings of its first part
 */
const buildStatement = (db: Db, count: number, anyEvent: boolean) => {
  const schema = db.schema;
  const subscriptions = qualified({ name: SUBSCRIPTIONS_TABLE, schema });
  const webhooks = qualified({ name: WEBHOOKS_TABLE, schema });
  const modules = storedModules(db).toSQL();
  const switches = modules.bindings as Knex.RawBinding[];
  // PostgreSQL takes a third of all webhooks for newer than the index, and reads the table for that, and
  // again to join it. So it asks first whether there is any, and steps from each that matches into the key.
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
 * Reads who subscribed to these events, in slices: a site may have thousands of webhooks.
 * @param ask runs a statement; the first one is asked before this returns
 * @throws if it is to be one statement, and one does not read all webhooks
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

/**
 * How long an answer is used after it was asked for. A change of webhooks or modules is answered that much after
 * its commit where other processes run (`nodes.ts`): whatever is written after that has heard of it.
 */
export const REMEMBERED_MS = 500;

/** An older answer is asked for again, beside the writes that still use it. */
const REFRESH_MS = 250;

/** Who subscribed to some events, as one question to the database has it. */
export interface AskedSubscriptions {
  readonly events: readonly string[];
  readonly answer: Promise<Subscriptions>;
  /** Of the changes in this process, as it was asked. */
  readonly revision: number;
  /** When it was asked, by `performance.now()`. */
  readonly at: number;
  isAnswered?: boolean;
  isRefreshing?: boolean;
}

/** What this process remembers of subscribers. */
class Memory {
  /** Counts the changes of webhooks and modules in this process: what was asked before the last one is out of date. */
  revision = 0;
  /** By `performance.now()`: until then, others wait for what this process remembers. */
  until = 0;
  /** As many as a site has kinds of writes. */
  readonly asked = new Map<string, AskedSubscriptions>();

  isFresh({ at, revision }: AskedSubscriptions, forMs = REMEMBERED_MS): boolean {
    return revision === this.revision && performance.now() - at < forMs;
  }
}

const makeMemory = (): Memory => new Memory();
const memoryOf = (app: App): Memory => app.part(makeMemory);

/** Says until when other processes wait for what this one remembers, by `performance.now()`. */
export const rememberUntil = (app: App, until: number): void => {
  memoryOf(app).until = until;
};

/** Transactions that have changed webhooks or modules: nobody else sees that before they commit. */
const changing = new WeakSet<object>();

/** To be called with each change of webhooks or modules in this process, in its transaction. */
export const forgetSubscriptions = async (app: App): Promise<void> => {
  const memory = memoryOf(app);
  if (app.db.inTransaction()) changing.add((await app.db.current()).knex);
  memory.revision += 1;
  // Whoever has asked in between has not heard of it.
  app.db.afterCommit(() => void (memory.revision += 1));
};

/** With one statement: a second one could wait for the connection of the very write that waits for it. */
const askApart = (app: App, events: readonly string[]): AskedSubscriptions => {
  const { revision } = memoryOf(app);
  const at = performance.now();
  const answer = load(app, events, (statement) => app.db.apart(statement), true);
  const asked: AskedSubscriptions = { events, answer, revision, at };
  // Should it fail, the write asks again in its transaction; perhaps nobody needs the answer.
  answer.then(
    () => (asked.isAnswered = true),
    () => {}
  );
  return asked;
};

const keyOf = (app: App, events: readonly string[]): string =>
  JSON.stringify([app.hooks.hasListeners(), events]);

/** What another write has asked a moment ago; asked again in time, beside the writes. */
const recall = (app: App, events: readonly string[]): AskedSubscriptions | null => {
  const memory = memoryOf(app);
  const key = keyOf(app, events);
  const known = memory.asked.get(key);
  if (!known || performance.now() > memory.until || !memory.isFresh(known)) return null;
  if (!known.isRefreshing && !memory.isFresh(known, REFRESH_MS)) {
    known.isRefreshing = true;
    const next = app.detached(() => askApart(app, events));
    void next.answer.then(
      () => memory.asked.set(key, next),
      () => {}
    );
  }
  return known;
};

/**
 * Who subscribed to these events, for a write that is about to open its transaction: as it was asked a moment
 * ago, or asked now on a connection of its own. On a database server that answer is there when the host has checked
 * the write's data, a round trip sooner. Never within a transaction: who holds a connection must not wait for
 * another one.
 * @returns null where nobody waits for what this process remembers
 */
export const prefetchSubscriptions = (
  app: App,
  events: readonly string[]
): AskedSubscriptions | null => {
  const memory = memoryOf(app);
  const recalled = recall(app, events);
  if (recalled || performance.now() > memory.until) return recalled;
  const asked = askApart(app, events);
  memory.asked.set(keyOf(app, events), asked);
  return asked;
};

/** A transaction's earlier answers, one for each kind of events, by its knex. */
const byTransaction = new WeakMap<object, AskedSubscriptions[]>();

/**
 * The subscribers of these events: as a question less than half a second ago had them, or as the current
 * transaction sees them if it has changed webhooks itself.
 * @param prefetched what was asked before the transaction was opened
 */
export const currentSubscriptions = async (
  app: App,
  events: readonly string[],
  prefetched: AskedSubscriptions | null = null
): Promise<Subscriptions> => {
  const db = await app.db.current();
  const memory = memoryOf(app);
  const isUsable = (one: AskedSubscriptions): boolean =>
    memory.isFresh(one) && events.every((event) => one.events.includes(event));
  const ahead = prefetched && isUsable(prefetched) ? prefetched : recall(app, events);
  // What another write asks may wait for the connection that this transaction holds.
  const isAtHand = ahead === prefetched || ahead?.isAnswered === true;
  const known = isAtHand && !changing.has(db.knex) ? ahead : null;
  const wanted = known?.events ?? events;
  const ask = () => load(app, wanted, (statement) => db.prepared(statement));
  if (!app.db.inTransaction()) return known?.answer.catch(ask) ?? ask();

  const answers = (byTransaction.get(db.knex) ?? []).filter((one) => memory.isFresh(one));
  const same = answers.find(isUsable);
  if (same) return same.answer;
  const answer = known?.answer.catch(ask) ?? ask();
  const { at, revision } = known ?? { at: performance.now(), revision: memory.revision };
  byTransaction.set(db.knex, [...answers, { events: wanted, answer, at, revision }]);
  return answer;
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
/** Longer than any name of an event may be. */
const LONGEST_NAME = 255;

type Indexed = Pick<WebhookRow, 'id' | 'events'>;

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

/** Takes away what webhooks chose once. By ids, so that nothing is locked but that. */
const removeLeft = async (
  db: Db,
  ids: readonly number[],
  chosen: readonly Subscription[]
): Promise<void> => {
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
 * Brings the rows of some webhooks up to date, in the current transaction. Any number of writers and
 * sweeps may do so at once: each has its webhooks locked while it reads what they chose, and a row that
 * is there already is as good as one that is inserted.
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
  await db
    .table(WEBHOOKS_TABLE)
    .whereIn(
      'id',
      locked.map(({ id }) => id)
    )
    .update({ indexed_id: knex.ref('id'), indexed_events: knex.ref('events') });
};

/** Webhooks whose events were written by somebody who does not know the index, copies of rows included. */
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
    const ids = some.map(({ id }) => Number(id));
    await app.db.retrying(() => index(app, ids));
    await nextTurn();
  }
};

/**
 * A webhook that was made just now, and those that came before it without a lifecycle: an event looks
 * for such ones behind the last one of the index alone. One that was made after it may be there already.
 */
const indexNew = async (app: App, made: number): Promise<void> => {
  const db = await app.db.current();
  const last = db.table(SUBSCRIPTIONS_TABLE).max('webhook_id as last').first();
  const { last: after } = ((await last) ?? {}) as { last?: number | null };
  const found = (await stale(db).where('id', '>', after ?? 0)) as Indexed[];
  const ids = [...new Set([...found.map(({ id }) => Number(id)), made])];
  for (const some of inChunks(ids)) {
    await index(app, some);
    await nextTurn();
  }
};

/** Keeps the index with every write of a webhook, in its transaction, and forgets. To be called in `register`. */
export const keepSubscriptionIndex = (app: App): void => {
  const repair = async (): Promise<void> => {
    await forgetSubscriptions(app);
    await repairSubscriptionIndex(app);
  };
  const idOf = (result: unknown): number => Number((result as { id?: number } | null)?.id ?? 0);
  app.strapi.db.lifecycles.subscribe({
    models: [WEBHOOK],
    async afterCreate({ result }) {
      await forgetSubscriptions(app);
      await app.db.transaction(() => indexNew(app, idOf(result)));
    },
    async afterUpdate({ params, result }) {
      await forgetSubscriptions(app);
      if ((params.data as { events?: unknown } | undefined)?.events === undefined) return;
      await app.db.transaction(() => index(app, [idOf(result)]));
    },
    async afterDelete({ result }) {
      await forgetSubscriptions(app);
      const db = await app.db.current();
      await db
        .table(SUBSCRIPTIONS_TABLE)
        .where({ webhook_id: idOf(result) })
        .delete();
    },
    afterCreateMany: repair,
    afterUpdateMany: repair,
    afterDeleteMany: () => forgetSubscriptions(app),
  });
};
