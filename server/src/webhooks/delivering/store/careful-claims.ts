import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, type Executor, table } from '../../../database/connection';
import { withTransientRetry } from '../../../database/retry';
import type { LeasedRow, LeasedRows } from '../../../database/lease-types';
import type { CappedClaim, LeaseCap } from '../../../scheduling/types';
import { allowance, freeAfter, freeAtMost } from '../../rules/pace';
import { DELIVERIES_TABLE, PACES_TABLE } from '../../tables';
import { followEnds, holdBehind, QUEUED_COLUMNS, type Queued } from '../../deliveries/ordering';
import { type KnownManners, type Manners, readManners } from '../../deliveries/limits';

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
export const inTurnOf = <T>(
  strapi: Core.Strapi,
  webhook: number,
  work: (trx: Executor, pace: Pace) => Promise<T>
): Promise<T> =>
  withTransientRetry(async () => {
    const executor = (await currentExecutor(strapi)) as Knex;
    const isSqlite = strapi.db.dialect.client === 'sqlite';
    const within = async (trx: Executor): Promise<T> => {
      const own = () => table(strapi, trx, PACES_TABLE).where({ webhook_id: webhook });
      // SQLite locks nothing but the database, and that with the first write.
      if (isSqlite) await own().update({ webhook_id: webhook });
      const locked = () =>
        (isSqlite ? own() : own().forUpdate()).first() as Promise<Pace | undefined>;
      let pace = await locked();
      if (!pace) {
        await table(strapi, trx, PACES_TABLE)
          .insert({ webhook_id: webhook, free_at: 0 })
          .onConflict('webhook_id')
          .ignore();
        pace = (await locked()) as Pace;
      }
      return work(trx, pace);
    };
    return executor.transaction(
      within,
      isSqlite ? undefined : { isolationLevel: 'read committed' }
    );
  });

export interface CarefulClaim extends CappedClaim<LeasedRow> {
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
export const createCarefulClaims = (
  strapi: Core.Strapi,
  leased: LeasedRows,
  known: KnownManners
) => {
  const dueRows = (trx: Executor, webhook: number, limit: number): Promise<Queued[]> => {
    const due = table(strapi, trx, DELIVERIES_TABLE)
      .select(QUEUED_COLUMNS)
      .where({ webhook_id: webhook })
      .where('due_at', '<=', leased.now())
      .orderBy([{ column: 'due_at' }, { column: 'id' }])
      .limit(limit);
    return (strapi.db.dialect.client === 'sqlite'
      ? due
      : due.forUpdate().skipLocked()) as unknown as Promise<Queued[]>;
  };

  /** @returns `isMore` where it has not looked at everything that is due. */
  const takeSome = async (
    trx: Executor,
    webhook: number,
    room: number,
    { isOrdered }: Manners
  ): Promise<{ leases: LeasedRow[]; isMore: boolean }> => {
    const atOnce = isOrdered ? Math.max(room, LOOKED_AT_ONCE) : room;
    const due = await dueRows(trx, webhook, atOnce);
    const free = isOrdered ? await holdBehind(strapi, trx, due) : due;
    const chosen = free
      .slice(0, room)
      .map(({ id, due_at: dueAt }) => ({ id: Number(id), dueAt: Number(dueAt) }));
    const leases = chosen.length > 0 ? await leased.lease(trx, chosen) : [];
    return { leases, isMore: due.length === atOnce };
  };

  const claimSome = ({ webhook, limit, cap }: Wanted): Promise<CarefulClaim> =>
    inTurnOf(strapi, webhook, async (trx, pace) => {
      const manners = await readManners(strapi, trx, webhook);
      known.note(webhook, manners);
      const { ratePerSecond, concurrency, isOrdered, pausedUntil } = manners;
      if (pausedUntil > leased.now()) return NOTHING;
      const atOnce = cap && (concurrency ?? cap.atOnce);
      const left =
        atOnce === null
          ? Number.POSITIVE_INFINITY
          : atOnce - (await leased.countLeased(trx, webhook, cap?.except ?? []));
      if (left <= 0) return { ...NOTHING, isFull: true };
      const at = leased.now();
      const free = Number(pace.free_at);
      const freeAt = ratePerSecond === null ? free : freeAtMost(ratePerSecond, free, at * 1000);
      const allowed = ratePerSecond === null ? null : allowance(ratePerSecond, freeAt, at * 1000);
      const paced = allowed?.attempts ?? Number.POSITIVE_INFINITY;
      const setFree = (time: number) =>
        table(strapi, trx, PACES_TABLE).where({ id: pace.id }).update({ free_at: time });
      if (freeAt !== free) await setFree(freeAt);
      if (allowed && paced === 0) return { ...NOTHING, againAt: Math.ceil(allowed.from / 1000) };
      const isMoreToFollow = isOrdered && (await followEnds(strapi, trx, webhook, at));
      const room = Math.min(limit, left, paced);
      const { leases, isMore } = await takeSome(trx, webhook, room, manners);
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
