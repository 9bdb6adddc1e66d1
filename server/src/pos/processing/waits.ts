import type { Core } from '@strapi/strapi';
import {
  afterCommit,
  currentExecutor,
  type Executor,
  inTransaction,
  table,
} from '../../database/connection';
import { debugLog } from '../../runtime/debug-log';
import { errorText } from '../../runtime/error-text';
import type { ItemName } from '../../stock/items';
import { insertRows } from '../../database/insert-rows';
import { wokenLine } from '../debug-lines';
import { digestsOfMappings } from '../mapping/mappings';
import { connectionWait, itemWaits, joinWaits } from '../mapping/wait';
import type { ProcessingContext } from './processing-context';
import { getRecordStore } from './record-store';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_WAITS_TABLE,
} from '../tables';

/** Puts the events that wait for one of these in the queue again, in the current transaction. */
export const wakeWaiting = async (
  strapi: Core.Strapi,
  executor: Executor,
  digests: readonly string[]
): Promise<void> => {
  if (digests.length === 0) return;
  const waits = (await table(strapi, executor, POS_WAITS_TABLE)
    .distinct('event_id')
    .whereIn('digest', [...digests])) as { event_id: number }[];
  const ids = waits.map(({ event_id: id }) => Number(id));
  const store = getRecordStore(strapi);
  const debug = debugLog(strapi);
  const woken = await store.bringForward(executor, ids, debug !== null);
  if (ids.length === 0) return;
  afterCommit(strapi, () => {
    if (debug) for (const id of woken) debug(wokenLine(id));
    store.announce();
  });
};

/**
 * Wakes now, so that it is committed with its cause, and once more after the commit: a record that
 * was being applied meanwhile may have begun to wait without either side seeing the other.
 */
export const wakeTwice = async (
  strapi: Core.Strapi,
  executor: Executor,
  digests: readonly string[]
): Promise<void> => {
  await wakeWaiting(strapi, executor, digests);
  afterCommit(strapi, () => {
    getRecordStore(strapi).detached(async () => {
      try {
        await inTransaction(strapi, ({ trx }) => wakeWaiting(strapi, trx, digests));
      } catch (error) {
        strapi.log.error(`switchboard: waiting events were not woken: ${errorText(error)}`);
      }
    });
  });
};

/** A connection's map or group is another one: its records and those of its group look again. */
export const wakeConnection = async (
  strapi: Core.Strapi,
  executor: Executor,
  id: number
): Promise<void> => {
  const row = (await table(strapi, executor, CONNECTIONS_TABLE).where({ id }).first()) as
    ConnectionRow | undefined;
  const members =
    row === undefined || row.group_digest === null
      ? [{ id }]
      : ((await table(strapi, executor, CONNECTIONS_TABLE)
          .select('id')
          .where({ group_digest: row.group_digest })) as { id: number }[]);
  await wakeTwice(
    strapi,
    executor,
    members.map((member) => connectionWait(Number(member.id)))
  );
};

/**
 * Connections left or joined a group, so that refunds may belong to other sales: what their sales
 * have left is worked out anew at the next refund.
 */
export const forgetLeft = async (
  strapi: Core.Strapi,
  executor: Executor,
  connection: number,
  groups: readonly (string | null)[]
): Promise<void> => {
  const digests = groups.filter((group) => group !== null);
  const members = table(strapi, executor, CONNECTIONS_TABLE)
    .select('id')
    .where((any) => {
      any.where({ id: connection });
      if (digests.length > 0) any.orWhereIn('group_digest', digests);
    });
  const ids = ((await members) as { id: number }[]).map(({ id }) => Number(id));
  await table(strapi, executor, POS_EVENTS_TABLE)
    .whereIn('connection_id', ids)
    .where((any) => {
      any.whereNotNull('refunded').orWhereNotNull('money_left');
    })
    .update({ refunded: null, money_left: null });
};

/** Items that are new, or known by another name: lines that wait for them apply by themselves. */
export const wakeForItems = (strapi: Core.Strapi, names: readonly ItemName[]): Promise<void> =>
  inTransaction(strapi, async ({ trx }) => {
    const mapped = await digestsOfMappings(strapi, trx, names);
    await wakeTwice(strapi, trx, [...names.flatMap(itemWaits), ...mapped]);
  });

/** Replaces what events wait for. */
export const storeWaits = async (
  strapi: Core.Strapi,
  trx: Executor,
  works: readonly Pick<ProcessingContext, 'id' | 'row' | 'waits'>[],
  /** Those that may have waited before; a new event has no rows to remove. */
  processedBefore: readonly number[]
): Promise<void> => {
  if (processedBefore.length > 0) {
    await table(strapi, trx, POS_WAITS_TABLE)
      .whereIn('event_id', [...processedBefore])
      .delete();
  }
  const rows = works.flatMap(({ id, row, waits }) =>
    joinWaits(waits).map(({ digest, kind, value, inbox, pieces }) => ({
      event_id: id,
      digest,
      kind,
      value,
      inbox_digest: inbox,
      connection_id: Number(row.connection_id),
      pieces,
      at: Number(row.received_at),
    }))
  );
  await insertRows(strapi, trx, POS_WAITS_TABLE, rows);
};

/** Has events looked at again whose waits an older version wrote: the inbox does not know them. */
export const renewOldWaits = async (strapi: Core.Strapi): Promise<void> => {
  const executor = await currentExecutor(strapi);
  const old = (await table(strapi, executor, POS_WAITS_TABLE)
    .distinct('event_id')
    .whereNull('kind')) as { event_id: number }[];
  const ids = old.map(({ event_id: id }) => Number(id));
  await getRecordStore(strapi).bringForward(executor, ids, false);
};
