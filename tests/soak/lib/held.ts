import { runSql } from '../../support/databases';

export interface HeldLease {
  /** Its token. */
  owner: string;
  /** When it ends, epoch milliseconds of the database's clock; its holder prolongs it as long as it lives. */
  until: number;
}

/** What was under a lease just after a kill: delivery ids, each with its lease. */
export interface HeldThen {
  /** When the process was killed, epoch milliseconds. */
  at: number;
  leases: ReadonlyMap<string, HeldLease>;
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
    `SELECT d.document_id, q.owner, q.leased_until FROM switchboard_delivery_queue q
     JOIN switchboard_deliveries d ON d.id = q.id
     WHERE q.group_id IN (${webhookIds.join(', ')}) AND q.owner IS NOT NULL`
  );
  const leases = rows.map(
    ({ document_id: id, owner, leased_until: until }) =>
      [String(id), { owner: String(owner), until: Number(until) }] as const
  );
  return { at, leases: new Map(leases) };
};

/**
 * What took longer than it may, from a kill until it was finished or somebody else had taken it over
 * (who may have been killed, too). What a process held that lived on is not meant.
 * @param finishedAt of each delivery, epoch milliseconds
 */
export const heldTooLong = (
  snapshots: readonly HeldThen[],
  finishedAt: ReadonlyMap<string, number>,
  withinMs: number
): { id: string; ms: number }[] =>
  snapshots.flatMap(({ at, leases }) =>
    [...leases].flatMap(([id, { owner, until }]) => {
      const ms = (finishedAt.get(id) ?? Number.POSITIVE_INFINITY) - at;
      if (ms <= withinMs) return [];
      const isElsewhere = snapshots.some((later) => {
        const other = later.leases.get(id);
        if (!other || later.at <= at) return false;
        return other.owner === owner ? other.until > until : later.at <= at + withinMs;
      });
      return isElsewhere ? [] : [{ id, ms }];
    })
  );
