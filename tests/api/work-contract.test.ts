import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from '../../server/src/app';
import { rowsOf } from '../../server/src/database/connection';
import { getRecordStore, LostLease } from '../../server/src/pos/processing/record-store';
import { createEmbeddedScheduler } from '../../server/src/scheduling/embedded-scheduler';
import {
  type BullmqPackages,
  createBullmqScheduler,
  loadBullmq,
} from '../../server/src/scheduling/bullmq/scheduler';
import { createBatchWorker } from '../../server/src/scheduling/batch-worker';
import { createSlotWorker } from '../../server/src/scheduling/slot-worker';
import type {
  CappedWorkStore,
  Scheduler,
  WorkerLog,
  WorkStore,
} from '../../server/src/scheduling/types';
import type { Lease } from '../../server/src/database/lease-types';
import { getDeliveryStore } from '../../server/src/webhooks/deliveries/store';
import { uuidV7 } from '../../server/src/webhooks/rules/uuid-v7';
import { createDatabase, databases, describeEach, dropDatabase } from '../support/databases';
import { SCRATCH } from '../support/paths';
import { createRedis, hasRedis, type RedisServer } from '../support/redis';
import { type SmallSite, startSmallSite } from '../support/small-site';
import { waitFor } from '../support/wait';

/**
 * What every store keeps with every engine, on every database: one suite, so that another engine has
 * nothing to do but to be added to the list.
 */
interface Engine {
  create(log: WorkerLog): Scheduler;
  /** Before and after all of its tests. */
  open?(): Promise<void>;
  close?(): Promise<void>;
}

const silent = { warn: () => {}, info: () => {} };

const bullmq = (): Engine => {
  let server: RedisServer;
  let packages: BullmqPackages;
  return {
    async open() {
      packages = await loadBullmq();
      server = await createRedis();
      await server.start();
    },
    close: () => server?.close(),
    create: (log) =>
      createBullmqScheduler({
        packages,
        redis: server.url,
        prefix: 'contract',
        site: () => 'site',
        log: { ...silent, ...log },
        detached: (work) => work(),
      }),
  };
};

const ENGINES: Record<string, Engine> = {
  embedded: { create: (log) => createEmbeddedScheduler(log, (work) => work()) },
  ...(hasRedis() ? { bullmq: bullmq() } : {}),
};

/** A store with what a test needs beside it. */
interface Subject {
  /** Its tables, that of the queue last. */
  tableNames: readonly [string, ...string[]];
  /** Has leases end that lasted until a while after now. */
  lapsed: Record<string, unknown>;
  storeOf(app: App): WorkStore<Lease>;
  /** Queues rows of a group within the current transaction or one of its own. */
  insert(app: App, group: number, count: number, dueAt: number): Promise<void>;
  /** Settles rows as done, or as due again. @returns the ids whose lease held */
  settle(app: App, leases: readonly Lease[], dueAt: number | null): Promise<Set<number>>;
}

let serial = 0;

const deliveries: Subject = {
  tableNames: ['switchboard_deliveries'],
  lapsed: { due_at: 1000 },
  storeOf: getDeliveryStore as unknown as Subject['storeOf'],
  insert: (app, webhook, count, at) =>
    app.db.retrying((tx) =>
      getDeliveryStore(app).insert(
        tx,
        Array.from({ length: count }, () => ({
          deliveryId: uuidV7(Date.now()),
          webhook,
          url: 'http://127.0.0.1/',
          event: 'contact.created',
          body: '{}',
          at,
          isTest: false,
        }))
      )
    ),
  settle: (app, leases, dueAt) =>
    app.db.retrying((tx) =>
      getDeliveryStore(app).settle(
        tx,
        leases.map((lease) => ({
          lease: lease as never,
          next: {
            status: dueAt === null ? ('sent' as const) : ('pending' as const),
            tries: 1,
            nextAttemptAt: dueAt,
            counts: null,
          },
          attempt: {
            at: '2026-01-01T00:00:00+00:00',
            request: { url: 'http://127.0.0.1/', headers: { a: 'b' } },
            answer: { status: 200, headers: {}, body: 'ok', truncated: false },
            error: null,
            duration_ms: 1,
            manual: false,
          },
          endedAt: 1,
        }))
      )
    ),
};

const records: Subject = {
  tableNames: ['switchboard_pos_events', 'switchboard_record_queue'],
  lapsed: { leased_until: 1000 },
  storeOf: getRecordStore as unknown as Subject['storeOf'],
  insert: (app, group, count, dueAt) =>
    app.db.retrying(async (tx) => {
      const rows = Array.from({ length: count }, () => {
        serial += 1;
        const common = { kind: 'sale', state: 'pending', body: '{}', tries: 0 };
        const external = { external_id: `${serial}`, external_digest: `${serial}` };
        return { id: serial, connection_id: group, ...common, ...external };
      });
      await getRecordStore(app).insert(tx, rows);
      const queued = rows.map((row) => ({ ...row, size: 2 }));
      await getRecordStore(app).enqueue(tx, queued, dueAt);
    }),
  async settle(app, leases, dueAt) {
    const outcome = {
      state: dueAt === null ? ('applied' as const) : ('pending' as const),
      tries: 0,
    };
    try {
      await app.db.retrying((tx) =>
        getRecordStore(app).settle(
          tx,
          leases.map((lease) => ({ lease, dueAt, outcome }))
        )
      );
      return new Set(leases.map(({ id }) => id));
    } catch (error) {
      // Of records all are settled or none.
      if (error instanceof LostLease) return new Set();
      throw error;
    }
  },
};

const SUBJECTS: Record<string, Subject> = { deliveries, records };

describeEach(databases(), 'work that waits', (kind) => {
  let name: string;
  let one: SmallSite;
  let other: SmallSite;
  const realNow = Date.now;

  beforeAll(async () => {
    fs.mkdirSync(SCRATCH, { recursive: true });
    name =
      kind === 'sqlite'
        ? path.join(SCRATCH, `work-contract-${process.pid}.db`)
        : await createDatabase(kind);
    one = await startSmallSite({}, 'http', { kind, name });
    other = await startSmallSite({}, 'http', { kind, name, hasTables: true });
    if (kind === 'sqlite') {
      // As the README has it. The driver waits without giving the event loop back, and the other
      // node, which has the lock, is in this very process.
      for (const { connection } of [one, other]) await connection.raw('PRAGMA busy_timeout = 50');
    }
    for (const id of [1, 2, 3]) {
      await one.connection('switchboard_webhooks').insert({ id, active: true, events: '[]' });
      await one.connection('switchboard_connections').insert({ id, name: 'till' });
    }
  }, 60_000);
  afterEach(() => {
    Date.now = realNow;
  });
  afterAll(async () => {
    await one?.close();
    await other?.close();
    if (kind === 'sqlite') fs.rmSync(name, { force: true });
    else await dropDatabase(kind, name);
  });

  describe.each(Object.entries(SUBJECTS))('in the store of %s', (_label, subject) => {
    const { tableNames, insert, settle } = subject;
    let store: WorkStore<Lease>;
    let second: WorkStore<Lease>;

    beforeEach(async () => {
      store = subject.storeOf(one.app);
      second = subject.storeOf(other.app);
      for (const name of tableNames) await one.connection(name).delete();
      await store.dueTimes();
    });

    it('is there if and only if its transaction commits', async () => {
      const rolledBack = one.app.db.transaction(async () => {
        await insert(one.app, 1, 2, store.now());
        throw new Error('the write fails');
      });
      await expect(rolledBack).rejects.toThrow('the write fails');
      expect(await store.dueTimes()).toEqual(new Map());
      await insert(one.app, 1, 2, store.now());
      expect(await store.claim(1, 5)).toHaveLength(2);
    });

    it('says when each group is next due', async () => {
      const now = store.now();
      await insert(one.app, 1, 1, now + 5000);
      await insert(one.app, 1, 1, now - 5000);
      await insert(one.app, 3, 1, now + 9000);
      const due = await second.dueTimes();
      expect([...due].sort()).toEqual([
        [1, now - 5000],
        [3, now + 9000],
      ]);
    });

    it('is taken in the order it is due, no more than asked for, and of its group alone', async () => {
      const now = store.now();
      for (const ago of [10, 30, 20, 40]) await insert(one.app, 1, 1, now - ago);
      await insert(one.app, 2, 1, now - 99);
      await insert(one.app, 1, 1, now + 60_000);
      const claimed = await store.claim(1, 3);
      expect(claimed.map(({ dueAt }) => now - dueAt)).toEqual([40, 30, 20]);
      expect(new Set(claimed.map(({ group }) => group))).toEqual(new Set([1]));
      expect(await store.claim(1, 3)).toHaveLength(1);
      expect(await store.claim(1, 3)).toEqual([]);
    });

    it('is held by one of two nodes, however many ask at once', async () => {
      await insert(one.app, 1, 120, store.now());
      const claims = await Promise.all(
        Array.from({ length: 12 }, (_none, index) => (index % 2 ? store : second).claim(1, 20))
      );
      const ids = claims.flat().map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      // What another one was about to take is left out by some databases; it is there for the next.
      for (let more = await store.claim(1, 200); more.length > 0; more = await store.claim(1, 200))
        ids.push(...more.map(({ id }) => id));
      expect(ids).toHaveLength(120);
    });

    it('comes back when a lease ends, and its first holder then changes nothing', async () => {
      await insert(one.app, 1, 1, store.now());
      const [first] = await store.claim(1, 1);
      await one.connection(tableNames.at(-1)).update(subject.lapsed);
      const [again] = await second.claim(1, 1);
      expect(again?.id).toBe(first?.id);
      expect(await settle(one.app, [first!], null)).toEqual(new Set());
      await store.release([first!]);
      expect(await second.claim(1, 1)).toEqual([]);
      expect(await settle(other.app, [again!], null)).toEqual(new Set([again!.id]));
      expect(await store.dueTimes()).toEqual(new Map());
    });

    it('that is given back is due as it was', async () => {
      const dueAt = store.now() - 1234;
      await insert(one.app, 2, 1, dueAt);
      await store.release(await store.claim(2, 1));
      expect(await second.dueTimes()).toEqual(new Map([[2, dueAt]]));
    });

    it('that is settled is due again when it was said, or never', async () => {
      await insert(one.app, 1, 2, store.now());
      const [ended, later] = await store.claim(1, 2);
      const dueAt = store.now() + 60_000;
      await settle(one.app, [ended!], null);
      await settle(one.app, [later!], dueAt);
      expect(await second.dueTimes()).toEqual(new Map([[1, dueAt]]));
    });

    it.each([-3_600_000, 3_600_000])(
      'goes by the database’s clock, though a node’s is %i ms off',
      async (off) => {
        await insert(one.app, 1, 1, store.now());
        await insert(one.app, 2, 1, store.now() + 60_000);
        Date.now = () => realNow() + off;
        const [held] = await store.claim(1, 1);
        expect(held).toBeDefined();
        expect(await store.claim(2, 1)).toEqual([]);
        Date.now = realNow;
        expect(await second.claim(1, 1)).toEqual([]);
        expect(Math.abs((held?.leaseUntil ?? 0) - realNow())).toBeLessThan(60_000);
      }
    );
  });

  describe('in the store of deliveries, inserted at once', () => {
    it.each([1, 2, 100, 250])('is as it was given, of %i', async (count) => {
      const store = getDeliveryStore(one.app);
      const at = store.now() - 1000;
      const given = Array.from({ length: count }, (_none, nth) => ({
        deliveryId: uuidV7(at),
        webhook: 1,
        url: 'http://127.0.0.1/{a,"b"}',
        event: 'contact.created',
        body: JSON.stringify({ nth, text: `{"NULL",\\'\n\t} ${'ä€😀'.repeat(nth % 3)}` }),
        at: at + nth,
        isTest: nth % 2 === 1,
      }));
      await one.connection('switchboard_deliveries').delete();
      await one.app.db.retrying((tx) => store.insert(tx, given));
      const claimed = await store.claim(1, count + 1);
      expect(
        claimed.map(({ dueAt, delivery: { deliveryId, body, isTest, status } }) => ({
          ...{ deliveryId, body, at: dueAt, isTest, status },
        }))
      ).toEqual(
        given.map(({ deliveryId, body, at: dueAt, isTest }) => ({
          ...{ deliveryId, body, at: dueAt, isTest, status: 'pending' },
        }))
      );
      const [row] = await one.connection('switchboard_deliveries').select('url', 'message_id');
      expect(row).toEqual({ url: 'http://127.0.0.1/{a,"b"}', message_id: null });
    });
  });

  describe('in the store of deliveries, of several groups at once', () => {
    const { insert, settle } = deliveries;
    const [tableName] = deliveries.tableNames;
    const storeIn = ({ app }: SmallSite) => getDeliveryStore(app);
    const rooms = (...groups: [number, number][]) =>
      groups.map(([group, limit]) => ({ group, limit }));

    beforeEach(async () => {
      await one.connection(tableName).delete();
      await storeIn(other).dueTimes();
    });

    it('is held for longer by who prolongs its lease, and by nobody else', async () => {
      await insert(one.app, 1, 2, storeIn(one).now());
      const [lost, held] = await storeIn(one).claim(1, 2);
      await one.connection(tableName).where({ id: lost!.id }).update({ due_at: 1000 });
      expect(await storeIn(other).claim(1, 2)).toHaveLength(1);
      await one.connection(tableName).update({ due_at: storeIn(one).now() + 500 });
      await storeIn(one).renew([lost!, held!]);
      const rows: { id: number; due_at: number | string }[] = await one
        .connection(tableName)
        .orderBy('id');
      const left = rows.map((row) => Number(row.due_at) - storeIn(one).now());
      expect(left[0]).toBeLessThan(1000);
      expect(left[1]).toBeGreaterThan(5000);
      expect(await settle(one.app, [lost!, held!], null)).toEqual(new Set([held!.id]));
    });

    it('is taken so much of each, in the order it is due', async () => {
      const now = storeIn(one).now();
      for (const group of [1, 2, 3]) {
        for (const ago of [10, 40, 20]) await insert(one.app, group, 1, now - ago - group);
      }
      await insert(one.app, 4, 1, now + 60_000);
      const claimed = await storeIn(one).claimGroups(rooms([1, 2], [3, 1], [4, 5]));
      expect(claimed.map(({ group, dueAt }) => [group, now - dueAt])).toEqual([
        [3, 43],
        [1, 41],
        [1, 21],
      ]);
      expect(claimed.map(({ delivery }) => JSON.parse(delivery.body))).toHaveLength(3);
      await storeIn(one).release(claimed);
      const again = await storeIn(other).claimGroups(rooms([1, 9], [2, 9], [3, 9]));
      expect(again.map(({ dueAt }) => now - dueAt)).toEqual([43, 42, 41, 23, 22, 21, 13, 12, 11]);
      expect(await storeIn(one).claimGroups(rooms([1, 9], [2, 9], [3, 9]))).toEqual([]);
    });

    it('is held by one of two nodes, however many ask at once', async () => {
      const groups = [1, 2, 3, 4, 5, 6, 7, 8];
      for (const group of groups) await insert(one.app, group, 15, storeIn(one).now());
      const ask = (index: number, limit: number) =>
        storeIn(index % 2 ? one : other).claimGroups(
          rooms(...groups.map((group): [number, number] => [group, limit]))
        );
      const claims = await Promise.all(Array.from({ length: 12 }, (_none, index) => ask(index, 2)));
      const ids = claims.flat().map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      for (let more = await ask(0, 20); more.length > 0; more = await ask(1, 20))
        ids.push(...more.map(({ id }) => id));
      expect(ids).toHaveLength(120);
    });
  });

  describe('in the store of deliveries, among many webhooks', () => {
    const { insert } = deliveries;
    const WEBHOOKS = 2000;
    const ids = Array.from({ length: WEBHOOKS }, (_none, at) => 1001 + at);
    const due = ids.filter((_id, at) => at % 200 === 7);
    const store = () => getDeliveryStore(one.app);

    /** As a node of an earlier version writes it. */
    const written = (webhook: number, dueAt: number | null) => ({
      document_id: uuidV7(Date.now()),
      webhook_id: webhook,
      event: 'contact.created',
      status: dueAt === null ? 'sent' : 'pending',
      tries: 0,
      is_test: false,
      due_at: dueAt,
      next_attempt_at: dueAt,
      url: 'http://127.0.0.1/',
      body: '{}',
      attempts: '[]',
    });
    const look = () => {
      const table = { name: 'switchboard_deliveries', schema: undefined, columns: {} };
      return one.app.db.dialect.waitingGroups({ ...table, groupColumn: 'webhook_id' }, 0, 500);
    };

    beforeAll(async () => {
      const { connection } = one;
      await connection('switchboard_deliveries').delete();
      const webhooks = ids.map((id) => ({ id, active: true, events: '[]' }));
      await connection.batchInsert('switchboard_webhooks', webhooks, 200);
      const finished = ids.flatMap((id) => [1, 2, 3].map(() => written(id, null)));
      await connection.batchInsert('switchboard_deliveries', finished, 50);
      if (kind !== 'mysql') await connection.raw('ANALYZE');
      for (const id of due) {
        await insert(one.app, id, 2, store().now() - id);
        await insert(one.app, id, 1, store().now() + 60_000);
      }
    });
    afterAll(async () => {
      await one.connection('switchboard_deliveries').delete();
      await one.connection('switchboard_webhooks').whereIn('id', ids).delete();
    });

    it('is looked for where there is some: a row for each such webhook', async () => {
      const { sql, bindings } = look();
      const rows = rowsOf<{ id: number }>(await one.connection.raw(sql, bindings));
      expect(rows.map(({ id }) => Number(id))).toEqual(due);
      expect([...(await store().dueTimes()).keys()]).toEqual(due);
    });

    it('is found by the index of what waits, and not among what is done', async () => {
      const { sql, bindings } = look();
      const explain = kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN';
      const plan = JSON.stringify(rowsOf(await one.connection.raw(`${explain} ${sql}`, bindings)));
      expect(plan).toContain('sb_delivery_waiting');
      expect(plan).not.toMatch(/Seq Scan|SCAN switchboard|"type":"ALL","[^}]*deliveries/);
      expect(plan).not.toMatch(/sb_delivery_(due|log|new|end)/);
    });

    it('is not served while its webhook is switched off, nor where it is gone', async () => {
      const [off, gone] = [due[0]!, due[1]!];
      const webhooks = () => one.connection('switchboard_webhooks');
      await webhooks().where({ id: off }).update({ active: false });
      await webhooks().where({ id: gone }).delete();
      expect([...(await store().dueTimes()).keys()]).toEqual(due.slice(2));
      await webhooks().where({ id: off }).update({ active: true });
      await webhooks().insert({ id: gone, active: true, events: '[]' });
      expect([...(await store().dueTimes()).keys()]).toEqual(due);
    });

    it('is found though a node of an earlier version wrote it, and forgotten once that finished it', async () => {
      const old = ids[3]!;
      const queue = () => one.connection('switchboard_deliveries');
      await queue().insert(written(old, 12_345));
      expect((await store().dueTimes()).get(old)).toBe(12_345);
      const held = queue().where({ webhook_id: old, due_at: 12_345 });
      await held.update({ owner: 'other', due_at: 54_321 });
      expect((await store().dueTimes()).get(old)).toBe(54_321);
      await queue().where({ webhook_id: old }).update({ due_at: null, owner: null });
      expect([...(await store().dueTimes()).keys()]).toEqual(due);
    });

    it('is found of more webhooks than one statement looks for', async () => {
      const rows = ids.map((id) => written(id, id));
      await one.connection.batchInsert('switchboard_deliveries', rows, 50);
      const all = await store().dueTimes();
      expect([...all.keys()]).toEqual(ids);
      expect([...all].every(([id, dueAt]) => dueAt === id)).toBe(true);
    });
  });

  describe('in the store of deliveries, with a cap', () => {
    const { insert, settle } = deliveries;
    const [tableName] = deliveries.tableNames;
    const storeIn = ({ app }: SmallSite) => getDeliveryStore(app);
    const claim = (site: SmallSite, limit: number, atOnce: number, except: number[] = []) =>
      storeIn(site).claimWithin(1, limit, { atOnce, except });

    beforeEach(async () => {
      await one.connection(tableName).delete();
      await insert(one.app, 1, 40, storeIn(one).now());
      await storeIn(other).dueTimes();
    });

    // MySQL has no lock of a transaction's own but those of rows; SQLite has one writer.
    if (kind === 'postgres') {
      it('is claimed while somebody records failures of its group', async () => {
        const recording = await other.connection.transaction();
        try {
          await recording('switchboard_webhooks').where({ id: 1 }).forUpdate();
          expect((await claim(one, 3, 7)).leases).toHaveLength(3);
        } finally {
          await recording.rollback();
        }
      });
    }

    it('never has more under a lease, however many nodes ask at once', async () => {
      await insert(one.app, 2, 5, storeIn(one).now());
      await storeIn(one).claim(2, 5);
      const claims = await Promise.all(
        Array.from({ length: 12 }, (_none, index) => claim(index % 2 ? one : other, 3, 7))
      );
      expect(claims.flatMap(({ leases }) => leases)).toHaveLength(7);
      expect(claims.filter(({ isFull }) => !isFull).length).toBeLessThan(3);
      expect(await claim(one, 3, 7)).toMatchObject({ leases: [], isFull: true });
    });

    it('gives what was settled, and what is as good as settled, to the next one', async () => {
      const { leases } = await claim(one, 5, 5);
      await settle(one.app, leases.slice(0, 2), null);
      expect((await claim(other, 9, 5)).leases).toHaveLength(2);
      const done = leases.slice(2).map(({ id }) => id);
      expect((await claim(one, 9, 5, done)).leases).toHaveLength(3);
      expect(await claim(other, 9, 5)).toMatchObject({ leases: [], isFull: true });
    });

    it('is claimed in advance by a node that alone holds any, and by nobody beside it', async () => {
      const ahead = (own: readonly Lease[], limit: number) => ({
        atOnce: 5,
        except: [],
        ahead: { own: own.map(({ id }) => id), limit },
      });
      const first = await storeIn(one).claimWithin(1, 5, ahead([], 9));
      expect(first).toMatchObject({ isFull: true, isAlone: true });
      expect(first.leases).toHaveLength(9);
      const second = await storeIn(one).claimWithin(1, 0, ahead(first.leases, 4));
      expect(second).toMatchObject({ isFull: true, isAlone: true });
      expect(second.leases).toHaveLength(4);
      expect(await storeIn(other).claimWithin(1, 5, ahead([], 9))).toEqual({
        leases: [],
        isFull: true,
        isAlone: false,
      });
      const all = [...first.leases, ...second.leases];
      await settle(one.app, all.slice(0, 10), null);
      expect((await storeIn(other).claimWithin(1, 5, ahead([], 9))).leases).toHaveLength(2);
      expect(await storeIn(one).claimWithin(1, 5, ahead(all.slice(10), 9))).toEqual({
        leases: [],
        isFull: true,
        isAlone: false,
      });
    });

    it('does not count leases that have ended, nor rows that wait for their time', async () => {
      const { leases } = await claim(one, 5, 5);
      const expired = { due_at: storeIn(one).now() - 1000 };
      await one.connection(tableName).where({ id: leases[0]!.id }).update(expired);
      await insert(one.app, 1, 30, storeIn(one).now() + 5000);
      const next = await claim(other, 9, 5);
      expect(next.leases.map(({ id }) => id)).toEqual([leases[0]!.id]);
      expect(next.isFull).toBe(true);
    });
  });

  describe.each(Object.entries(ENGINES))('with the engine %s', (_engine, engine) => {
    const { storeOf, insert, settle } = deliveries;
    const schedulers: Scheduler[] = [];
    const errors: string[] = [];
    let done: number[] = [];
    /** By the store's clock. */
    let firstDoneAt = 0;

    const serve = (
      { app }: SmallSite,
      changes: { pollMs?: number; shape?: 'slots' | 'batches' } = {}
    ) => {
      const log = { error: (line: string) => void errors.push(line) };
      const scheduler = engine.create(log);
      schedulers.push(scheduler);
      const store = storeOf(app) as CappedWorkStore<Lease>;
      const announce = (_group: number | null = null, at = store.now()) =>
        scheduler.announce('work', null, at);
      const record = async (leases: readonly Lease[]) => {
        const recordedAt = store.now();
        const held = await settle(app, leases, null);
        if (done.length === 0) firstDoneAt = recordedAt;
        done.push(...held);
      };
      const options = {
        name: 'work',
        store,
        log,
        reserveMs: 1000,
        renewMs: 2500,
        longestMs: 15_000,
        pollMs: changes.pollMs ?? 60_000,
        announce,
      };
      scheduler.serve(
        'work',
        changes.shape === 'batches'
          ? createBatchWorker({ ...options, claimAtOnce: 20, keepMs: 60_000, consume: record })
          : createSlotWorker<Lease, Lease>({
              ...options,
              detached: (work) => work(),
              concurrency: 16,
              concurrencyPerGroup: 8,
              perform: async (lease) => lease,
              healthy: () => true,
              record,
            })
      );
      return { scheduler, announce, store };
    };

    beforeAll(() => engine.open?.());
    afterAll(() => engine.close?.());
    beforeEach(async () => {
      await one.connection('switchboard_deliveries').delete();
      errors.length = 0;
      done = [];
    });
    afterEach(async () => {
      const ending = schedulers.splice(0);
      await Promise.all(ending.map((scheduler) => scheduler.stop()));
      await Promise.all(ending.map((scheduler) => scheduler.close()));
    });

    it.each(['slots', 'batches'] as const)(
      'is done once each by two nodes, in %s',
      async (shape) => {
        const first = serve(one, { shape });
        const second = serve(other, { shape });
        for (const group of [1, 2, 3]) await insert(one.app, group, 100, first.store.now());
        first.announce();
        second.announce();
        await waitFor(async () => done.length >= 300, 30_000);
        expect(new Set(done).size).toBe(300);
        expect(errors).toEqual([]);
      }
    );

    it('is done soon after it was announced, and not before it is due', async () => {
      const { announce, store, scheduler } = serve(one);
      const dueAt = store.now() + 700;
      await insert(one.app, 1, 1, dueAt);
      scheduler.announce('work', 1, dueAt);
      await waitFor(async () => done.length === 1, 30_000);
      // The database's clock decides; a node knows it to some milliseconds.
      expect(firstDoneAt).toBeGreaterThan(dueAt - 300);
      await insert(one.app, 2, 1, store.now());
      announce();
      await waitFor(async () => done.length === 2, 30_000);
    });

    it('is done though every announcement of it was lost', async () => {
      const { announce, store } = serve(one, { pollMs: 200 });
      // Something waits for later, so that the engine looks again and again.
      await insert(one.app, 3, 1, store.now() + 3_600_000);
      announce();
      await sleep(100);
      await insert(other.app, 1, 3, store.now());
      await waitFor(async () => done.length === 3, 30_000);
    });

    it('is not begun after a stop, which waits for what was', async () => {
      const { announce, store, scheduler } = serve(one);
      await insert(one.app, 1, 50, store.now());
      announce();
      await waitFor(async () => done.length > 0, 30_000);
      await scheduler.stop();
      const ended = done.length;
      await insert(one.app, 2, 5, store.now());
      announce();
      await sleep(200);
      expect(done).toHaveLength(ended);
      // Nothing is left under a lease: the other node may have all of the rest now.
      const rest = serve(other);
      rest.announce();
      // A ticket that the first node was just given, and never worked on, is nobody's until its lock lapses.
      await waitFor(async () => done.length === 55, 90_000);
      expect(new Set(done).size).toBe(55);
    }, 120_000);

    it('goes on after a look that failed', async () => {
      const { announce, store } = serve(one);
      await insert(one.app, 1, 1, store.now());
      const { dueTimes } = store;
      let failures = 0;
      store.dueTimes = async () => {
        failures += 1;
        if (failures === 1) throw new Error('the database is away');
        return dueTimes();
      };
      announce();
      await waitFor(async () => done.length === 1, 30_000);
      store.dueTimes = dueTimes;
      expect(errors.join()).toContain('the database is away');
    });

    it('is announced without an error, whatever is asked', () => {
      const { scheduler } = serve(one);
      expect(() => scheduler.announce('nobody serves it', 1, 0)).not.toThrow();
    });
  });
});
