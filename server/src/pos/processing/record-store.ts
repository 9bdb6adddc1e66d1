import { createDetached, type Detached } from '../../database/connection';
import { createLeasedRows } from '../../database/leases';
import type { WorkStore } from '../../scheduling/types';
import type { Lease, NewRow } from '../../database/lease-types';
import type { EventState } from '../rules/states';
import { CONNECTIONS_TABLE, type PosEventRow, POS_EVENTS_TABLE, type WokenBy } from '../tables';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** A batch is applied in well under a second; a node that is gone for this long is gone. */
export const LEASE_MS = 30_000;
/** Less than this left of a lease: the record is left to lapse and comes back. */
export const RESERVE_MS = 10_000;

/** The kind of work that records are, as the scheduler and its log lines name it. */
export const RECORDS = 'switchboard POS events';

export interface LeasedRecord extends Lease {
  /** Length of the stored record, in characters. */
  size: number;
  /** Times it could not be applied so far. */
  tries: number;
}

/** What processing makes of a record. */
export interface RecordOutcome {
  state: EventState;
  settled_flags: string;
  processed_at: number;
  location_id: number | null;
  items: string;
  ignored: string;
  simulated: string | null;
  took: number | null;
  counted: string | null;
  tries: number;
  error: string | null;
  /** Null: what it was woken for has been worked on. */
  woken_by: WokenBy | null;
  counted_places: string | null;
}

export interface RecordSettlement {
  lease: Pick<Lease, 'id' | 'owner'>;
  /** When it is looked at again, epoch milliseconds; null: when somebody brings it forward. */
  dueAt: number | null;
  outcome: Partial<RecordOutcome>;
}

/**
 * The queue of accepted records: the only code that leases them, or says when they are due. Groups
 * are connections.
 */
export interface RecordStore extends WorkStore<LeasedRecord> {
  /** Queues records in `tx`'s transaction: they exist if and only if it commits. */
  insert(db: Db, records: readonly NewRow[]): Promise<void>;
  /** Writes what came of records, each only while its lease holds. @returns the ids whose lease held. */
  settle(db: Db, settlements: readonly RecordSettlement[]): Promise<Set<number>>;
  /** The state of a record, locked until the transaction ends; null where it is gone. */
  lockState(db: Db, id: number): Promise<EventState | null>;
  /**
   * Makes records due now, but for those that failed: they wait for their owner. One that is under a
   * lease too: its holder then fails to settle, and it is worked on again. What it was woken by stays
   * with it until then, so that nobody puts it to sleep meanwhile.
   * @returns the ids that were brought forward, where `tell` asks for them
   */
  bringForward(db: Db, ids: readonly number[], by: WokenBy, tell: boolean): Promise<number[]>;
  /** Has a record worked on again from the start, whatever came of it. */
  startAgain(db: Db, id: number, state: EventState): Promise<void>;
  /** Has a refund worked on again, now without waiting for its sale. */
  acceptAlone(db: Db, id: number): Promise<void>;
  /**
   * Sets when a record that nobody holds is looked at again; null: when somebody brings it forward. One
   * that is due, or that something woke since `row` was read or before, stays as it is.
   */
  reschedule(db: Db, row: PosEventRow, dueAt: number | null): Promise<void>;
  /** For work that a commit starts and that must not inherit its finished transaction. */
  readonly detached: Detached;
  /** Says that records may be due now. For the moment after a commit: cheap, never throws. */
  announce(): void;
}

const AT_ONCE = 500;

const createRecordStore = (app: App): RecordStore => {
  const leased = createLeasedRows(app.db, {
    tableName: POS_EVENTS_TABLE,
    groupColumn: 'connection_id',
    columns: {
      state: 'text',
      settled_flags: 'text',
      processed_at: 'bigint',
      location_id: 'integer',
      items: 'text',
      ignored: 'text',
      simulated: 'text',
      took: 'bigint',
      counted: 'text',
      tries: 'integer',
      error: 'text',
      woken_by: 'text',
      counted_places: 'text',
    },
    groups: { tableName: CONNECTIONS_TABLE },
    leaseMs: LEASE_MS,
  });
  const rows = (db: Db) => db.table(POS_EVENTS_TABLE);

  return {
    // Made while the site boots, see `bootstrap` in index.ts.
    detached: createDetached(),
    now: () => leased.now(),
    dueTimes: () => leased.dueTimes(),
    release: (leases) => leased.release(leases),

    async claim(connection, limit) {
      const claimed = await leased.claim(connection, limit);
      return claimed.map(({ row, ...lease }) => ({
        ...lease,
        size: String(row.body).length,
        tries: Number(row.tries),
      }));
    },

    insert: (db, records) => leased.insert(db, records),

    settle: (db, settlements) =>
      leased.settle(
        db,
        settlements.map(({ lease: { id, owner }, dueAt, outcome }) => ({
          id,
          owner,
          dueAt,
          columns: { ...outcome },
        }))
      ),

    async lockState(db, id) {
      const row = (await rows(db).select('state').where({ id }).forUpdate().first()) as
        Pick<PosEventRow, 'state'> | undefined;
      return row?.state ?? null;
    },

    async bringForward(db, ids, by, tell) {
      const forward: number[] = [];
      for (let start = 0; start < ids.length; start += AT_ONCE) {
        const some = () =>
          rows(db)
            .whereIn('id', ids.slice(start, start + AT_ONCE))
            .whereNot({ state: 'failed' });
        await some().update({ due_at: leased.now(), owner: null, woken_by: by });
        if (tell) forward.push(...((await some().pluck('id')) as number[]));
      }
      return forward;
    },

    async startAgain(db, id, state) {
      await rows(db)
        .where({ id })
        .update({
          state,
          tries: 0,
          error: null,
          due_at: leased.now(),
          owner: null,
          woken_by: 'owner' satisfies WokenBy,
        });
    },

    async acceptAlone(db, id) {
      const at = leased.now();
      await rows(db)
        .where({ id })
        .update({
          accepted_at: at,
          due_at: at,
          owner: null,
          woken_by: 'owner' satisfies WokenBy,
        });
    },

    async reschedule(db, row, dueAt) {
      const known = row.due_at === null ? null : Number(row.due_at);
      if (dueAt === known || (known !== null && known <= leased.now())) return;
      // As the statement finds it: who woke it may have committed since `row` was read. A node of an
      // earlier version wakes by the time alone.
      await rows(db)
        .where({ id: row.id, due_at: known })
        .whereNull('owner')
        .whereNull('woken_by')
        .update({ due_at: dueAt });
    },

    announce: () => app.scheduler.announce(RECORDS, null, leased.now()),
  };
};

export const getRecordStore = (app: App): RecordStore => app.part(createRecordStore);
