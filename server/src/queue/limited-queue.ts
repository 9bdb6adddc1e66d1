import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { padded } from '../database/connection';
import type { Database, Db, Tx } from '../database/db';
import type { PlainTable } from '../database/tables/plain-tables';
import { freeRows, idsOf, marks, type Row } from './dialects';
import {
  type IfQueued,
  type Lease,
  type LeasedRow,
  type NewRow,
  type Outcome,
  Queue,
  QUEUE_STATES,
  type QueueOptions,
} from './queue';

/** How much of a group may be under a lease at once, over all nodes. */
export interface LeaseCap {
  atOnce: number;
  /** Ids of rows that do not count: they are done, and only their outcome is still to be recorded. */
  except: readonly number[];
  /** The caller's rows, and how many it may lease beyond the cap, which it keeps itself, if no other node holds any. */
  ahead?: { own: readonly number[]; limit: number };
}

export interface CappedClaim<L extends Lease> {
  leases: L[];
  /** True if the group has reached its cap, with these or without any. */
  isFull: boolean;
  /** True if no other node held any of it, so the extra rows requested in advance were allowed. */
  isSole: boolean;
}

/** Rows of ordered groups, with the keys whose rows go one after the other, and nothing else. */
export const orderTable = (tableName: string, indexName: string): PlainTable => ({
  tableName,
  attributes: {
    id: { type: 'key' },
    group_id: { type: 'integer' },
    ordering_key: { type: 'string', column: { args: [LONGEST_KEY] } },
  },
  indexes: [{ name: indexName, columns: ['group_id', 'ordering_key', 'id'] }],
});

/** In characters: the name of a content type and an id, as their columns have them. */
const LONGEST_KEY = 511;

/** Leases of groups that have a cap: what is counted. A slot belongs to its holder until settled or expired. */
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

/** One row for each group whose claims are serialized; `free_at` is a value passed from one claim to the next. */
export const groupLocksTable = (tableName: string): PlainTable => ({
  tableName,
  attributes: { group_id: { type: 'key' }, free_at: { type: 'biginteger' } },
});

type KeyRow = Readonly<Record<'id' | 'group_id', number> & { ordering_key: string }>;

interface LimitedOptions extends QueueOptions {
  order: string;
  slots: string;
  locks: string;
  /** The keys of rows of an ordered group that were queued without; rows that wait for none are absent. */
  keysOf?(tx: Tx, ids: readonly number[]): Promise<ReadonlyMap<number, string>>;
  /** Called, after the commit, with groups whose rows no longer wait for others. */
  freed?(groups: readonly number[]): void;
}

interface ClaimRules {
  /** True: only the first row of each ordering key. */
  isOrdered: boolean;
  /** How much of it may be leased at once, over all nodes; null: as much as there is. */
  cap: LeaseCap | null;
}

interface LimitedClaim extends CappedClaim<LeasedRow> {
  /** True if more may be due that was not looked at. */
  isMore: boolean;
}

/** Rows that one look of an ordered claim judges, and looks of one claim. */
const LOOKED_AT_ONCE = 200;
const LOOKS = 10;

/**
 * A queue whose groups may have an order, by a key of their rows, and a cap on leases over all nodes. A group lock
 * serializes the claims of such a group; other groups pay for neither. The lowest id of an ordering key goes first. A
 * claim blocks the rows it finds behind an earlier one, so that later looks skip them. Ending a row takes the group
 * lock after the row's, and readies the next row of the key in the same transaction: a claim under the lock either sees
 * the earlier row, and the rows it blocks are readied later, or no longer sees it. Claims wait for no row: no deadlock.
 */
export class LimitedQueue extends Queue {
  constructor(
    database: Database,
    private readonly limited: LimitedOptions
  ) {
    super(database, limited);
  }

  override async insert(db: Db, rows: readonly NewRow[], then?: IfQueued): Promise<void> {
    await super.insert(db, rows, then);
    await this.addKeys(db, keysIn(rows), then);
  }

  /** Adds keys of rows, whose places may be inserted with what they are about. */
  addKeys(db: Db, keys: readonly KeyRow[], then?: IfQueued): Promise<void> {
    return db.insert(this.limited.order, keys, then && { unique: ['id'], then });
  }

  /** Runs work in a short transaction with exclusive claims of the group; `work` gets the previous `free_at`, or 0. */
  withGroupLock<T>(group: number, work: (tx: Tx, freeAt: number) => Promise<T>): Promise<T> {
    return this.database.retrying(async (tx) => work(tx, await this.lockFreeAt(tx, group)));
  }

  /** Leaves a value for the next holder, under the lock. */
  async setFreeAt(tx: Tx, group: number, free_at: number): Promise<void> {
    await tx.table(this.limited.locks).where({ group_id: group }).update({ free_at });
  }

  /** As `claim`, of one group and under its lock. */
  async claimLocked(
    tx: Tx,
    group: number,
    limit: number,
    { isOrdered, cap }: ClaimRules
  ): Promise<LimitedClaim> {
    const { atOnce, ahead = { own: [], limit: 0 } } = cap ?? { atOnce: limit };
    const others = cap ? await this.countOthers(tx, group, cap) : 0;
    const isSole = others === 0;
    const left = Math.max(0, atOnce - ahead.own.length - others);
    const allowed = Math.max(Math.min(limit, left), isSole ? ahead.limit : 0);
    if (allowed === 0) return { leases: [], isFull: true, isSole, isMore: false };
    const { leases, isMore } = isOrdered
      ? await this.leaseFirsts(tx, group, allowed)
      : { leases: await this.leaseDue([{ group, limit: allowed }]), isMore: false };
    if (!cap) return { leases, isFull: false, isSole, isMore };
    await this.count(tx, group, leases);
    return {
      leases: leases.map((one) => ({ ...one, isCounted: true })),
      isFull: leases.length === allowed && leases.length >= left,
      isSole,
      isMore,
    };
  }

  override async renew(leases: readonly Lease[]): Promise<void> {
    await super.renew(leases);
    const leased_until = this.now() + this.limited.leaseMs;
    await this.withSlots(await this.database.current(), leases, (slots) =>
      slots.update({ leased_until })
    );
  }

  override async release(leases: readonly Lease[]): Promise<void> {
    await super.release(leases);
    await this.withSlots(await this.database.current(), leases, (slots) => slots.delete());
  }

  override async settle(tx: Tx, outcomes: readonly Outcome[]): Promise<Set<number>> {
    const held = await super.settle(tx, outcomes);
    const leases = outcomes.map(({ lease }) => lease);
    await this.withSlots(tx, leases, (slots) => slots.delete());
    // A parked row may wait for any time: later ones of its key do not wait for it.
    const left = outcomes.flatMap(({ lease: { id }, next }) =>
      held.has(id) && (!next || next.state === 'ended' || next.state === 'parked') ? id : []
    );
    await this.letPass(tx, left);
    return held;
  }

  /** Unblocks later rows of their keys, in the transaction that ends or excepts them. */
  async letPass(tx: Tx, ids: readonly number[]): Promise<void> {
    const passed = new Set<number>();
    await this.inParts(ids, async (part) => {
      const found = await tx.byIds<KeyRow>(this.limited.order, '*', part);
      if (found.length === 0) return;
      const groups = [...new Set(found.map(({ group_id: group }) => Number(group)))];
      for (const group of groups.sort((a, b) => a - b)) {
        await this.lockFreeAt(tx, group);
        passed.add(group);
      }
      await this.ordered(tx).whereIn('id', idsOf(found)).delete();
      const next = await tx.rows<Row>(
        `SELECT MIN(id) AS id FROM ${this.database.named(this.limited.order)}
         WHERE (group_id, ordering_key) IN (${marks(padded(found), '(?, ?)')}) GROUP BY group_id, ordering_key`,
        padded(found).flatMap(({ group_id: group, ordering_key: key }) => [group, key])
      );
      await this.setState(tx, idsOf(next), 'ready', 'blocked');
    });
    if (passed.size > 0) tx.onCommit(() => this.limited.freed?.([...passed]));
  }

  /** Locks a group until a transaction that changes its order ends: a settlement came before, or sees the change. */
  async lockGroup(tx: Tx, group: number): Promise<void> {
    if (this.dialect.forUpdate) {
      await this.in(tx)
        .select('id')
        .where({ group_id: group })
        .whereNot({ state: QUEUE_STATES.ended })
        .orderBy('id')
        .forUpdate();
    }
    await this.lockFreeAt(tx, group);
  }

  /** Orders a locked group: its unfinished rows go by their keys. `keys` selects `id` and `ordering_key` of rows. */
  async order(tx: Tx, group: number, keys: Knex.QueryBuilder): Promise<void> {
    const { sql, bindings } = keys.toSQL();
    const order = this.database.named(this.limited.order);
    await tx.raw(
      `INSERT INTO ${order} (id, group_id, ordering_key)
       SELECT q.id, q.group_id, keyed.ordering_key FROM ${this.name} q JOIN (${sql}) keyed ON keyed.id = q.id
       WHERE q.group_id = ? AND q.state <> ? AND NOT EXISTS (SELECT 1 FROM ${order} known WHERE known.id = q.id)`,
      [...(bindings as Knex.RawBinding[]), group, QUEUE_STATES.ended]
    );
  }

  /** Ends the order of a locked group: its rows no longer wait for others. */
  async dissolve(tx: Tx, group: number): Promise<void> {
    await this.ordered(tx).where({ group_id: group }).delete();
    await this.in(tx)
      .where({ group_id: group, state: QUEUE_STATES.blocked })
      .update({ state: QUEUE_STATES.ready });
  }

  /** Removes what is kept of a group that is gone. */
  async forget(group: number): Promise<void> {
    const db = await this.database.current();
    for (const name of [this.limited.locks, this.limited.order, this.limited.slots])
      await db.table(name).where({ group_id: group }).delete();
  }

  /** @returns what the last holder has left */
  private async lockFreeAt(tx: Db, group: number): Promise<number> {
    const locks = () => tx.table(this.limited.locks);
    const own = { group_id: group };
    // SQLite locks nothing but the database, and that with the first write.
    if (!this.dialect.forUpdate) await locks().where(own).update(own);
    for (;;) {
      const [freeAt] = (await locks().where(own).forUpdate().pluck('free_at')) as unknown[];
      if (freeAt !== undefined) return Number(freeAt);
      await locks().insert(own).onConflict('group_id').ignore();
    }
  }

  private ordered(db: Db): Knex.QueryBuilder {
    return db.table(this.limited.order);
  }

  /** Changes the slots that leases have taken and still hold. */
  private async withSlots(
    db: Db,
    leases: readonly Outcome['lease'][],
    change: (slots: Knex.QueryBuilder) => PromiseLike<unknown>
  ): Promise<void> {
    const counted = leases.flatMap(({ id, owner, isCounted }) => (isCounted ? [[id, owner]] : []));
    await this.inParts(counted, (part) =>
      change(db.table(this.limited.slots).whereIn(['id', 'owner'], part as never))
    );
  }

  /** How many rows of the group other nodes hold now. */
  private async countOthers(tx: Tx, group: number, cap: LeaseCap): Promise<number> {
    const counted = (await tx
      .table(this.limited.slots)
      .where({ group_id: group })
      .where('leased_until', '>', this.now())
      .pluck('id')) as (number | string)[];
    const except = new Set([...cap.except, ...(cap.ahead?.own ?? [])]);
    return counted.filter((id) => !except.has(Number(id))).length;
  }

  private async count(tx: Tx, group: number, leases: readonly LeasedRow[]): Promise<void> {
    const slots = tx.table(this.limited.slots).where({ group_id: group });
    await slots.where('leased_until', '<=', this.now()).delete();
    const taken = leases.map(({ id, owner, leaseUntil }) => {
      return { id, group_id: group, owner, leased_until: leaseUntil };
    });
    await tx.insert(this.limited.slots, taken, { unique: ['id'], then: 'replace' });
  }

  /** Leases rows that are due and first of their keys, and blocks those that it finds behind others. */
  private async leaseFirsts(tx: Tx, group: number, limit: number) {
    const leases: LeasedRow[] = [];
    const atOnce = Math.max(limit, LOOKED_AT_ONCE);
    const sql = `${freeRows(this.name, { columns: '*' })}${this.dialect.forUpdate}`;
    for (let look = 0; look < LOOKS; look += 1) {
      const now = this.now();
      const due = await tx.rows<Row>(sql, [group, now, now, atOnce]);
      const behind = await this.behind(tx, group, idsOf(due));
      await this.setState(tx, [...behind], 'blocked', 'ready');
      const firsts = due.filter(({ id }) => !behind.has(Number(id)));
      leases.push(...(await this.leaseLocked(tx, firsts.slice(0, limit - leases.length))));
      if (leases.length >= limit) return { leases, isMore: true };
      if (due.length < atOnce) return { leases, isMore: false };
    }
    return { leases, isMore: true };
  }

  private async leaseLocked(tx: Tx, rows: readonly Row[]): Promise<LeasedRow[]> {
    const lease = { owner: randomUUID(), leased_until: this.now() + this.limited.leaseMs };
    await this.inParts(idsOf(rows), (part) => this.in(tx).whereIn('id', part).update(lease));
    return rows.map((row) => this.leasedOf({ ...row, ...lease }));
  }

  /** Rows that have an earlier one of their key; rows that were queued without a key get it first. */
  private async behind(tx: Tx, group: number, ids: readonly number[]): Promise<Set<number>> {
    const order = tx.named(this.limited.order);
    const behind = await this.inParts(ids, async (part) => {
      const known = (await this.ordered(tx).whereIn('id', part).pluck('id')) as (number | string)[];
      const having = new Set(known.map(Number));
      const without = part.filter((id) => !having.has(id));
      const keys = without.length > 0 ? await this.limited.keysOf?.(tx, without) : undefined;
      const added = [...(keys ?? [])].map(([id, ordering_key]): KeyRow => {
        return { id, group_id: group, ordering_key };
      });
      await this.addKeys(tx, added, 'ignore');
      const keyed = [...having, ...idsOf(added)];
      if (keyed.length === 0) return [];
      const any = tx.dialect.anyOf('o.id', keyed);
      const found = await tx.rows<Row>(
        `SELECT o.id FROM ${order} o WHERE ${any.sql} AND EXISTS (
           SELECT 1 FROM ${order} p
           WHERE p.group_id = o.group_id AND p.ordering_key = o.ordering_key AND p.id < o.id)`,
        any.bindings
      );
      return idsOf(found);
    });
    return new Set(behind.flat());
  }
}

const keysIn = (rows: readonly NewRow[]): KeyRow[] =>
  rows.flatMap(({ id, group, orderingKey: key }) =>
    typeof key === 'string' ? { id, group_id: group, ordering_key: key } : []
  );
