import type { Knex } from 'knex';
import { MODULE_IDS } from '../../../shared/contracts/modules';
import type { Webhook } from '../../../shared/contracts/webhooks';
import { rowsOf, type Statement } from '../database/connection';
import { qualified } from '../database/dialects/types';
import { enabledModules, storedModules } from '../modules/modules';
import { TimeSlice } from '../runtime/event-loop';
import { declarations, moduleOff } from './catalogue';
import { hasJournal } from './journal';
import { SUBSCRIPTIONS_TABLE, type WebhookRow, WEBHOOKS_TABLE } from './tables';
import { toWebhook } from './webhook';
import type { App } from '../app';
import type { Db } from '../database/db';

/** The webhooks that asked for each event, in the order in which they are given. */
const indexByEvent = (webhooks: readonly Webhook[]): ((event: string) => readonly Webhook[]) => {
  const byEvent = new Map<string, Webhook[]>();
  const ofEveryEvent: Webhook[] = [];
  for (const webhook of webhooks) {
    if (webhook.events.includes('*')) {
      for (const subscribers of [ofEveryEvent, ...byEvent.values()]) subscribers.push(webhook);
      continue;
    }
    for (const event of new Set(webhook.events)) {
      const subscribers = byEvent.get(event);
      if (subscribers) subscribers.push(webhook);
      else byEvent.set(event, [...ofEveryEvent, webhook]);
    }
  }
  return (event) => byEvent.get(event) ?? ofEveryEvent;
};

/** Who hears events, and which of them are sent at all. */
interface Hearers {
  webhooks: readonly Webhook[];
  hasHandlers: boolean;
  isJournalKept: boolean;
  /** Whether the module of an event is on. */
  isSent: (event: string) => boolean;
}

/** Who subscribed to some events, as the database had it at one moment; to be asked of those alone. */
export class Subscriptions {
  private readonly subscribers: (event: string) => readonly Webhook[];

  /** @param readAt when the database was asked, by `performance.now()` */
  constructor(
    private readonly events: ReadonlySet<string>,
    readonly readAt: number,
    private readonly hearers: Hearers
  ) {
    this.subscribers = indexByEvent(hearers.webhooks);
  }

  /** Whether it knows of all these events. */
  covers(events: readonly string[]): boolean {
    return events.every((event) => this.events.has(event));
  }

  /** Active webhooks that asked for the event, by their ids; none where its module is off. */
  subscribersOf(event: string): readonly Webhook[] {
    return this.hearers.isSent(event) ? this.subscribers(event) : [];
  }

  /** Whether handlers of `service_crm_webhook` hear the event; not where its module is off. */
  isListenedTo(event: string): boolean {
    return this.hearers.hasHandlers && this.hearers.isSent(event);
  }

  /** Whether the event is kept in the journal; not where its module is off. */
  isJournaled(event: string): boolean {
    return this.hearers.isJournalKept && this.hearers.isSent(event);
  }

  /** Whether the event reaches anybody: a webhook that asked for it, a handler that listens, the journal. */
  isSubscribed(event: string): boolean {
    return (
      this.isListenedTo(event) || this.isJournaled(event) || this.subscribersOf(event).length > 0
    );
  }
}

/** The most webhooks that one statement looks at: SQLite's driver reads all of them in one turn. */
const READ_AT_ONCE = 500;

/** A statement for so many events, whichever they are, and whatever the webhook after which is looked. */
interface BuiltStatement {
  sql: string;
  bindingsFor(events: readonly string[], after: number): readonly Knex.RawBinding[];
}

/**
 * The next webhooks that the index has for these events, and those that came after the last one of
 * the index without a lifecycle; each with the switches of the modules. `looked_at` is the webhook's
 * id; the rest of the row is null where it is not active, or is another site's.
 *
 * Where handlers listen, or the journal is kept, the switches are needed without any webhook, too:
 * there is then one row that has nothing else.
 */
const buildStatement = (db: Db, count: number, anyEvent: boolean): BuiltStatement => {
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
  const site = db.site.instance;
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
        ...[webhooks, true, site],
      ]
    )
    .toSQL();
  const bindingsFor: BuiltStatement['bindingsFor'] = (events, after) => [
    ...switches,
    ...events,
    after,
    after,
    true,
    site,
  ];
  return { sql, bindingsFor };
};

/** Every write runs one; building it would cost as much as running it. */
const built = (): Map<string, BuiltStatement> => new Map();

const statementAfter = (db: Db, app: App, events: readonly string[], after: number): Statement => {
  const statements = app.part(built);
  const anyEvent = app.hooks.hasListeners() || hasJournal(app);
  const key = `${anyEvent}/${events.length}`;
  const statement = statements.get(key) ?? buildStatement(db, events.length, anyEvent);
  statements.set(key, statement);
  return { sql: statement.sql, bindings: statement.bindingsFor(events, after) };
};

type Row = { [K in keyof WebhookRow]: WebhookRow[K] | null } & {
  looked_at: number | null;
  modules: string | null;
};

/** Looks at the webhooks after an id. */
type Look = (after: number) => Promise<unknown>;

/** Leaves the event loop now and then: a site may have thousands of webhooks. */
const readWebhooks = async (first: readonly Row[], look: Look): Promise<Webhook[]> => {
  const webhooks: Webhook[] = [];
  const slice = new TimeSlice();
  let rows: readonly Row[] = first;
  for (;;) {
    for (const row of rows) {
      if (row.id === null) continue;
      webhooks.push(toWebhook(row as WebhookRow));
      if (slice.isOver()) await slice.next();
    }
    if (rows.length < READ_AT_ONCE) return webhooks;
    rows = rowsOf(await look(Number(rows.at(-1)?.looked_at)));
  }
};

const toSubscriptions = async (
  app: App,
  events: readonly string[],
  { answer, readAt }: { answer: unknown; readAt: number },
  look: Look
): Promise<Subscriptions> => {
  const of = (webhooks: readonly Webhook[], isSent: (event: string) => boolean) =>
    new Subscriptions(new Set(events), readAt, {
      webhooks,
      hasHandlers: app.hooks.hasListeners(),
      isJournalKept: hasJournal(app),
      isSent,
    });
  const rows = rowsOf<Row>(answer);
  const enabled = enabledModules(rows[0]?.modules);
  if (!rows[0] || !enabled.has('webhooks')) return of([], () => false);
  // What belongs to which module matters only where one is off.
  const declared = enabled.size === MODULE_IDS.length ? {} : await declarations(app);
  const webhooks = await readWebhooks(rows, look);
  return of(webhooks, (event) => moduleOff(declared, event, enabled) === null);
};

/** Reads who subscribed to these events, on a connection or in a transaction. */
const loadSubscriptions = async (
  db: Db,
  app: App,
  events: readonly string[]
): Promise<Subscriptions> => {
  const look = (after: number): Promise<unknown> =>
    db.prepared(statementAfter(db, app, events, after));
  const readAt = performance.now();
  return toSubscriptions(app, events, { answer: await look(0), readAt }, look);
};

/**
 * Reads them on a connection of its own, with one statement: a second one could wait for the
 * connection of the very write that waits for it.
 * @throws where one statement does not read all webhooks
 */
const loadSubscriptionsApart = async (
  app: App,
  events: readonly string[]
): Promise<Subscriptions> => {
  const readAt = performance.now();
  const answer = await app.db.apart((db) => statementAfter(db, app, events, 0));
  return toSubscriptions(app, events, { answer, readAt }, () =>
    Promise.reject(new Error('There are more webhooks than one statement reads.'))
  );
};

/** Counts the changes of webhooks on this node: what was read before the last one is out of date. */
let revision = 0;

/** After a change of webhooks: the events to come of the same call or transaction must see it. */
export const forgetSubscriptions = (): void => {
  revision += 1;
};

/** Subscriptions that were asked for before a transaction, for that transaction to take over. */
export interface PrefetchedSubscriptions {
  readonly events: readonly string[];
  /** null once a transaction has taken it. */
  answer: Promise<Subscriptions> | null;
  readonly revision: number;
  /** When it was asked for, in milliseconds of the process's clock. */
  readonly at: number;
}

/** What was asked for longer ago is not used: another node may have changed webhooks meanwhile. */
const FRESH_MS = 100;

/**
 * Asks who subscribed on a connection of its own, for a write that is about to open its transaction:
 * on a database server the answer is there by the time the host has checked the write's data, and
 * the write is a round trip shorter. Never within a transaction: who holds a connection must not
 * wait for another one.
 */
export const prefetchSubscriptions = (
  app: App,
  events: readonly string[]
): PrefetchedSubscriptions => {
  const answer = loadSubscriptionsApart(app, events);
  // Should it fail, the write asks again in its transaction; perhaps nobody needs the answer.
  answer.catch(() => {});
  return { events, answer, revision, at: performance.now() };
};

const freshAnswer = (
  prefetched: PrefetchedSubscriptions | null,
  events: readonly string[]
): Promise<Subscriptions> | null =>
  prefetched?.revision === revision &&
  performance.now() - prefetched.at < FRESH_MS &&
  events.every((event) => prefetched.events.includes(event))
    ? prefetched.answer
    : null;

/** What a transaction has asked already. */
interface Answers {
  revision: number;
  known: { events: ReadonlySet<string>; answer: Promise<Subscriptions> }[];
}

/** A transaction reads them once for each kind of events, however many events it publishes. */
const byTransaction = new WeakMap<object, Answers>();

const answersOf = ({ knex }: Db): Answers => {
  let answers = byTransaction.get(knex);
  if (answers?.revision !== revision) {
    answers = { revision, known: [] };
    byTransaction.set(knex, answers);
  }
  return answers;
};

/**
 * Who subscribed to these events, as the current transaction sees it where there is one. It comes
 * from the database and never from memory: another node may have changed webhooks a moment ago.
 * @param prefetched is used instead, while it is fresh, and by one transaction only
 */
export const currentSubscriptions = async (
  app: App,
  events: readonly string[],
  prefetched: PrefetchedSubscriptions | null = null
): Promise<Subscriptions> => {
  const db = await app.db.current();
  const ahead = freshAnswer(prefetched, events);
  const asked = (ahead && prefetched?.events) ?? events;
  const ask = () => loadSubscriptions(db, app, asked);
  if (!app.db.inTransaction()) return ahead?.catch(ask) ?? ask();

  const { known } = answersOf(db);
  const same = known.find((one) => events.every((event) => one.events.has(event)));
  if (same) return same.answer;
  const answer = ahead?.catch(ask) ?? ask();
  if (prefetched && ahead) prefetched.answer = null;
  known.push({ events: new Set(asked), answer });
  return answer;
};
