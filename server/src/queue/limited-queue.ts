import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database, Db, Tx } from '../database/db';
import { allowedBeside, isFullWith } from '../database/dialects/types';
import type { CappedClaim, Lease, LeaseCap } from '../database/lease-types';
import type { PlainTable } from '../database/tables/plain-tables';
import { freeRows } from './dialects';
import {
  type LeasedRow,
  type NewRow,
  type Outcome,
  Queue,
  QUEUE_STATES,
  type QueueOptions,
} from './queue';

/** Rows of ordered groups, with the keys whose rows go one after the other, and nothing else. */
export const orderTable = (tableName: string, indexName: string): PlainTable => ({
  tableName,
  attributes: {
    id: { type: 'key' },
    group_id: { type: 'integer' },
    ordering_key: { type: 'string' },
  },
  indexes: [{ name: indexName, columns: ['group_id', 'ordering_key', 'id'] }],
});

/** Leases of groups that have a cap: what is counted. A slot is its holder's until it settles or lapses. */
export const slotsTable = (tableName: string, indexName: string): PlainTable => ({
  tableName,
  attributes: {
    id: { type: 'key' },
    group_id: { type: 'integer' },
    owner: { type: 'string', column: { args: [36] } },
    leased_until: { type: 'biginteger' },
  },
  indexes: [{ name: indexName, columns: ['group_id', 'leased_until'] }],
});

/** A row for each group whose claims have to follow one another. */
export const turnsTable = (tableName: string): PlainTable => ({
  tableName,
  attributes: { group_id: { type: 'key' } },
});

export interface LimitedOptions extends QueueOptions {
  order: string;
  slots: string;
  turns: string;
}

export interface OrderedRow extends NewRow {
  /** null: it waits for no other one. */
  orderingKey: string | null;
}

/** A lease that takes a slot of its group. */
export type CountedLease = LeasedRow & { isCounted?: true };

/** Rows that one look of an ordered claim judges, and looks of one claim. */
const LOOKED_AT_ONCE = 200;
const LOOKS = 10;

/**
 * A queue whose groups may have an order, by a key of their rows, and a cap on what is leased over all
 * nodes. Claims of such a group follow one another, by a lock of the group's own; other groups pay for
 * neither.
 *
 * Of one ordering key the row with the lowest id goes first. Whatever a claim finds behind an earlier
 * one of its key is blocked, so that no later look or claim comes upon it. Whatever ends a row takes
 * the group's lock after it has locked the row, and makes the next one of the key ready in its own
 * transaction: a claim under the lock either still sees the earlier row, and what it blocks is made
 * ready after it, or does not see it any more. A claim waits for no row, so the two never wait for each
 * other in a circle.
 */
export class LimitedQueue extends Queue {
  constructor(
    database: Database,
    private readonly limited: LimitedOptions
  ) {
    super(database, limited);
  }

  override async insert(db: Db, rows: readonly (NewRow | OrderedRow)[]): Promise<void> {
    await super.insert(db, rows);
    const ordered = rows.flatMap((row) =>
      'orderingKey' in row && row.orderingKey !== null
        ? [{ id: row.id, group_id: row.group, ordering_key: row.orderingKey }]
        : []
    );
    await db.insert(this.limited.order, ordered);
  }

  /**
   * As `claim`, of a group whose rows have ordering keys: of each key only the first row.
   * @returns also whether more may be due than it has looked at
   */
  claimInOrder(group: number, limit: number): Promise<{ leases: LeasedRow[]; isMore: boolean }> {
    return this.inTurnOf(group, async (tx) => {
      const leases: LeasedRow[] = [];
      for (let look = 0; look < LOOKS; look += 1) {
        const due = await this.lockFree(tx, group, Math.max(limit, LOOKED_AT_ONCE));
        const behind = await this.behind(tx, due);
        await this.setState(tx, [...behind], 'blocked');
        const chosen = due.filter((id) => !behind.has(id)).slice(0, limit - leases.length);
        leases.push(...(await this.leaseLocked(tx, chosen)));
        if (leases.length >= limit) return { leases, isMore: true };
        if (due.length < LOOKED_AT_ONCE) return { leases, isMore: false };
      }
      return { leases, isMore: true };
    });
  }

  /** As `claim`, with no more of the group under counted leases at once, over all nodes, than the cap. */
  claimWithin(group: number, limit: number, cap: LeaseCap): Promise<CappedClaim<CountedLease>> {
    return this.inTurnOf(group, async (tx) => {
      const own = cap.ahead?.own ?? [];
      const counted = (await this.slots(tx)
        .where({ group_id: group })
        .where('leased_until', '>', this.now())
        .pluck('id')) as (number | string)[];
      const except = new Set([...cap.except, ...own]);
      const others = counted.filter((id) => !except.has(Number(id))).length;
      const limits = { atOnce: cap.atOnce, own: own.length, ahead: cap.ahead?.limit ?? 0 };
      const allowed = allowedBeside(others, limit, limits);
      const isAlone = others === 0;
      if (allowed === 0) return { leases: [], isFull: true, isAlone };
      const leases = await this.leaseLocked(tx, await this.lockFree(tx, group, allowed));
      await this.count(tx, group, leases);
      const isFull = isFullWith(others, leases.length, allowed, limits);
      return { leases: leases.map((one) => ({ ...one, isCounted: true })), isFull, isAlone };
    });
  }

  override async renew(leases: readonly (Lease & { isCounted?: true })[]): Promise<void> {
    await super.renew(leases);
    const counted = leases.filter(({ isCounted }) => isCounted);
    const db = await this.database.current();
    await this.inParts(counted, async (part) => {
      await this.slots(db)
        .whereIn(['id', 'owner'], part.map(({ id, owner }) => [id, owner]) as never)
        .update({ leased_until: this.now() + this.limited.leaseMs });
    });
  }

  override async release(leases: readonly (Lease & { isCounted?: true })[]): Promise<void> {
    await super.release(leases);
    await this.leaveSlots(await this.database.current(), leases);
  }

  override async settle(
    tx: Tx,
    outcomes: readonly (Outcome & { lease: { isCounted?: true } })[]
  ): Promise<Set<number>> {
    const held = await super.settle(tx, outcomes);
    await this.leaveSlots(
      tx,
      outcomes.map(({ lease }) => lease)
    );
    // Nobody knows how long a parked row waits: later ones of its key do not wait for it.
    const leaves = ({ next }: Outcome) =>
      !next || next.state === 'ended' || next.state === 'parked';
    const left = outcomes.filter(leaves).flatMap(({ lease: { id } }) => (held.has(id) ? [id] : []));
    await this.letPass(tx, left);
    return held;
  }

  /** Has later rows of their keys wait for these no more, in the transaction that ends or excepts them. */
  async letPass(tx: Db, ids: readonly number[]): Promise<void> {
    const { order } = this.limited;
    await this.inParts(ids, async (part) => {
      const found = (await this.ordered(tx).whereIn('id', [...part])) as {
        id: number;
        group_id: number;
        ordering_key: string;
      }[];
      if (found.length === 0) return;
      const groups = [...new Set(found.map(({ group_id: group }) => Number(group)))];
      for (const group of groups.sort((a, b) => a - b)) await this.lockTurn(tx, group);
      await this.ordered(tx)
        .whereIn(
          'id',
          found.map(({ id }) => id)
        )
        .delete();
      const keys = found.map(({ group_id: group, ordering_key: key }) => [group, key]);
      const next = await tx.rows<{ id: number }>(
        `SELECT MIN(id) AS id FROM ${this.named(order)} WHERE (group_id, ordering_key) IN (${keys.map(() => '(?, ?)').join(', ')})
           GROUP BY group_id, ordering_key`,
        keys.flat() as Knex.RawBinding[]
      );
      await this.setState(
        tx,
        next.map(({ id }) => Number(id)),
        'ready',
        'blocked'
      );
    });
  }

  /** Gives rows that wait their keys, where their group has an order from now on; those that are gone get none. */
  async order(tx: Tx, rows: readonly Pick<OrderedRow, 'id' | 'orderingKey'>[]): Promise<void> {
    const keyed = rows.filter(({ orderingKey }) => orderingKey !== null);
    await this.inParts(keyed, async (part) => {
      const keys = new Map(part.map(({ id, orderingKey }) => [id, orderingKey]));
      // Locked: who settles one of them has either done so, or finds its key.
      const waiting = (await this.in(tx)
        .select('id', 'group_id')
        .whereIn('id', [...keys.keys()])
        .orderBy('id')
        .forUpdate()) as { id: number | string; group_id: number }[];
      if (waiting.length === 0) return;
      await this.ordered(tx)
        .insert(
          waiting.map(({ id, group_id }) => ({ id, group_id, ordering_key: keys.get(Number(id)) }))
        )
        .onConflict('id')
        .ignore();
    });
  }

  /** Ends the order of a group: up to `limit` rows wait for no other one any more. @returns how many there were */
  dissolve(group: number, limit: number): Promise<number> {
    return this.inTurnOf(group, async (tx) => {
      const ids = (await this.ordered(tx)
        .where({ group_id: group })
        .limit(limit)
        .pluck('id')) as number[];
      await this.ordered(tx).whereIn('id', ids).delete();
      await this.setState(tx, ids, 'ready', 'blocked');
      return ids.length;
    });
  }

  /** Runs work while nobody else claims of that group, on whichever node, in a short transaction of its own. */
  private inTurnOf<T>(group: number, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.database.retrying(async (tx) => {
      await this.lockTurn(tx, group);
      return work(tx);
    });
  }

  private async lockTurn(tx: Db, group: number): Promise<void> {
    const turn = () => tx.table(this.limited.turns).where({ group_id: group });
    // An update locks the row, and on SQLite, which has no other lock, the database.
    if ((await turn().update({ group_id: group })) > 0) return;
    await tx.table(this.limited.turns).insert({ group_id: group }).onConflict('group_id').ignore();
    await turn().update({ group_id: group });
  }

  private ordered(tx: Db): Knex.QueryBuilder {
    return tx.table(this.limited.order);
  }

  private slots(tx: Db): Knex.QueryBuilder {
    return tx.table(this.limited.slots);
  }

  private async count(tx: Tx, group: number, leases: readonly LeasedRow[]): Promise<void> {
    await this.slots(tx)
      .where({ group_id: group })
      .where('leased_until', '<=', this.now())
      .delete();
    await this.inParts(leases, async (part) => {
      await this.slots(tx)
        .insert(
          part.map(({ id, owner, leaseUntil }) => ({
            ...{ id, group_id: group, owner, leased_until: leaseUntil },
          }))
        )
        .onConflict('id')
        .merge();
    });
  }

  private async leaveSlots(
    tx: Db,
    leases: readonly (Pick<Lease, 'id' | 'owner'> & { isCounted?: true })[]
  ): Promise<void> {
    await this.inParts(
      leases.filter(({ isCounted }) => isCounted),
      async (part) => {
        await this.slots(tx)
          .whereIn(['id', 'owner'], part.map(({ id, owner }) => [id, owner]) as never)
          .delete();
      }
    );
  }

  /** Ids of rows that are due and free, in their order, locked by the transaction. */
  private async lockFree(tx: Tx, group: number, limit: number): Promise<number[]> {
    const now = this.now();
    const sql = `${freeRows(this.name)}${this.dialect.forUpdate}`;
    const rows = await tx.rows<{ id: number | string }>(sql, [group, now, now, limit]);
    return rows.map(({ id }) => Number(id));
  }

  private async leaseLocked(tx: Tx, ids: readonly number[]): Promise<LeasedRow[]> {
    const leases: LeasedRow[] = [];
    const lease = { owner: randomUUID(), leased_until: this.now() + this.limited.leaseMs };
    await this.inParts(ids, async (part) => {
      await this.in(tx)
        .whereIn('id', [...part])
        .update(lease);
      const rows = (await this.in(tx).whereIn('id', [...part])) as Record<string, unknown>[];
      leases.push(...rows.map((row) => this.leasedOf(row)));
    });
    return leases.sort((a, b) => a.dueAt - b.dueAt || a.id - b.id);
  }

  /** Of rows those that have an earlier one of their key. */
  private async behind(tx: Tx, ids: readonly number[]): Promise<Set<number>> {
    const { order } = this.limited;
    const behind = new Set<number>();
    await this.inParts(ids, async (part) => {
      const found = await tx.rows<{ id: number | string }>(
        `SELECT o.id FROM ${this.named(order)} o WHERE o.id IN (${part.map(() => '?').join(', ')}) AND EXISTS (
             SELECT 1 FROM ${this.named(order)} p
             WHERE p.group_id = o.group_id AND p.ordering_key = o.ordering_key AND p.id < o.id)`,
        part
      );
      for (const { id } of found) behind.add(Number(id));
    });
    return behind;
  }

  private async setState(
    tx: Db,
    ids: readonly number[],
    to: 'ready' | 'blocked',
    from?: 'blocked'
  ): Promise<void> {
    await this.inParts(ids, async (part) => {
      await this.in(tx)
        .whereIn('id', [...part])
        .andWhere(from === undefined ? {} : { state: QUEUE_STATES[from] })
        .update({ state: QUEUE_STATES[to] });
    });
  }
}
