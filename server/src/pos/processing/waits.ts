import { findInChunks } from '../../database/written-rows';
import { withTransientRetry } from '../../database/retry';
import { debugLog, errorText } from '../../runtime/text';
import { type ItemName, lookUpItems } from '../../stock/items';
import { ITEMS_TABLE } from '../../stock/tables';
import { comparing, markClosings } from '../closings';
import { groupOf } from '../connections';
import { connectionWait, digestsOfMappings, itemWaits } from '../mappings';
import {
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_MAPPED_LINES_TABLE,
  POS_MAPPINGS_TABLE,
  POS_WAITS_TABLE,
  type PosEventRow,
  type WokenBy,
} from '../tables';
import { getRecordStore } from './record-store';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

export const wokenLine = (id: number): string => `POS event ${id} woken`;

const CHUNK = 500;

/** Puts the events that wait for one of these in the queue again, in the current transaction. */
export const wakeWaiting = async (
  db: Db,
  app: App,
  digests: readonly string[],
  by: WokenBy
): Promise<void> => {
  const waits = await findInChunks<{ event_id: number }, string>(digests, (some) =>
    db.table(POS_WAITS_TABLE).distinct('event_id').whereIn('digest', some)
  );
  const waiting = new Set(waits.map(({ event_id: id }) => Number(id)));
  // In one order everywhere: two that wake the same records do not wait for each other in a circle.
  const ids = [...waiting].sort((a, b) => a - b);
  const store = getRecordStore(app);
  const debug = debugLog(app.strapi);
  const woken = await store.bringForward(db, ids, by);
  if (ids.length === 0) return;
  app.db.afterCommit(() => {
    if (debug) for (const id of woken) debug(wokenLine(id));
    store.announce();
  });
};

/**
 * Wakes now, so that it is committed with its cause, and once more after the commit: a record that
 * was being applied meanwhile may have begun to wait without either side seeing the other.
 */
export const wakeTwice = async (
  db: Db,
  app: App,
  digests: readonly string[],
  by: WokenBy
): Promise<void> => {
  await wakeWaiting(db, app, digests, by);
  app.db.afterCommit(() => {
    getRecordStore(app).detached(async () => {
      try {
        await withTransientRetry(() =>
          app.db.transaction((tx) => wakeWaiting(tx, app, digests, by))
        );
      } catch (error) {
        app.log.error(`switchboard: waiting events were not woken: ${errorText(error)}`);
      }
    });
  });
};

/** A connection's map or group is another one: its records and those of its group look again. */
export const wakeConnection = async (db: Db, app: App, id: number): Promise<void> => {
  const group = await groupOf(db, id);
  await wakeTwice(db, app, [...group.keys()].map(connectionWait), 'connection');
};

type Regrouped = Pick<PosEventRow, 'id' | 'connection_id' | 'mode' | 'occurred_ms'>;

/**
 * Refunds whose sale may be another one now that a connection left or joined a group: of the ids of
 * sales that it has in common with one of the others, on all of them.
 */
const regroupedRefunds = async (
  db: Db,
  connection: number,
  others: readonly number[]
): Promise<Regrouped[]> => {
  if (others.length === 0) return [];
  const shared = db
    .table(`${POS_EVENTS_TABLE} as own`)
    .join(`${POS_EVENTS_TABLE} as other`, 'other.family_digest', 'own.family_digest')
    .where('own.connection_id', connection)
    .whereIn('other.connection_id', [...others])
    .distinct('own.family_digest');
  const digests = ((await shared) as { family_digest: string }[]).map(
    ({ family_digest: digest }) => digest
  );
  const refunds = await findInChunks<Regrouped, string>(digests, (some) =>
    db
      .table(POS_EVENTS_TABLE)
      .select('id', 'connection_id', 'mode', 'occurred_ms')
      .whereIn('family_digest', some)
      .whereIn('connection_id', [connection, ...others])
      .where({ kind: 'refund' })
  );
  return refunds.sort((a, b) => Number(a.id) - Number(b.id));
};

/**
 * A connection left or joined groups, so that refunds may belong to other sales: they are settled again,
 * the rest of sales is worked out then, and their closings are compared again. The connection's row is
 * locked by the transaction.
 */
export const regroup = async (
  db: Tx,
  app: App,
  connection: number,
  groups: readonly (string | null)[]
): Promise<void> => {
  const digests = groups.filter((group) => group !== null);
  const members = db
    .table(CONNECTIONS_TABLE)
    .select('id')
    .where((any) => {
      any.where({ id: connection });
      if (digests.length > 0) any.orWhereIn('group_digest', digests);
    });
  const ids = ((await members) as { id: number }[]).map(({ id }) => Number(id));
  await db
    .table(POS_EVENTS_TABLE)
    .whereIn('connection_id', ids)
    .where((any) => {
      any.whereNotNull('refunded').orWhereNotNull('money_left');
    })
    .update({ refunded: null, money_left: null });
  const others = ids.filter((id) => id !== connection);
  const store = getRecordStore(app);
  const refunds = await regroupedRefunds(db, connection, others);
  await store.bringForward(
    db,
    refunds.map(({ id }) => Number(id)),
    'connection'
  );
  const touched = refunds.map(({ connection_id: on, mode, occurred_ms: at }) => ({
    connection: Number(on),
    mode,
    at: Number(at),
  }));
  const isCompared = await markClosings(db, app, touched);
  if (refunds.length === 0) return;
  app.db.afterCommit(() => {
    store.announce();
    if (isCompared) comparing(app).wake();
  });
};

/** Items that are new, or known by another name: lines that wait for them apply by themselves. */
export const wakeForItems = (app: App, names: readonly ItemName[]): Promise<void> =>
  app.db.transaction(async (tx) => {
    const mapped = await digestsOfMappings(tx, names);
    await wakeTwice(tx, app, [...names.flatMap(itemWaits), ...mapped], 'item');
  });

/** Known items and mappings that events still wait for, because no process saw the wake. */
const knownAndWaitedFor = async (tx: Tx): Promise<{ items: string[]; mapped: string[] }> => {
  const joined = async (other: string, column: string): Promise<string[]> => {
    const query = tx
      .table(`${POS_WAITS_TABLE} as w`)
      .join(`${other} as o`, `o.${column}`, 'w.digest')
      .distinct('w.digest');
    if (other === ITEMS_TABLE) query.whereNull('o.archived_at');
    return ((await query) as { digest: string }[]).map(({ digest }) => digest);
  };
  // A mapping to an archived item holds for nobody; that of a location is waited for by its connection.
  const mappings = (await tx
    .table(`${POS_WAITS_TABLE} as w`)
    .join(`${POS_MAPPINGS_TABLE} as m`, 'm.active_digest', 'w.inbox_digest')
    .leftJoin(`${ITEMS_TABLE} as i`, 'i.id', 'm.item_id')
    .whereNull('i.archived_at')
    .distinct('w.digest')) as { digest: string }[];
  return {
    items: [
      ...(await joined(ITEMS_TABLE, 'sku_digest')),
      ...(await joined(ITEMS_TABLE, 'gtin_digest')),
    ],
    mapped: mappings.map(({ digest }) => digest),
  };
};

/** Records of which a mapping still decides something that was undone. */
const undoneAndDecided = async (tx: Tx): Promise<number[]> => {
  const rows = (await tx
    .table(`${POS_MAPPED_LINES_TABLE} as d`)
    .join(`${POS_MAPPINGS_TABLE} as m`, 'm.id', 'd.mapping_id')
    .whereNotNull('m.undone_at')
    .distinct('d.event_id')) as { event_id: number }[];
  return rows.map(({ event_id: id }) => Number(id)).sort((a, b) => a - b);
};

/**
 * Wakes events that wait for something that is known: the process that learnt it was killed between its
 * commit and its wake. So it is with what a mapping decided that was undone. For the start of a node and,
 * now and then, by the clock.
 */
export const wakeKnown = (app: App): Promise<void> =>
  withTransientRetry(() =>
    app.db.transaction(async (tx) => {
      const { items, mapped } = await knownAndWaitedFor(tx);
      await wakeWaiting(tx, app, items, 'item');
      await wakeWaiting(tx, app, mapped, 'mapping');
      const left = await undoneAndDecided(tx);
      await getRecordStore(app).bringForward(tx, left, 'mapping_undone');
      if (left.length > 0) app.db.afterCommit(getRecordStore(app).announce);
    })
  );

/** Names that events wait for, and the site's own products may have since. */
export const wakeForProducts = async (app: App): Promise<void> => {
  if (!app.options.stock) return;
  for (let after = ''; ;) {
    const db = await app.db.current();
    const rows = (await db
      .table(`${POS_WAITS_TABLE} as w`)
      .join(`${POS_EVENTS_TABLE} as e`, 'e.id', 'w.event_id')
      .select('w.digest')
      .min({ kind: 'w.kind', value: 'w.value' })
      .whereIn('w.kind', ['sku', 'gtin'])
      .where('w.digest', '>', after)
      // Test mode makes no items of products.
      .where('e.mode', 'live')
      .groupBy('w.digest')
      .orderBy('w.digest')
      .limit(CHUNK)) as { digest: string; kind: 'sku' | 'gtin'; value: string }[];
    const last = rows.at(-1);
    if (!last) return;
    after = last.digest;
    const names = rows.map(({ kind, value }) => ({
      sku: kind === 'sku' ? value : null,
      gtin: kind === 'gtin' ? value : null,
    }));
    await withTransientRetry(() =>
      app.db.transaction(async (tx) => {
        const { lookup } = await lookUpItems(tx, app, names, 'adopt');
        const known = names.filter((name) => lookup(name) !== null);
        await wakeWaiting(tx, app, known.flatMap(itemWaits), 'item');
      })
    );
  }
};

/** Wakes the records of a mapping that was undone, after their commit. */
export const wakeMapped = async (db: Db, app: App, mapping: number): Promise<number[]> => {
  const store = getRecordStore(app);
  const decided: number[] = await db
    .table(POS_MAPPED_LINES_TABLE)
    .distinct('event_id')
    .where({ mapping_id: mapping })
    .orderBy('event_id')
    .pluck('event_id');
  const ids = decided.map(Number);
  await store.bringForward(db, ids, 'mapping_undone');
  app.db.afterCommit(store.announce);
  return ids;
};
