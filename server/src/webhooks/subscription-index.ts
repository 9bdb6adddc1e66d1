import type { Knex } from 'knex';
import type { PlainTable } from '../database/tables/plain-tables';
import { nextTurn } from '../runtime/event-loop';
import { chosenEvents } from './webhook';
import { SUBSCRIPTIONS_TABLE, WEBHOOK, WEBHOOKS_TABLE, type WebhookRow } from './tables';
import type { App } from '../app';
import type { Db } from '../database/db';

/**
 * Which webhooks to look at for an event: a row an event that a webhook chose, `*` among them. What
 * the webhook's own `events` say is what counts; a row too many costs a look and nothing else.
 */
export const subscriptionsTable: PlainTable = {
  tableName: SUBSCRIPTIONS_TABLE,
  attributes: {
    id: { type: 'increments' },
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
  const column = (name: string): Knex.Ref<string, Record<string, string>> =>
    (db.knex as Knex).ref(name);
  await db
    .table(WEBHOOKS_TABLE)
    .whereIn(
      'id',
      locked.map(({ id }) => id)
    )
    .update({ indexed_id: column('id'), indexed_events: column('events') });
};

/** Webhooks whose events were written by somebody who does not know the index, copies of rows included. */
const stale = (db: Db): Knex.QueryBuilder =>
  webhooks(db).where((either) => {
    either
      .whereNull('indexed_id')
      .orWhereNot('indexed_id', db.knex.ref('id'))
      .orWhere((came) => {
        came.whereNull('indexed_events').whereNotNull('events');
      })
      .orWhere((went) => {
        went.whereNotNull('indexed_events').whereNull('events');
      })
      .orWhereNot('indexed_events', db.knex.ref('events'));
  });

/**
 * Brings the index up to date where a webhook came or changed without a lifecycle: an import, a node
 * of an earlier version, a statement of somebody's own. To be called at boot and by the clock.
 */
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

const forget = async (app: App, id: number): Promise<void> => {
  const db = await app.db.current();
  await db.table(SUBSCRIPTIONS_TABLE).where({ webhook_id: id }).delete();
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
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    if (at > 0) await nextTurn();
    await index(app, ids.slice(at, at + AT_ONCE));
  }
};

/** Keeps the index with every write of a webhook, in its transaction. To be called in `register`. */
export const keepSubscriptionIndex = (app: App): void => {
  const repair = (): Promise<void> => repairSubscriptionIndex(app);
  const idOf = (result: unknown): number => Number((result as { id?: number } | null)?.id ?? 0);
  app.strapi.db.lifecycles.subscribe({
    models: [WEBHOOK],
    afterCreate: ({ result }) => app.db.transaction(() => indexNew(app, idOf(result))),
    async afterUpdate({ params, result }) {
      if ((params.data as { events?: unknown } | undefined)?.events === undefined) return;
      await app.db.transaction(() => index(app, [idOf(result)]));
    },
    afterDelete: ({ result }) => forget(app, idOf(result)),
    afterCreateMany: repair,
    afterUpdateMany: repair,
  });
};
