import { createHash } from 'node:crypto';
import type { Knex } from 'knex';
import type { Subject, Webhook } from '../../../../shared/contracts/webhooks';
import { rowsOf } from '../../database/connection';
import { qualified } from '../../database/dialects/types';
import type { CappedClaim, LeaseCap, LeasedRow, LeasedRows } from '../../database/lease-types';
import { withTransientRetry } from '../../database/retry';
import { sparseColumn } from '../../database/tables/plain-tables';
import { nextTurn } from '../../runtime/event-loop';
import {
  DELIVERIES_TABLE,
  type DeliveryRow,
  LINE_ENDS_TABLE,
  PACES_TABLE,
  type WebhookRow,
  WEBHOOKS_TABLE,
} from '../tables';
import {
  allowance,
  freeAfter,
  freeAtMost,
  type KnownManners,
  type Manners,
  readManners,
} from './limits';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/**
 * When a delivery is due that is put aside: not in our time (the end of the year 9999). So it costs
 * the queue nothing, is found by the index the queue has, and `next_attempt_at` stays what it was.
 */
export const ASIDE_UNTIL = 253_402_300_799_999;
/** The same of one that waits for an earlier one of its record. */
export const HELD_UNTIL = ASIDE_UNTIL - 1000;

/**
 * Deliveries of a webhook that are about one record stand in a line, where the webhook's `ordering` is
 * `by_record`: only the first of a line that has not ended is sent. What a claim comes upon further
 * behind is held, due for nobody, so it costs no later look or claim anything. Whatever ends a
 * delivery notes its line in the same transaction, and the next claim lets the first of that line go.
 * Claims of such a webhook follow one another; what ends deliveries waits for none.
 *
 * Earlier is whose row has the lower id: writers of one record follow one another, so do their rows.
 */

/** What a table of ours has room for, and its index. */
const LONGEST = 255;
const ENDS_AT_ONCE = 500;

export type Line = string;

const nameOf = (row: Pick<DeliveryRow, 'subject_type' | 'subject_id'>): string =>
  `${row.subject_type}:${row.subject_id}`;

/** The line of a record. */
export const lineOf = ({ type, id }: Pick<Subject, 'type' | 'id'>): Line => {
  const named = nameOf({ subject_type: type, subject_id: id });
  return named.length <= LONGEST ? named : createHash('sha256').update(named).digest('hex');
};

/** The line of a delivery that was queued before it was to stand in one; null: it is about no record. */
export const lineOfRow = (
  row: Pick<DeliveryRow, 'subject_type' | 'subject_id' | 'status' | 'is_test'>
): Line | null => {
  const { subject_type: type, subject_id: id } = row;
  if (type === null || id === null || row.status !== 'pending' || row.is_test) return null;
  return lineOf({ type, id });
};

/** The webhook's column in the index of lines: MySQL knows sparse indexes by a column of their own. */
const webhookInLine = (app: App): string =>
  app.db.client === 'mysql' ? sparseColumn('webhook_id', 'line') : 'webhook_id';

/**
 * The first of a line that has not ended: of those that hold others, or of all. A sign before `due_at`
 * keeps it from being looked for by an index of due times, in which a long queue is one range.
 */
const firstOfLine = (app: App, holding: boolean): string =>
  `(SELECT p.id FROM ?? p WHERE p.${webhookInLine(app)} = d.webhook_id AND p.line = d.line
    AND +p.due_at < ${ASIDE_UNTIL} ${holding ? 'AND p.released_at IS NULL' : ''} ORDER BY p.id LIMIT 1)`;

/** Notes, in the transaction that ends or releases deliveries, that those after them may go. */
export const noteEnds = async (
  db: Db,
  ended: readonly { webhook: number; line: Line | null }[]
): Promise<void> => {
  const noted = new Map<string, { webhook_id: number; line: Line }>();
  for (const { webhook, line } of ended) {
    if (line !== null) noted.set(`${webhook}/${line}`, { webhook_id: webhook, line });
  }
  if (noted.size > 0) await db.insert(LINE_ENDS_TABLE, [...noted.values()]);
};

const deliveries = (db: Db): Knex.QueryBuilder => db.table(DELIVERIES_TABLE);

/** What is held becomes due again when it was. */
const letGo = (db: Db, ids: readonly number[], now: number) =>
  deliveries(db)
    .whereIn('id', [...ids])
    .andWhere({ due_at: HELD_UNTIL })
    .update({ due_at: db.raw('COALESCE(next_attempt_at, ?)', [now]), owner: null });

/**
 * Lets the first of each line go in which something has ended since the last claim, of some hundreds of
 * ends. @returns whether there are more
 */
const followEnds = async (tx: Tx, app: App, webhook: number, now: number): Promise<boolean> => {
  const name = qualified({ name: DELIVERIES_TABLE, schema: app.db.schema });
  const ends = (await tx
    .table(LINE_ENDS_TABLE)
    .where({ webhook_id: webhook })
    .orderBy('id')
    .limit(ENDS_AT_ONCE)
    .pluck('id')) as number[];
  if (ends.length === 0) return false;
  const found = rowsOf<{ holding: number | null; foremost: number | null }>(
    await tx.raw(
      `SELECT ${firstOfLine(app, true)} AS holding, ${firstOfLine(app, false)} AS foremost
       FROM ?? d WHERE d.id IN (${ends.map(() => '?').join(', ')})`,
      [name, name, qualifiedEnds(app), ...ends]
    )
  );
  const firsts = new Set(
    found.flatMap(({ holding, foremost }) => [holding, foremost]).flatMap((id) => id ?? [])
  );
  if (firsts.size > 0) await letGo(tx, [...firsts].map(Number), now);
  await tx.table(LINE_ENDS_TABLE).whereIn('id', ends).delete();
  return ends.length === ENDS_AT_ONCE;
};

const qualifiedEnds = (app: App): string =>
  qualified({ name: LINE_ENDS_TABLE, schema: app.db.schema });

/** A delivery that is due, as far as its place in a line goes. */
type Queued = Pick<
  DeliveryRow,
  'id' | 'due_at' | 'line' | 'subject_type' | 'subject_id' | 'status' | 'is_test'
>;

const QUEUED_COLUMNS = [
  'id',
  'due_at',
  'line',
  'subject_type',
  'subject_id',
  'status',
  'is_test',
] as const satisfies readonly (keyof Queued)[];

/** Puts deliveries into their lines: one statement for all but those whose names are too long. */
const standInLine = async (
  db: Db,
  rows: readonly Pick<Queued, 'id' | 'subject_type' | 'subject_id' | 'status' | 'is_test'>[]
): Promise<void> => {
  const named: number[] = [];
  for (const row of rows) {
    const line = lineOfRow(row);
    if (line === null) continue;
    if (line === nameOf(row)) named.push(Number(row.id));
    else await deliveries(db).where({ id: row.id }).update({ line });
  }
  if (named.length === 0) return;
  const isMysql = db.client === 'mysql';
  const name = isMysql
    ? "CONCAT(subject_type, ':', subject_id)"
    : "subject_type || ':' || subject_id";
  await deliveries(db)
    .whereIn('id', named)
    .update({ line: db.raw(name) });
};

/**
 * Of deliveries that are due and that the transaction has locked, those that are first in their lines;
 * the others are held.
 */
const holdBehind = async <Q extends Queued>(tx: Tx, app: App, due: readonly Q[]): Promise<Q[]> => {
  // Queued before the webhook had an order, or brought back after its end.
  await standInLine(
    tx,
    due.filter(({ line }) => line === null)
  );
  const inLine = due.filter((row) => (row.line ?? lineOfRow(row)) !== null);
  if (inLine.length === 0) return [...due];
  const name = qualified({ name: DELIVERIES_TABLE, schema: app.db.schema });
  const found = rowsOf<{ id: number; first: number | null }>(
    await tx.raw(
      `SELECT d.id AS id, ${firstOfLine(app, true)} AS first FROM ?? d
       WHERE d.id IN (${inLine.map(() => '?').join(', ')})`,
      [name, name, ...inLine.map(({ id }) => id)]
    )
  );
  const behind = new Set(
    found
      .filter(({ id, first }) => first !== null && Number(first) < Number(id))
      .map(({ id }) => Number(id))
  );
  if (behind.size > 0) {
    await deliveries(tx)
      .whereIn('id', [...behind])
      .update({ due_at: HELD_UNTIL, owner: null });
  }
  return due.filter(({ id }) => !behind.has(Number(id)));
};

/**
 * Takes up to `limit` deliveries of a webhook that has no order any more out of their lines, and lets
 * those go that are held. @returns how many
 */
const dissolveLines = async (
  tx: Tx,
  app: App,
  { webhook, now, limit }: { webhook: number; now: number; limit: number }
): Promise<number> => {
  const held = (await deliveries(tx)
    .where({ webhook_id: webhook, due_at: HELD_UNTIL })
    .limit(limit)
    .pluck('id')) as number[];
  if (held.length > 0) await letGo(tx, held, now);
  const others =
    held.length < limit
      ? ((await deliveries(tx)
          .where(webhookInLine(app), webhook)
          .whereNotNull('line')
          .whereNotIn('id', held)
          .limit(limit - held.length)
          .pluck('id')) as number[])
      : [];
  const ids = [...held, ...others];
  if (ids.length > 0) await deliveries(tx).whereIn('id', ids).update({ line: null });
  await tx.table(LINE_ENDS_TABLE).where({ webhook_id: webhook }).delete();
  return ids.length;
};

/** Notes every line of a webhook in which something is held and that is not noted yet, whatever may have ended there. */
const noteHeld = async (db: Db, app: App, webhook: number): Promise<void> => {
  const schema = app.db.schema;
  const name = qualified({ name: DELIVERIES_TABLE, schema });
  const ends = qualifiedEnds(app);
  await db.raw(
    `INSERT INTO ?? (webhook_id, line)
     SELECT DISTINCT webhook_id, line FROM ?? WHERE webhook_id = ? AND due_at = ? AND line IS NOT NULL
       AND line NOT IN (SELECT line FROM ?? WHERE webhook_id = ? AND line IS NOT NULL)`,
    [ends, name, webhook, HELD_UNTIL, ends, webhook]
  );
};

/** Forgets ends that no claim will follow: those of webhooks without an order. */
const forgetEnds = async (db: Db): Promise<void> => {
  const ordered = db.table(WEBHOOKS_TABLE).select('id').where({ ordering: 'by_record' });
  await db.table(LINE_ENDS_TABLE).whereNotIn('webhook_id', ordered).delete();
};

/** Rows that are looked at in one transaction, and transactions of one claim: many may have to be held. */
const LOOKED_AT_ONCE = 200;
const LOOKS_OF_A_CLAIM = 10;
/** No other look begins after that: what the first ones have leased waits for it. */
const LOOKING_MS = 100;

interface Pace {
  id: number;
  free_at: number | string | null;
}

/**
 * Runs work while nobody else claims of that webhook, on whichever node. In a transaction of its own
 * that sees what others have committed until each statement.
 */
const inTurnOf = <T>(
  app: App,
  webhook: number,
  work: (tx: Tx, pace: Pace) => Promise<T>
): Promise<T> =>
  app.db.retrying(async (tx) => {
    const isSqlite = tx.client === 'sqlite';
    const own = () => tx.table(PACES_TABLE).where({ webhook_id: webhook });
    // SQLite locks nothing but the database, and that with the first write.
    if (isSqlite) await own().update({ webhook_id: webhook });
    const locked = () =>
      (isSqlite ? own() : own().forUpdate()).first() as Promise<Pace | undefined>;
    let pace = await locked();
    if (!pace) {
      await tx
        .table(PACES_TABLE)
        .insert({ webhook_id: webhook, free_at: 0 })
        .onConflict('webhook_id')
        .ignore();
      pace = (await locked()) as Pace;
    }
    return work(tx, pace);
  });

interface CarefulClaim extends CappedClaim<LeasedRow> {
  /** When more may be claimed, epoch milliseconds, where it is not for want of rows; else null. */
  againAt: number | null;
}

const NOTHING: CarefulClaim = { leases: [], isFull: false, againAt: null };

interface Wanted {
  webhook: number;
  limit: number;
  /** How many may be leased at once over all nodes; null: as many as there are. */
  cap: LeaseCap | null;
}

/**
 * Claims of webhooks that have a rate or an order, which both hold over all nodes: claims of one
 * webhook follow one another, and each takes what its rate allows now and only what is first in its
 * line. Other webhooks are claimed of without it.
 */
export const createCarefulClaims = (app: App, leased: LeasedRows, known: KnownManners) => {
  const dueRows = (tx: Db, webhook: number, limit: number): Promise<Queued[]> => {
    const due = tx
      .table(DELIVERIES_TABLE)
      .select(QUEUED_COLUMNS)
      .where({ webhook_id: webhook })
      .where('due_at', '<=', leased.now())
      .orderBy([{ column: 'due_at' }, { column: 'id' }])
      .limit(limit);
    return (app.db.client === 'sqlite' ? due : due.forUpdate().skipLocked()) as unknown as Promise<
      Queued[]
    >;
  };

  /** @returns `isMore` where it has not looked at everything that is due. */
  const takeSome = async (
    tx: Tx,
    webhook: number,
    room: number,
    { isOrdered }: Manners
  ): Promise<{ leases: LeasedRow[]; isMore: boolean }> => {
    const atOnce = isOrdered ? Math.max(room, LOOKED_AT_ONCE) : room;
    const due = await dueRows(tx, webhook, atOnce);
    const free = isOrdered ? await holdBehind(tx, app, due) : due;
    const chosen = free
      .slice(0, room)
      .map(({ id, due_at: dueAt }) => ({ id: Number(id), dueAt: Number(dueAt) }));
    const leases = chosen.length > 0 ? await leased.lease(tx, chosen) : [];
    return { leases, isMore: due.length === atOnce };
  };

  const claimSome = ({ webhook, limit, cap }: Wanted): Promise<CarefulClaim> =>
    inTurnOf(app, webhook, async (tx, pace) => {
      const manners = await readManners(tx, webhook);
      known.note(webhook, manners);
      const { ratePerSecond, concurrency, isOrdered, pausedUntil } = manners;
      if (pausedUntil > leased.now()) return NOTHING;
      const atOnce = cap && (concurrency ?? cap.atOnce);
      const left =
        atOnce === null
          ? Number.POSITIVE_INFINITY
          : atOnce - (await leased.countLeased(tx, webhook, cap?.except ?? []));
      if (left <= 0) return { ...NOTHING, isFull: true };
      const at = leased.now();
      const free = Number(pace.free_at);
      const freeAt = ratePerSecond === null ? free : freeAtMost(ratePerSecond, free, at * 1000);
      const allowed = ratePerSecond === null ? null : allowance(ratePerSecond, freeAt, at * 1000);
      const paced = allowed?.attempts ?? Number.POSITIVE_INFINITY;
      const setFree = (time: number) =>
        tx.table(PACES_TABLE).where({ id: pace.id }).update({ free_at: time });
      if (freeAt !== free) await setFree(freeAt);
      if (allowed && paced === 0) return { ...NOTHING, againAt: Math.ceil(allowed.from / 1000) };
      const isMoreToFollow = isOrdered && (await followEnds(tx, app, webhook, at));
      const room = Math.min(limit, left, paced);
      const { leases, isMore } = await takeSome(tx, webhook, room, manners);
      let againAt = isMoreToFollow || (isMore && leases.length < room) ? at : null;
      if (allowed && leases.length > 0) {
        const nextAt = freeAfter(allowed, leases.length);
        await setFree(nextAt);
        if (leases.length === paced) againAt = Math.ceil(nextAt / 1000);
      }
      return { leases, isFull: leases.length === left, againAt };
    });

  return async (wanted: Wanted): Promise<CarefulClaim> => {
    const leases: LeasedRow[] = [];
    const until = performance.now() + LOOKING_MS;
    for (let look = 1; ; look += 1) {
      const some = await claimSome({ ...wanted, limit: wanted.limit - leases.length });
      leases.push(...some.leases);
      const goesOn =
        some.againAt !== null && some.againAt <= leased.now() && leases.length < wanted.limit;
      const isLast = look >= LOOKS_OF_A_CLAIM || performance.now() >= until;
      if (!goesOn || some.isFull || isLast) return { ...some, leases };
    }
  };
};

const COLUMNS = [
  'id',
  'status',
  'is_test',
  'error',
  'created_at',
  'line',
  'subject_type',
  'subject_id',
] as const;

type PendingRow = Pick<DeliveryRow, (typeof COLUMNS)[number]>;

const AT_ONCE = 500;

type Part = 'failing' | 'untried';

/**
 * What follows a row in the order of the log's index, as stretches of it: those of the same time, those of
 * later ones, and those with other causes.
 */
const stretchesAfter = (
  rows: () => Knex.QueryBuilder,
  part: Part,
  last: PendingRow | undefined
): Knex.QueryBuilder[] => {
  if (part === 'untried') {
    const untried = () => rows().whereNull('error').orderBy(['created_at', 'id']);
    if (!last) return [untried()];
    const { id, created_at: at } = last;
    return [
      untried().where('created_at', at).where('id', '>', id),
      untried().where('created_at', '>', at),
    ];
  }
  const failing = () => rows().orderBy(['error', 'created_at', 'id']);
  if (!last) return [failing().whereNotNull('error')];
  const { id, created_at: at, error } = last;
  const same = () => failing().where('error', error);
  return [
    same().where('created_at', at).where('id', '>', id),
    same().where('created_at', '>', at),
    failing().where('error', '>', error),
  ];
};

/**
 * What of a webhook is not finished, tests left out, some hundreds of rows at a time: first what has failed,
 * then what was never tried, the oldest first.
 */
async function* pendingPages(app: App, webhook: number): AsyncGenerator<PendingRow[]> {
  const db = await app.db.current();
  const rows = () =>
    db
      .table(DELIVERIES_TABLE)
      .select(...COLUMNS)
      .where({ webhook_id: webhook, status: 'pending', is_test: false });
  for (const part of ['failing', 'untried'] as const) {
    for (let last: PendingRow | undefined; ;) {
      const page: PendingRow[] = [];
      for (const stretch of stretchesAfter(rows, part, last)) {
        if (page.length === AT_ONCE) break;
        const found: PendingRow[] = await withTransientRetry(async () =>
          stretch.clone().limit(AT_ONCE - page.length)
        );
        page.push(...found);
      }
      yield page;
      if (page.length < AT_ONCE) break;
      last = page.at(-1);
      await nextTurn();
    }
  }
}

/** Webhooks with deliveries that are due at that time. */
export const webhooksDueAt = async (
  db: Db,
  dueAt: number
): Promise<Pick<WebhookRow, 'id' | 'active' | 'ordering'>[]> => {
  const due = db
    .table(`${DELIVERIES_TABLE} as d`)
    .select('d.id')
    .whereRaw('?? = ??', ['d.webhook_id', 'w.id'])
    .where('d.due_at', dueAt);
  return (await db
    .table(`${WEBHOOKS_TABLE} as w`)
    .whereExists(due)
    .select('w.id', 'w.active', 'w.ordering')) as Pick<WebhookRow, 'id' | 'active' | 'ordering'>[];
};

/** Brings what waits into line with the order of its webhook. */
interface Reordering {
  /** When it answers, what had been queued before goes by the webhook's new order. */
  reorder(webhook: Webhook): Promise<void>;
  /** What a process left that died, and what was ended without a word, of all webhooks. */
  reorderLeft(): Promise<void>;
}

export const createReordering = (app: App, leased: LeasedRows): Reordering => {
  const form = async (webhook: number): Promise<void> => {
    for await (const page of pendingPages(app, webhook)) {
      const outside = page.filter(({ line }) => line === null);
      await withTransientRetry(async () => standInLine(await app.db.current(), outside));
    }
  };

  const dissolve = async (webhook: number): Promise<void> => {
    for (;;) {
      const gone = await inTurnOf(app, webhook, async (tx) =>
        dissolveLines(tx, app, { webhook, now: leased.now(), limit: AT_ONCE })
      );
      if (gone < AT_ONCE) return;
      await nextTurn();
    }
  };

  return {
    reorder: ({ id, ordering }) => (ordering === 'by_record' ? form(id) : dissolve(id)),

    async reorderLeft() {
      const db = await app.db.current();
      const ordered = (await db
        .table(WEBHOOKS_TABLE)
        .where({ ordering: 'by_record' })
        .orderBy('id')
        .pluck('id')) as number[];
      for (const id of ordered) await form(Number(id));
      for (const row of await webhooksDueAt(db, HELD_UNTIL)) {
        const id = Number(row.id);
        if (row.ordering !== 'by_record') await dissolve(id);
        // One that is off is looked at again once it is on.
        else if (row.active) await withTransientRetry(() => noteHeld(db, app, id));
      }
      await withTransientRetry(() => forgetEnds(db));
    },
  };
};
