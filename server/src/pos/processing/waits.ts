import { findInChunks } from '../../database/written-rows';
import { debugEach, logFailure } from '../../runtime/text';
import { type ItemName, lookUpItems } from '../../stock/items';
import { ITEMS_TABLE } from '../../stock/tables';
import { markClosings } from '../closings';
import { groupOf, readConnections } from '../connections';
import { connectionWait, digestsOfMappings, itemWaits } from '../mappings';
import {
  POS_EVENTS_TABLE,
  POS_MAPPED_LINES_TABLE,
  POS_MAPPINGS_TABLE,
  POS_WAITS_TABLE,
  type PosEventRow,
  type WokenBy,
} from '../tables';
import { getRecordStore, wokenLine } from './record-store';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

const CHUNK = 500;

/** Puts the events that wait for one of these in the queue again, in the current transaction. */
export const wakeWaiting = async (tx: Tx, app: App, digests: readonly string[], by: WokenBy) => {
  const waits = await findInChunks<{ event_id: number }, string>(digests, (some) =>
    tx.table(POS_WAITS_TABLE).distinct('event_id').whereIn('digest', some)
  );
  const waiting = new Set(waits.map(({ event_id: id }) => Number(id)));
  // In one order everywhere: two that wake the same records do not wait for each other in a circle.
  const ids = [...waiting].sort((a, b) => a - b);
  const woken = await getRecordStore(app).bringForward(tx, ids, by);
  tx.onCommit(() => debugEach(app.strapi, woken, wokenLine));
};

/** Wakes now, committed with the cause, and again after the commit, for records that began to wait concurrently. */
export const twice = async <T>(tx: Tx, app: App, wake: (tx: Tx) => Promise<T>): Promise<T> => {
  const woken = await wake(tx);
  const failed = logFailure(app, 'waiting events were not woken');
  tx.onCommit(() => void app.detached(() => app.db.retrying(wake).catch(failed)));
  return woken;
};

/** A connection's map or group has changed: its records and those of its group are looked at again. */
export const wakeConnection = async (tx: Tx, app: App, id: number): Promise<void> => {
  const group = await groupOf(tx, id);
  const waits = [...group.keys()].map(connectionWait);
  await twice(tx, app, (now) => wakeWaiting(now, app, waits, 'connection'));
};

type Regrouped = Pick<PosEventRow, 'id' | 'connection_id' | 'mode' | 'occurred_ms'>;

/** Refunds, on all these connections, of sale ids that `connection` shares with one of the `others`. */
const regroupedRefunds = async (db: Db, connection: number, others: readonly number[]) => {
  if (others.length === 0) return [];
  const digests: string[] = await db
    .table(`${POS_EVENTS_TABLE} as own`)
    .join(`${POS_EVENTS_TABLE} as other`, 'other.family_digest', 'own.family_digest')
    .where('own.connection_id', connection)
    .whereIn('other.connection_id', [...others])
    .distinct()
    .pluck('own.family_digest');
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

/** Settles refunds again and compares closings after a connection, whose row is locked, changed groups. */
export const regroup = async (
  tx: Tx,
  app: App,
  connection: number,
  groups: readonly (string | null)[]
): Promise<void> => {
  const digests = groups.filter((group) => group !== null);
  const members = await readConnections(tx, [connection], digests, { lock: false });
  const ids = [...members.keys()];
  await tx
    .table(POS_EVENTS_TABLE)
    .whereIn('connection_id', ids)
    .where((any) => {
      any.whereNotNull('refunded').orWhereNotNull('money_left');
    })
    .update({ refunded: null, money_left: null });
  const others = ids.filter((id) => id !== connection);
  const refunds = await regroupedRefunds(tx, connection, others);
  const refundIds = refunds.map(({ id }) => Number(id));
  await getRecordStore(app).bringForward(tx, refundIds, 'connection');
  await markClosings(tx, app, refunds);
};

/** Items that are new, or known by another name: lines that wait for them apply by themselves. */
export const wakeForItems = (app: App, names: readonly ItemName[]): Promise<void> =>
  app.db.transaction(async (tx) => {
    const waits = [...names.flatMap(itemWaits), ...(await digestsOfMappings(tx, names))];
    await twice(tx, app, (now) => wakeWaiting(now, app, waits, 'item'));
  });

/** Known items that events still wait for, because no process saw the wake. */
const waitedForItems = async (tx: Tx, column: 'sku_digest' | 'gtin_digest'): Promise<string[]> =>
  tx
    .table(`${POS_WAITS_TABLE} as w`)
    .join(`${ITEMS_TABLE} as i`, `i.${column}`, 'w.digest')
    .whereNull('i.archived_at')
    .distinct()
    .pluck('w.digest');

/** As `waitedForItems`, for mappings; archived items do not count, and locations concern only their connection. */
const waitedForMappings = async (tx: Tx): Promise<string[]> =>
  tx
    .table(`${POS_WAITS_TABLE} as w`)
    .join(`${POS_MAPPINGS_TABLE} as m`, 'm.active_digest', 'w.inbox_digest')
    .leftJoin(`${ITEMS_TABLE} as i`, 'i.id', 'm.item_id')
    .whereNull('i.archived_at')
    .distinct()
    .pluck('w.digest');

/** Records of which a mapping still decides something that was undone. */
const undoneAndDecided = async (tx: Tx): Promise<number[]> => {
  const ids: number[] = await tx
    .table(`${POS_MAPPED_LINES_TABLE} as d`)
    .join(`${POS_MAPPINGS_TABLE} as m`, 'm.id', 'd.mapping_id')
    .whereNotNull('m.undone_at')
    .distinct()
    .pluck('d.event_id');
  return ids.map(Number).sort((a, b) => a - b);
};

/** Wakes events whose wake was lost because a process was killed. At the start of a node, and periodically. */
export const wakeKnown = (app: App): Promise<void> =>
  app.db.retrying(async (tx) => {
    const items = [
      ...(await waitedForItems(tx, 'sku_digest')),
      ...(await waitedForItems(tx, 'gtin_digest')),
    ];
    await wakeWaiting(tx, app, items, 'item');
    await wakeWaiting(tx, app, await waitedForMappings(tx), 'mapping');
    await getRecordStore(app).bringForward(tx, await undoneAndDecided(tx), 'mapping_undone');
  });

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
    await app.db.retrying(async (tx) => {
      const { lookup } = await lookUpItems(tx, app, names, 'adopt');
      const known = names.filter((name) => lookup(name) !== null);
      await wakeWaiting(tx, app, known.flatMap(itemWaits), 'item');
    });
  }
};

/** Wakes the records of a mapping that was undone. @returns their ids */
export const wakeMapped = async (tx: Tx, app: App, mapping: number): Promise<number[]> => {
  const decided: number[] = await tx
    .table(POS_MAPPED_LINES_TABLE)
    .distinct('event_id')
    .where({ mapping_id: mapping })
    .orderBy('event_id')
    .pluck('event_id');
  const ids = decided.map(Number);
  await getRecordStore(app).bringForward(tx, ids, 'mapping_undone');
  return ids;
};
