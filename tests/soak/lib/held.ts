import { runSql } from '../../support/databases';

/** What was under a lease just after a kill: delivery ids, each with the token of its lease. */
export interface HeldThen {
  /** When the process was killed, epoch milliseconds. */
  at: number;
  leases: ReadonlyMap<string, string>;
}

/** Who holds what of these webhooks now. A lease whose end has passed counts until somebody takes the row. */
export const heldNow = async (
  databaseName: string,
  webhookIds: readonly number[],
  at: number
): Promise<HeldThen> => {
  const rows = await runSql(
    'postgres',
    databaseName,
    `SELECT document_id, owner FROM switchboard_deliveries
     WHERE webhook_id IN (${webhookIds.join(', ')}) AND due_at > 0 AND owner IS NOT NULL`
  );
  const leases = rows.map((row) => [String(row.document_id), String(row.owner)] as const);
  return { at, leases: new Map(leases) };
};

/**
 * What took longer than it may, from a kill until it was finished or somebody else had taken it over
 * (who may have been killed, too).
 * @param finishedAt of each delivery, epoch milliseconds
 */
export const heldTooLong = (
  snapshots: readonly HeldThen[],
  finishedAt: ReadonlyMap<string, number>,
  withinMs: number
): { id: string; ms: number }[] =>
  snapshots.flatMap(({ at, leases }) =>
    [...leases].flatMap(([id, owner]) => {
      const ms = (finishedAt.get(id) ?? Number.POSITIVE_INFINITY) - at;
      if (ms <= withinMs) return [];
      const isTakenOver = snapshots.some((later) => {
        const other = later.leases.get(id);
        const soon = later.at > at && later.at <= at + withinMs;
        return soon && other !== undefined && other !== owner;
      });
      return isTakenOver ? [] : [{ id, ms }];
    })
  );
