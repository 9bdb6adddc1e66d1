import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from '../../server/src/app';
import { getRecordStore, LostLease } from '../../server/src/pos/processing/record-store';
import { createEmbeddedScheduler } from '../../server/src/scheduling/embedded-scheduler';
import {
  type BullmqPackages,
  createBullmqScheduler,
  loadBullmq,
} from '../../server/src/scheduling/bullmq/scheduler';
import { BatchWorker } from '../../server/src/pos/processing/batch-worker';
import { SlotWorker } from '../../server/src/scheduling/slot-worker';
import type {
  CappedWorkStore,
  Scheduler,
  WorkerLog,
  WorkStore,
} from '../../server/src/scheduling/types';
import type { Lease } from '../../server/src/queue/queue';
import { getDeliveryStore } from '../../server/src/webhooks/deliveries/store';
import { queueDeliveries } from '../../server/src/webhooks/publish';
import { uuidV7 } from '../../server/src/runtime/ids';
import {
  anyDatabase,
  createDatabase,
  databases,
  describeEach,
  dropDatabase,
} from '../support/databases';
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
  storeOf(app: App): WorkStore<Lease>;
  /** Queues rows of a group within the current transaction or one of its own. */
  insert(app: App, group: number, count: number, dueAt: number): Promise<void>;
  /** Settles rows as done, or as due again. @returns the ids whose lease held */
  settle(app: App, leases: readonly Lease[], dueAt: number | null): Promise<Set<number>>;
}

let serial = 0;

const deliveries: Subject = {
  tableNames: ['switchboard_deliveries', 'switchboard_delivery_queue'],
  storeOf: getDeliveryStore as unknown as Subject['storeOf'],
  insert: (app, webhook, count, at) =>
    app.db.retrying(async (tx) => {
      const made = Array.from({ length: count }, () => ({
        ...{ deliveryId: uuidV7(Date.now()), webhook, url: 'http://127.0.0.1/' },
        ...{ event: 'contact.created', body: '{}', at, isTest: false },
      }));
      await queueDeliveries(getDeliveryStore(app), tx, made);
    }),
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
            ...{ at: Date.UTC(2026, 0, 1), url: 'http://127.0.0.1/', request_headers: '{"a":"b"}' },
            ...{ status: 200, answer_headers: '{}', answer_body: 'ok', truncated: false },
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
  storeOf: getRecordStore as unknown as Subject['storeOf'],
  insert: (app, group, count, dueAt) =>
    app.db.retrying(async (tx) => {
      const rows = Array.from({ length: count }, () => {
        serial += 1;
        const common = { kind: 'sale', state: 'pending', body: '{}', tries: 0 };
        const external = { external_id: `${serial}`, external_digest: `${serial}` };
        return { id: serial, connection_id: group, ...common, ...external };
      });
      await tx.insert('switchboard_pos_events', rows);
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
      expect(await store.claim([{ group: 1, limit: 5 }])).toHaveLength(2);
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
      const claimed = await store.claim([{ group: 1, limit: 3 }]);
      expect(claimed.map(({ dueAt }) => now - dueAt)).toEqual([40, 30, 20]);
      expect(new Set(claimed.map(({ group }) => group))).toEqual(new Set([1]));
      expect(await store.claim([{ group: 1, limit: 3 }])).toHaveLength(1);
      expect(await store.claim([{ group: 1, limit: 3 }])).toEqual([]);
    });

    it('is held by one of two nodes, however many ask at once', async () => {
      await insert(one.app, 1, 120, store.now());
      const claims = await Promise.all(
        Array.from({ length: 12 }, (_none, index) =>
          (index % 2 ? store : second).claim([{ group: 1, limit: 20 }])
        )
      );
      const ids = claims.flat().map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      // What another one was about to take is left out by some databases; it is there for the next.
      for (
        let more = await store.claim([{ group: 1, limit: 200 }]);
        more.length > 0;
        more = await store.claim([{ group: 1, limit: 200 }])
      )
        ids.push(...more.map(({ id }) => id));
      expect(ids).toHaveLength(120);
    });

    it('comes back when a lease ends, and its first holder then changes nothing', async () => {
      // On a busy machine two nodes read the database's clock some milliseconds apart.
      await insert(one.app, 1, 1, store.now() - 1000);
      const [first] = await store.claim([{ group: 1, limit: 1 }]);
      await one.connection(tableNames.at(-1)).update({ leased_until: 1000 });
      const [again] = await second.claim([{ group: 1, limit: 1 }]);
      expect(again?.id).toBe(first?.id);
      expect(await settle(one.app, [first!], null)).toEqual(new Set());
      await store.release([first!]);
      expect(await second.claim([{ group: 1, limit: 1 }])).toEqual([]);
      expect(await settle(other.app, [again!], null)).toEqual(new Set([again!.id]));
      expect(await store.dueTimes()).toEqual(new Map());
    });

    it('that is given back is due as it was', async () => {
      const dueAt = store.now() - 1234;
      await insert(one.app, 2, 1, dueAt);
      await store.release(await store.claim([{ group: 2, limit: 1 }]));
      expect(await second.dueTimes()).toEqual(new Map([[2, dueAt]]));
    });

    it('that is settled is due again when it was said, or never', async () => {
      await insert(one.app, 1, 2, store.now());
      const [ended, later] = await store.claim([{ group: 1, limit: 2 }]);
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
        const [held] = await store.claim([{ group: 1, limit: 1 }]);
        expect(held).toBeDefined();
        expect(await store.claim([{ group: 2, limit: 1 }])).toEqual([]);
        Date.now = realNow;
        expect(await second.claim([{ group: 1, limit: 1 }])).toEqual([]);
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
      for (const name of deliveries.tableNames) await one.connection(name).delete();
      await one.app.db.retrying((tx) => queueDeliveries(store, tx, given));
      const claimed = await store.claim([{ group: 1, limit: count + 1 }]);
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

  // MySQL has no lock of a transaction's own but those of rows; SQLite has one writer.
  if (kind === 'postgres') {
    it('is claimed under a cap while somebody records failures of its group', async () => {
      const store = getDeliveryStore(one.app);
      await deliveries.insert(one.app, 1, 40, store.now());
      const recording = await other.connection.transaction();
      try {
        await recording('switchboard_webhooks').where({ id: 1 }).forUpdate();
        const { leases } = await store.claimWithin(1, 3, { atOnce: 7, except: [] });
        expect(leases).toHaveLength(3);
      } finally {
        await recording.rollback();
      }
    });
  }

  // What the engines ask of a database is the same.
  const engines = Object.entries(ENGINES).filter(
    ([name]) => name === 'embedded' || anyDatabase().includes(kind)
  );
  describe.each(engines)('with the engine %s', (_engine, engine) => {
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
          ? new BatchWorker({ ...options, claimAtOnce: 20, keepMs: 60_000, consume: record })
          : new SlotWorker<Lease, Lease>({
              ...options,
              detached: (work) => work(),
              concurrency: 16,
              concurrencyPerGroup: 8,
              pace: () => ({ together: 8, restMs: 0 }),
              perform: async (lease) => lease,
              judge: () => ({ healthy: true }),
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
      const dueTimes = store.dueTimes.bind(store);
      let failures = 0;
      store.dueTimes = async () => {
        failures += 1;
        if (failures === 1) throw new Error('the database is away');
        return dueTimes();
      };
      announce();
      // The look of its start may find the row before the one that fails.
      const isSaid = () => errors.join().includes('the database is away');
      await waitFor(async () => done.length === 1 && isSaid(), 30_000);
      store.dueTimes = dueTimes;
    });

    it('is announced without an error, whatever is asked', () => {
      const { scheduler } = serve(one);
      expect(() => scheduler.announce('nobody serves it', 1, 0)).not.toThrow();
    });
  });
});
