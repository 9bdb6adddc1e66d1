import type { Knex } from 'knex';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';
import { countOf } from '../../database/retry';
import { findInChunks } from '../../database/written-rows';
import type { MetricSource, Sample } from '../../observability/measures';
import { debugEach } from '../../runtime/text';
import { type GroupRoom, type Lease, type NewRow, type NextPlace, Queue } from '../../queue/queue';
import type { OldQueue } from '../../database/tables/old-queues';
import type { WorkStore } from '../../scheduling/types';
import { type EventState, isWaiting, WAITING_STATES } from '../rules/records';
import {
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  type PosEventRow,
  RECORD_QUEUE_TABLE,
  type WokenBy,
} from '../tables';

/** A batch is applied in well under a second; a node that is gone for this long is gone. */
export const LEASE_MS = 30_000;
/** With less than this left of its lease a record is left to expire and comes back. */
export const RESERVE_MS = 10_000;

/** The kind of work that records are, as the scheduler and its log lines name it. */
export const RECORDS = 'switchboard POS events';

export const wokenLine = (id: number): string => `POS event ${id} woken`;

export interface LeasedRecord extends Lease {
  size: number;
}

export interface RecordSettlement {
  lease: Pick<Lease, 'id' | 'owner'>;
  /** When it is looked at again, epoch milliseconds; null: when it is brought forward. */
  dueAt: number | null;
  /** Columns of the log: of all records in one call the same ones. */
  outcome: Pick<PosEventRow, 'state'> & Partial<PosEventRow>;
  /** Its attempt is still to come, whatever happens to its group; otherwise it was processed. */
  wokenBy?: 'retry';
}

/** A record whose next look was determined by a relative. */
export interface RescheduledRecord {
  row: Pick<PosEventRow, 'id' | 'connection_id' | 'body'>;
  state: EventState;
  /** Epoch milliseconds; null: when it is brought forward. */
  dueAt: number | null;
}

/** Leases ended while their records were worked on: nothing of the transaction may stay. */
export class LostLease extends Error {
  constructor(readonly ids: ReadonlySet<number>) {
    super('A lease was lost while its record was applied.');
  }
}

/** A record's columns in the queue besides its place: its waker, and its length. */
type Queued = Pick<PosEventRow, 'id' | 'connection_id'> & { size: number };

/** The columns of the queue in a record's row before version 0.3. */
interface OldRow extends Queued {
  state: EventState;
  /** Epoch milliseconds; the end of the lease where somebody held it; null: it was due for nobody. */
  due_at: number | string | null;
  /** The lease's token, with when the record was due before it: `<token>/<time>`. */
  owner: string | null;
  woken_by?: WokenBy | null;
}

const dueAtOf = ({ due_at: dueAt, owner }: OldRow): number => {
  const [, before] = /\/(\d+)$/.exec(owner ?? '') ?? [];
  return Number(before ?? dueAt);
};

/**
 * Records of tills: log rows and the queue of those to apply, grouped by connection. Waiting records are parked, failed
 * ones ended, done ones not queued. Changes of both write the log first.
 */
export class RecordStore implements WorkStore<LeasedRecord> {
  private readonly queue: Queue;

  constructor(private readonly app: App) {
    this.queue = new Queue(app.db, {
      tableName: RECORD_QUEUE_TABLE,
      groups: { tableName: CONNECTIONS_TABLE },
      leaseMs: LEASE_MS,
    });
  }

  now(): number {
    return this.queue.now();
  }

  dueTimes(): Promise<Map<number, number>> {
    return this.queue.due();
  }

  async claim(connections: readonly GroupRoom[]): Promise<LeasedRecord[]> {
    const claimed = await this.queue.claim(connections);
    return claimed.map(({ columns: { size }, ...lease }) => ({ ...lease, size: Number(size) }));
  }

  release(leases: readonly LeasedRecord[]): Promise<void> {
    return this.queue.release(leases);
  }

  /** Says that records may be due now. For the clock, and the moment after a commit: cheap, never throws. */
  readonly announce = (): void => this.app.scheduler.announce(RECORDS, null, this.now());

  /** Queues records that are new in the log: they are applied if and only if `tx` commits. */
  async enqueue(tx: Tx, records: readonly Queued[], dueAt: number): Promise<void> {
    const rows = records.map((one) => this.queued(one, dueAt, null));
    await this.queue.insert(tx, rows);
    tx.onCommit(this.announce);
  }

  /**
   * Writes the results of records and ends their leases; deletes leases of deleted records (`gone`).
   * @throws LostLease if another process holds one by now: `tx` has to roll back
   */
  async settle(
    tx: Tx,
    settlements: readonly RecordSettlement[],
    gone: readonly RecordSettlement['lease'][] = []
  ): Promise<void> {
    const updates = settlements.map(({ lease: { id }, outcome }) => ({ id, set: { ...outcome } }));
    await tx.updateRows(POS_EVENTS_TABLE, updates);
    const held = await this.queue.settle(tx, [
      ...settlements.map(({ lease, dueAt, outcome: { state }, wokenBy = null }) => ({
        lease,
        next: this.placeOf(state, dueAt, wokenBy),
      })),
      ...gone.map((lease) => ({ lease, next: null })),
    ]);
    const lost = settlements.flatMap(({ lease: { id } }) => (held.has(id) ? [] : [id]));
    if (lost.length > 0) throw new LostLease(new Set(lost));
  }

  /** A record as it is now, locked until the transaction ends; undefined if it is gone. */
  async lock(tx: Db, id: number): Promise<Pick<PosEventRow, 'state' | 'tries'> | undefined> {
    return this.events(tx).select('state', 'tries').where({ id }).forUpdate().first();
  }

  /**
   * Makes records due now, except failed ones, which wait for their owner. A leased one too: its holder fails to
   * settle, and it is processed again. The cause stays until then, so no process parks it. Returns the ids moved.
   */
  async bringForward(tx: Tx, ids: readonly number[], by: WokenBy): Promise<number[]> {
    const now = this.now();
    const queued = await this.queue.bringForward(tx, ids, { woken_by: by });
    const others = ids.filter((id) => !queued.has(id));
    const done = await findInChunks<Queued>(others, (some) =>
      this.events(tx)
        .select('id', 'connection_id', tx.raw('LENGTH(body) AS size'))
        .whereIn('id', some)
        .whereNot({ state: 'failed' })
    );
    const rows = done.map((one) => this.queued(one, now, by));
    await this.queue.insert(tx, rows, 'replace');
    const forward = [...queued, ...rows.map(({ id }) => id)];
    if (forward.length > 0) tx.onCommit(this.announce);
    return forward;
  }

  /** Processes a record again for its owner, with these changes. The caller has locked it. */
  async startAgain(tx: Tx, row: PosEventRow, changes: Partial<PosEventRow>): Promise<void> {
    await this.events(tx).where({ id: row.id }).update(changes);
    const queued = this.queued({ ...row, size: row.body.length }, this.now(), 'owner');
    await this.queue.insert(tx, [queued], 'replace');
    tx.onCommit(() => debugEach(this.app.strapi, [queued.id], wokenLine));
    tx.onCommit(this.announce);
  }

  /** Reschedules unleased records; those due already, or woken and not processed since, keep their place. */
  async reschedule(tx: Db, records: readonly RescheduledRecord[]): Promise<void> {
    const ids = records.map(({ row }) => Number(row.id));
    const found = await this.queue.find(tx, ids);
    for (const { row, state, dueAt } of records) {
      const known = found.get(Number(row.id));
      const place = this.placeOf(state, dueAt, null);
      const isSame =
        known?.state === (place?.state ?? (place ? 'ready' : undefined)) &&
        (known?.state !== 'ready' || known.dueAt === place?.dueAt);
      if (isSame) continue;
      const queued = this.queued({ ...row, size: row.body.length }, this.now(), null);
      // As the statement finds it: who woke it may have committed since.
      await this.queue.reschedule(tx, queued, place, { woken_by: null });
    }
  }

  /** The queue as earlier versions kept it: in the columns `due_at`, `owner` and `woken_by` of the log. */
  async oldQueue(): Promise<OldQueue<NewRow>> {
    const { queue } = this;
    // It came during 0.2.
    const columns = this.app.strapi.db.getSchemaConnection();
    const hasWoken = await columns.hasColumn(POS_EVENTS_TABLE, 'woken_by');
    return {
      name: 'record_queue',
      tableName: POS_EVENTS_TABLE,
      columns: ['connection_id_if_due_at', 'owner', 'woken_by', 'due_at'],
      indexes: ['sb_event_waiting', 'sb_event_due'],
      insert: (tx, rows) => queue.insert(tx, rows, 'ignore'),
      read: async (tx, after, limit) => {
        const rows = (await this.events(tx)
          .select('id', 'connection_id', 'state', 'due_at', 'owner', tx.raw('LENGTH(body) AS size'))
          .select(hasWoken ? ['woken_by'] : [])
          .where('id', '>', after)
          .andWhere((notDone) => {
            notDone.whereNotNull('due_at').orWhereIn('state', [...WAITING_STATES, 'failed']);
          })
          .orderBy('id')
          .limit(limit)) as OldRow[];
        return rows.map((row) => {
          const { state, due_at: dueAt, woken_by: wokenBy = null } = row;
          const place = dueAt !== null ? 'ready' : state === 'failed' ? 'ended' : 'parked';
          const due = dueAt === null ? this.now() : dueAtOf(row);
          return { ...this.queued(row, due, wokenBy), state: place };
        });
      },
    };
  }

  private events(tx: Db): Knex.QueryBuilder {
    return tx.table(POS_EVENTS_TABLE);
  }

  private queued({ id, connection_id: group, size }: Queued, dueAt: number, by: WokenBy | null) {
    const columns = { woken_by: by, size: Number(size) };
    return { id: Number(id), group: Number(group), dueAt, columns };
  }

  /** The place of a record's state in the queue; null: none, it is done. */
  private placeOf(
    state: EventState,
    dueAt: number | null,
    wokenBy: WokenBy | null
  ): NextPlace | null {
    const columns = { woken_by: wokenBy };
    if (state === 'failed') return { state: 'ended', dueAt: this.now(), columns };
    if (dueAt !== null) return { dueAt, columns };
    return isWaiting(state) ? { state: 'parked', dueAt: this.now(), columns } : null;
  }
}

const createRecordStore = (app: App): RecordStore => new RecordStore(app);

export const getRecordStore = (app: App): RecordStore => app.part(createRecordStore);

const WAITING = 'switchboard_pos_records_waiting';
const OLDEST = 'switchboard_pos_record_oldest_waiting_seconds';
const STUCK = 'switchboard_pos_records_stuck';

/** States that last until a user acts, or something else arrives. */
const STUCK_STATES = ['held', 'needs_mapping', 'partially_applied', 'failed'] as const;
const MOST = 100_000;

/** Records of tills that wait; at most 100,000 of a state are counted. */
export const recordMetrics: MetricSource = {
  metrics: [
    { name: WAITING, type: 'gauge', help: 'Records of tills that wait to be applied' },
    { name: OLDEST, type: 'gauge', help: 'How long the oldest of them has been waiting' },
    { name: STUCK, type: 'gauge', help: 'Records of tills that were not wholly applied, by state' },
  ],
  async read(app) {
    const db = await app.db.current();
    const inState = (state: EventState) => db.table(POS_EVENTS_TABLE).where({ state });
    const count = (state: EventState): Promise<number> =>
      countOf(db.from(inState(state).select('id').limit(MOST)));
    const oldest = (await inState('pending').select('received_at').orderBy('id').first()) as
      Pick<PosEventRow, 'received_at'> | undefined;
    const now = app.clock.now();
    const age = Math.max(0, now - Number(oldest?.received_at ?? now));
    const stuck: Sample[] = [];
    for (const state of STUCK_STATES) stuck.push({ labels: { state }, value: await count(state) });
    return {
      [WAITING]: [{ value: await count('pending') }],
      [OLDEST]: [{ value: age / 1000 }],
      [STUCK]: stuck,
    };
  },
};
