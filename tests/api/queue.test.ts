import fs from 'node:fs';
import path from 'node:path';
import { rowsOf } from '../../server/src/database/connection';
import type { Tx } from '../../server/src/database/db';
import { ensureTables } from '../../server/src/database/tables/plain-tables';
import { freeRows, queueDialectOf } from '../../server/src/queue/dialects';
import {
  type LeasedRow,
  type NewRow,
  type NextPlace,
  Queue,
  queueTable,
} from '../../server/src/queue/queue';
import { createDatabase, databases, describeEach, dropDatabase } from '../support/databases';
import { SCRATCH } from '../support/paths';
import { catchUp, type SmallSite, startSmallSite } from '../support/small-site';

/** What the queue keeps on every database: the class by itself, with two pools for two nodes. */
const TABLE = 'switchboard_test_queue';
const GROUPS = 'switchboard_test_groups';
const INDEX = 'sb_test_queue';
const LEASE_MS = 8000;

const tables = [
  queueTable(TABLE, INDEX, { note: { type: 'string' } }),
  {
    tableName: GROUPS,
    attributes: { id: { type: 'increments' as const }, active: { type: 'boolean' as const } },
  },
];

interface Node {
  site: SmallSite;
  queue: Queue;
}

describeEach(databases(), 'the queue', (kind) => {
  let name: string;
  let one: Node;
  let other: Node;
  let serial = 0;
  const realNow = Date.now;

  const startNode = async (): Promise<Node> => {
    const site = await startSmallSite({}, 'http', { kind, name, hasTables: true });
    // The driver waits without giving the event loop back, and the other node is in this process.
    if (kind === 'sqlite') await site.connection.raw('PRAGMA busy_timeout = 50');
    // As the README has it; without it knex leaves a transaction open whose commit is refused.
    if (kind === 'sqlite') await site.connection.raw('PRAGMA journal_mode = WAL');
    const queue = new Queue(site.app.db, {
      tableName: TABLE,
      groups: { tableName: GROUPS, where: { active: true } },
      leaseMs: LEASE_MS,
    });
    return { site, queue };
  };

  beforeAll(async () => {
    fs.mkdirSync(SCRATCH, { recursive: true });
    name =
      kind === 'sqlite'
        ? path.join(SCRATCH, `queue-${process.pid}.db`)
        : await createDatabase(kind);
    one = await startNode();
    await ensureTables(one.site.strapi, tables);
    other = await startNode();
    for (const id of [1, 2, 3, 4]) await one.site.connection(GROUPS).insert({ id, active: true });
    await one.site.connection(GROUPS).insert({ id: 9, active: false });
  }, 60_000);
  beforeEach(async () => {
    await one.site.connection(TABLE).delete();
    await one.queue.due();
    await other.queue.due();
  });
  afterEach(() => {
    Date.now = realNow;
  });
  afterAll(async () => {
    await one?.site.close();
    await other?.site.close();
    if (kind === 'sqlite')
      for (const end of ['', '-wal', '-shm']) fs.rmSync(name + end, { force: true });
    else await dropDatabase(kind, name);
  });

  const rows = () => one.site.connection(TABLE);
  const now = () => one.queue.now();

  const newRows = (group: number, count: number, dueAt: number): NewRow[] =>
    Array.from({ length: count }, () => {
      serial += 1;
      return { id: serial, group, dueAt, columns: { note: `note ${serial}` } };
    });

  /** Queues rows in a transaction of their own. @returns their ids */
  const insert = async (
    group: number,
    count = 1,
    // The nodes' clocks differ a little.
    dueAt = now() - 500,
    node: Node = one
  ): Promise<number[]> => {
    const made = newRows(group, count, dueAt);
    await node.site.app.db.retrying((tx) => node.queue.insert(tx, made));
    return made.map(({ id }) => id);
  };

  const settle = (
    node: Node,
    leases: readonly LeasedRow[],
    next: NextPlace | null = null
  ): Promise<Set<number>> =>
    node.site.app.db.retrying((tx) =>
      node.queue.settle(
        tx,
        leases.map((lease) => ({ lease, next }))
      )
    );

  const claim = async (
    group: number,
    limit: number,
    { queue }: Node = one
  ): Promise<LeasedRow[]> => {
    await catchUp(queue, [one.queue, other.queue]);
    return queue.claim([{ group, limit }]);
  };

  const idsOf = (leases: readonly LeasedRow[]): number[] => leases.map(({ id }) => id);

  /** Their holder is killed, and its leases end. */
  const lapse = (leases: readonly LeasedRow[]) =>
    rows()
      .whereIn('id', idsOf(leases))
      .update({ leased_until: now() - 1000 });

  const within = <T>(node: Node, work: (queue: Queue, tx: Tx) => Promise<T>): Promise<T> =>
    node.site.app.db.retrying((tx) => work(node.queue, tx));

  const end = (id: number): Promise<void> =>
    within(one, (queue, tx) => queue.move(tx, [id], { dueAt: now(), state: 'ended' }));

  const stateOf = async (id: number): Promise<string | null> => {
    const found = await one.queue.find(one.site.app.db.pool, [id]);
    return found.get(id)?.state ?? null;
  };

  describe('what is queued', () => {
    it('is there if and only if its transaction commits', async () => {
      const rolledBack = one.site.app.db.transaction(async (tx) => {
        await one.queue.insert(tx, newRows(1, 2, now()));
        throw new Error('the write fails');
      });
      await expect(rolledBack).rejects.toThrow('the write fails');
      expect(await one.queue.due()).toEqual(new Map());
      const ids = await insert(1, 2);
      expect(idsOf(await claim(1, 5))).toEqual(ids);
    });

    it('is as it was given', async () => {
      const at = now() - 1000;
      const [id] = await insert(1, 1, at);
      expect(await claim(1, 1)).toEqual([
        {
          ...{ id, group: 1, state: 'ready', dueAt: at, columns: { note: `note ${id}` } },
          ...{ owner: expect.any(String), leaseUntil: expect.any(Number) },
        },
      ]);
    });

    it('is claimed and settled within the transaction that queued it, on one connection too', async () => {
      await one.site.app.db.transaction(async (tx) => {
        const [row] = newRows(1, 1, now());
        await one.queue.insert(tx, [row!]);
        expect((await one.queue.due()).get(1)).toBe(row!.dueAt);
        const [lease] = await claim(1, 1);
        expect(lease?.id).toBe(row!.id);
        expect(await claim(1, 1)).toEqual([]);
        await one.queue.renew([lease!]);
        await one.queue.release([lease!]);
        const [again] = await claim(1, 1);
        expect(await one.queue.settle(tx, [{ lease: again!, next: null }])).toEqual(
          new Set([row!.id])
        );
      });
      expect(await rows()).toEqual([]);
    });

    it('is queued and settled by the thousand, in statements that the database takes', async () => {
      const ids = await insert(1, 5000);
      const claimed = await claim(1, 5000);
      expect(idsOf(claimed)).toEqual(ids);
      await one.queue.renew(claimed);
      const dueAt = now() + 60_000;
      const held = await within(other, (queue, tx) =>
        queue.settle(
          tx,
          claimed.map((lease, at) => ({ lease, next: at % 2 ? { dueAt } : null }))
        )
      );
      expect(held.size).toBe(5000);
      expect(await one.queue.due()).toEqual(new Map([[1, dueAt]]));
      expect(await rows()).toHaveLength(2500);
    });
  });

  describe('when groups are due', () => {
    it('is when the first row of each is', async () => {
      const at = now();
      await insert(1, 1, at + 5000);
      await insert(1, 1, at - 5000);
      await insert(3, 1, at + 9000);
      expect([...(await other.queue.due())]).toEqual([
        [1, at - 5000],
        [3, at + 9000],
      ]);
    });

    it('is past what is leased at the head, and the end of the first lease where all of it is', async () => {
      const at = now();
      await insert(1, 3, at - 3000);
      const leases = await claim(1, 3);
      await rows()
        .where({ id: leases[1]!.id })
        .update({ leased_until: at + 500 });
      expect(await other.queue.due()).toEqual(new Map([[1, at + 500]]));
      // Due before that lease ends, and after it.
      await insert(1, 1, at + 400);
      expect(await other.queue.due()).toEqual(new Map([[1, at + 400]]));
      await rows()
        .where({ due_at: at + 400 })
        .update({ due_at: at + 700 });
      expect(await other.queue.due()).toEqual(new Map([[1, at + 500]]));
      await insert(1, 1, at - 1);
      expect(await other.queue.due()).toEqual(new Map([[1, at - 1]]));
      await lapse(leases);
      expect(await other.queue.due()).toEqual(new Map([[1, at - 3000]]));
    });

    it('says nothing of groups that are not served or gone, nor of what is parked or has ended', async () => {
      await insert(9);
      await insert(77);
      const [parked, ended] = await insert(1, 2);
      await within(one, (queue, tx) => queue.setState(tx, [parked!], 'parked', 'ready'));
      await end(ended!);
      expect(await one.queue.due()).toEqual(new Map());
      await one.site.connection(GROUPS).where({ id: 9 }).update({ active: true });
      expect([...(await other.queue.due()).keys()]).toEqual([9]);
      await one.site.connection(GROUPS).where({ id: 9 }).update({ active: false });
    });

    describe('among many of them', () => {
      const many = Array.from({ length: 1200 }, (_none, at) => 1001 + at);

      beforeAll(async () => {
        const groups = many.map((id) => ({ id, active: true }));
        await one.site.connection.batchInsert(GROUPS, groups, 200);
      });
      afterAll(() => one.site.connection(GROUPS).whereIn('id', many).delete());

      it('is found of each, however many rows another one has', async () => {
        const at = now();
        await insert(1001, 3000, at - 10);
        const sparse = many.filter((_id, nth) => nth > 0 && nth % 2 === 0);
        await one.site.app.db.retrying((tx) =>
          one.queue.insert(
            tx,
            sparse.flatMap((id) => newRows(id, 1, at - id))
          )
        );
        const due = await other.queue.due();
        expect([...due.keys()]).toEqual([1001, ...sparse]);
        expect(sparse.every((id) => due.get(id) === at - id)).toBe(true);
        // The group that has waited longest comes first, and one with many rows does not hide it.
        const [first] = [...due].sort((a, b) => a[1] - b[1]);
        expect(first?.[0]).toBe(sparse.at(-1));
      });

      it('is found by the index, and not among what is parked', async () => {
        const ids = await insert(1001, 3000);
        await within(one, (queue, tx) => queue.setState(tx, ids, 'parked', 'ready'));
        for (const id of [1007, 1207, 1407]) await insert(id, 2);
        if (kind !== 'mysql')
          await one.site.connection.raw(`ANALYZE ${kind === 'sqlite' ? '' : TABLE}`);
        const { sql, bindings } = queueDialectOf(one.site.app.db.client).groupsAfter(TABLE, 0, 500);
        const found = rowsOf<{ id: number }>(await one.site.connection.raw(sql, [...bindings]));
        expect(found.map(({ id }) => Number(id))).toEqual([1007, 1207, 1407]);
        expect(await planOf(sql, bindings)).toContain(INDEX);
      });
    });
  });

  const planOf = async (sql: string, bindings: readonly unknown[]): Promise<string> => {
    const explain = kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN';
    const answer = await one.site.connection.raw(`${explain} ${sql}`, [...bindings] as never);
    const plan = JSON.stringify(rowsOf(answer));
    expect(plan).not.toMatch(/Seq Scan|SCAN switchboard|"table":"switchboard[^}]*"type":"ALL"/);
    return plan;
  };

  describe('a claim', () => {
    it('takes what has been due longest, no more than asked for, and of its group alone', async () => {
      const at = now();
      for (const ago of [10, 30, 20, 40]) await insert(1, 1, at - ago);
      await insert(2, 1, at - 99);
      await insert(1, 1, at + 60_000);
      const claimed = await claim(1, 3);
      expect(claimed.map(({ dueAt }) => at - dueAt)).toEqual([40, 30, 20]);
      expect(new Set(claimed.map(({ group }) => group))).toEqual(new Set([1]));
      expect(await claim(1, 3)).toHaveLength(1);
      expect(await claim(1, 3)).toEqual([]);
    });

    it('takes so much of each of several groups', async () => {
      const at = now();
      for (const group of [1, 2, 3])
        for (const ago of [10, 40, 20]) await insert(group, 1, at - ago - group);
      await insert(4, 1, at + 60_000);
      const rooms = [
        { group: 1, limit: 2 },
        { group: 3, limit: 1 },
        { group: 4, limit: 5 },
      ];
      const claimed = await one.queue.claim(rooms);
      expect(claimed.map(({ group, dueAt }) => [group, at - dueAt])).toEqual([
        [3, 43],
        [1, 41],
        [1, 21],
      ]);
      await one.queue.release(claimed);
      const all = [1, 2, 3].map((group) => ({ group, limit: 9 }));
      const again = await other.queue.claim(all);
      expect(again.map(({ dueAt }) => at - dueAt)).toEqual([43, 42, 41, 23, 22, 21, 13, 12, 11]);
      expect(await one.queue.claim(all)).toEqual([]);
    });

    it('overlaps with no other one, however many ask at once', async () => {
      for (const group of [1, 2]) await insert(group, 120);
      const ask = (index: number, limit: number) =>
        (index % 2 ? one : other).queue.claim(
          index % 3 ? [{ group: 1, limit }] : [1, 2].map((group) => ({ group, limit }))
        );
      const claims = await Promise.all(
        Array.from({ length: 24 }, (_none, index) => ask(index, 10))
      );
      const ids = claims.flatMap(idsOf);
      // What another one was about to take is passed over by some databases; it is there for the next.
      for (let more = await ask(0, 200); more.length > 0; more = await ask(0, 200))
        ids.push(...idsOf(more));
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids).toHaveLength(240);
    });

    it('takes 10,000 rows of one due time in the order of their ids, and reads no more than it takes', async () => {
      const ids = await insert(1, 10_000, now() - 60_000);
      await insert(2, 2000, now() - 60_000);
      const tables = { sqlite: '', postgres: ` ${TABLE}`, mysql: ` TABLE ${TABLE}` };
      await one.site.connection.raw(`ANALYZE${tables[kind]}`);
      const plan = await planOf(freeRows(TABLE), [1, now(), now(), 500]);
      expect(plan).toContain(INDEX);
      expect(plan).not.toMatch(/Sort|TEMP B-TREE|filesort/);
      const claimed: number[] = [];
      for (let part = await claim(1, 500); part.length > 0; part = await claim(1, 500))
        claimed.push(...idsOf(part));
      expect(claimed).toEqual(ids);
    }, 60_000);

    it.each([-3_600_000, 3_600_000])(
      'goes by the database’s clock, though its process’s is %i ms off',
      async (off) => {
        await insert(1);
        await insert(2, 1, now() + 60_000);
        Date.now = () => realNow() + off;
        const [held] = await claim(1, 1);
        expect(held).toBeDefined();
        expect(await claim(2, 1)).toEqual([]);
        Date.now = realNow;
        expect(await claim(1, 1, other)).toEqual([]);
        expect(Math.abs((held?.leaseUntil ?? 0) - realNow())).toBeLessThan(60_000);
      }
    );

    it('settles once each though two nodes’ clocks differ by more than a lease', async () => {
      const ids = await insert(1, 40);
      const clock = other.site.app.clock;
      const exact = clock.now.bind(clock);
      try {
        clock.now = () => exact() + LEASE_MS + 5000;
        const early = await claim(1, 40);
        const late = await claim(1, 20, other);
        expect(idsOf(late)).toEqual(ids.slice(0, 20));
        // Whoever leased last holds it; by the slow clock that lease lasts longer, and not for ever.
        expect(await settle(one, early)).toEqual(new Set(ids.slice(20)));
        expect(await claim(1, 40)).toEqual([]);
        expect(await settle(other, late)).toEqual(new Set(ids.slice(0, 20)));
      } finally {
        clock.now = exact;
      }
      expect(await rows()).toEqual([]);
    });
  });

  describe('a lease', () => {
    it('that its killed holder leaves ends by itself: the rows are before what has come since', async () => {
      const at = now() - 60_000;
      const first = await insert(1, 5, at);
      const lost = await claim(1, 5);
      const since = await insert(1, 5, at + 1000);
      expect(idsOf(await claim(1, 2, other))).toEqual(since.slice(0, 2));
      await lapse(lost);
      const next = await claim(1, 7, other);
      expect(idsOf(next)).toEqual([...first, ...since.slice(2, 4)]);
      expect(next.slice(0, 5).every(({ dueAt }) => dueAt === at)).toBe(true);
    });

    it('is over for who lost it: nothing is settled, renewed or given back', async () => {
      await insert(1);
      const [first] = await claim(1, 1);
      await lapse([first!]);
      const [again] = await claim(1, 1, other);
      expect(again?.id).toBe(first?.id);
      expect(await settle(one, [first!])).toEqual(new Set());
      expect(await settle(one, [first!], { dueAt: 1 })).toEqual(new Set());
      await one.queue.release([first!]);
      expect(await claim(1, 1, other)).toEqual([]);
      await rows().update({ leased_until: now() + 500 });
      await one.queue.renew([first!]);
      const [row] = await rows();
      expect(Number(row.leased_until) - now()).toBeLessThan(1000);
      expect(await settle(other, [again!])).toEqual(new Set([again!.id]));
      expect(await one.queue.due()).toEqual(new Map());
    });

    it('lasts longer for who renews it', async () => {
      await insert(1, 2);
      const [lost, held] = await claim(1, 2);
      await lapse([lost!]);
      await claim(1, 2, other);
      await rows().update({ leased_until: now() + 500 });
      await one.queue.renew([lost!, held!]);
      const left = (await rows().orderBy('id')).map(
        (row: { leased_until: number }) => Number(row.leased_until) - now()
      );
      expect(left[0]).toBeLessThan(1000);
      expect(left[1]).toBeGreaterThan(5000);
      expect(await settle(one, [lost!, held!])).toEqual(new Set([held!.id]));
    });

    it('that is given back leaves the row in its place', async () => {
      const dueAt = now() - 1234;
      const ids = await insert(2, 3, dueAt);
      await one.queue.release(await claim(2, 2));
      expect(await other.queue.due()).toEqual(new Map([[2, dueAt]]));
      expect(idsOf(await claim(2, 9, other))).toEqual(ids);
    });

    it('that is settled ends the row, or has it due again when it was said', async () => {
      await insert(1, 2);
      const [ended, later] = await claim(1, 2);
      const dueAt = now() + 60_000;
      await settle(one, [ended!]);
      await settle(one, [later!], { dueAt, columns: { note: 'again' } });
      expect(await other.queue.due()).toEqual(new Map([[1, dueAt]]));
      const found = await one.queue.find(one.site.app.db.pool, [ended!.id, later!.id]);
      expect([...found.values()]).toEqual([
        {
          id: later!.id,
          group: 1,
          state: 'ready',
          dueAt,
          isHeld: false,
          columns: { note: 'again' },
        },
      ]);
    });

    it('that is settled in a transaction that rolls back is as before', async () => {
      const at = now() - 10;
      const [, second] = await insert(1, 2, at);
      const [done, later] = await claim(1, 2);
      const rolledBack = one.site.app.db.transaction(async (tx) => {
        const held = await one.queue.settle(tx, [
          { lease: done!, next: null },
          { lease: later!, next: { dueAt: now() + 9000 } },
        ]);
        expect(held.size).toBe(2);
        throw new Error('the rest fails');
      });
      await expect(rolledBack).rejects.toThrow('the rest fails');
      expect(await rows()).toHaveLength(2);
      expect(await claim(1, 2, other)).toEqual([]);
      await lapse([done!, later!]);
      const [, last] = await claim(1, 2, other);
      expect([last?.id, last?.dueAt]).toEqual([second, at]);
    });
  });

  describe('what waits for somebody', () => {
    it('is claimed by nobody until it is unparked, and is then where it was', async () => {
      const at = now() - 1000;
      const [first] = await insert(1, 1, at);
      const [second] = await insert(1, 1, at + 500);
      await within(one, (queue, tx) => queue.setState(tx, [first!], 'parked', 'ready'));
      expect(idsOf(await claim(1, 9))).toEqual([second]);
      await within(other, (queue, tx) => queue.setState(tx, [first!, second!], 'ready', 'parked'));
      expect((await claim(1, 9, other)).map(({ id, dueAt }) => [id, dueAt])).toEqual([[first, at]]);
    });

    it('is parked and unparked beside claims, and no row is lost or taken twice', async () => {
      const ids = await insert(1, 60);
      const taken: number[] = [];
      const take = async (node: Node) => {
        for (let round = 0; round < 6; round += 1) {
          const leases = await claim(1, 7, node);
          taken.push(...(await settle(node, leases)));
        }
      };
      const move = async (node: Node) => {
        for (let start = 0; start < 60; start += 12) {
          const some = ids.slice(start, start + 12);
          await within(node, (queue, tx) => queue.setState(tx, some, 'parked', 'ready'));
          await within(node, (queue, tx) => queue.setState(tx, some, 'ready', 'parked'));
        }
      };
      await Promise.all([take(one), move(other), take(other), move(one)]);
      for (let more = await claim(1, 99); more.length > 0; more = await claim(1, 99))
        taken.push(...(await settle(one, more)));
      expect(taken.sort((a, b) => a - b)).toEqual(ids);
      expect(await rows()).toEqual([]);
    });

    it('goes on with its holder where it was parked under a lease', async () => {
      const [id] = await insert(1);
      const leases = await claim(1, 1);
      await within(other, (queue, tx) => queue.setState(tx, [id!], 'parked', 'ready'));
      expect(await settle(one, leases)).toEqual(new Set([id]));
    });
  });

  describe('what is brought forward', () => {
    it('is due now: what was due later, what was parked, but nothing that has ended', async () => {
      const [later, parked, ended] = await insert(1, 3, now() + 60_000);
      await within(one, (queue, tx) => queue.setState(tx, [parked!], 'parked', 'ready'));
      await end(ended!);
      const forward = await within(one, (queue, tx) =>
        queue.bringForward(tx, [later!, parked!, ended!, 999_999], { note: 'woken' })
      );
      expect(forward).toEqual(new Set([later, parked]));
      const claimed = await claim(1, 9, other);
      expect(idsOf(claimed)).toEqual([later, parked]);
      expect(claimed.map(({ columns }) => columns)).toEqual([{ note: 'woken' }, { note: 'woken' }]);
      expect(await stateOf(ended!)).toBe('ended');
    });

    it('is worked on again though it is leased: its holder then changes nothing', async () => {
      const [id] = await insert(1);
      const held = await claim(1, 1);
      await within(other, (queue, tx) => queue.bringForward(tx, [id!]));
      expect(await settle(one, held)).toEqual(new Set());
      const again = await claim(1, 1, other);
      expect(idsOf(again)).toEqual([id]);
      expect(await settle(other, again)).toEqual(new Set([id]));
    });

    it('is settled or brought forward, and never both, where the two meet', async () => {
      for (let round = 0; round < 10; round += 1) {
        const [id] = await insert(1);
        const held = await claim(1, 1);
        const [settled, forward] = await Promise.all([
          settle(one, held),
          within(other, (queue, tx) => queue.bringForward(tx, [id!])),
        ]);
        expect(settled.has(id!)).toBe(!forward.has(id!));
        expect(await claim(1, 1)).toHaveLength(forward.size);
        await rows().delete();
      }
    });

    it('is as before where its transaction rolls back', async () => {
      const dueAt = now() + 60_000;
      const [id] = await insert(1, 1, dueAt);
      const rolledBack = one.site.app.db.transaction(async (tx) => {
        await one.queue.bringForward(tx, [id!]);
        throw new Error('the rest fails');
      });
      await expect(rolledBack).rejects.toThrow('the rest fails');
      expect(await other.queue.due()).toEqual(new Map([[1, dueAt]]));
    });
  });

  describe('what is queued again', () => {
    it('is due as it is given, whether it was in the queue or not, held or ended', async () => {
      const [held, ended] = await insert(1, 2);
      const [lease] = await claim(1, 1);
      await end(ended!);
      const at = now() - 5;
      const given = [held!, ended!, 500_000].map((id) => ({
        ...{ id, group: 1, dueAt: at },
        columns: { note: 'anew' },
      }));
      await within(other, (queue, tx) => queue.insert(tx, given, 'replace'));
      expect(await settle(one, [lease!])).toEqual(new Set());
      const claimed = await claim(1, 9, other);
      expect(claimed.map(({ id, dueAt, columns }) => ({ id, dueAt, columns, group: 1 }))).toEqual(
        given
      );
      expect(new Set(claimed.map(({ state }) => state))).toEqual(new Set(['ready']));
    });

    it('is there once where several queue it at once', async () => {
      const row = { id: 600_000, group: 1, dueAt: now(), columns: { note: 'x' } };
      await Promise.all(
        [one, other, one, other].map((node) =>
          within(node, (queue, tx) => queue.insert(tx, [row], 'replace'))
        )
      );
      expect(await claim(1, 9)).toHaveLength(1);
    });
  });

  describe('what is to be looked at later', () => {
    const reschedule = (
      ids: readonly (number | undefined)[],
      next: NextPlace | null,
      note?: null
    ) =>
      within(one, async (queue, tx) => {
        for (const id of ids) {
          const row = { id: id!, group: 1, dueAt: now(), columns: { note: 'new' } };
          const still = { note: note === null ? null : `note ${id}` };
          await queue.reschedule(tx, row, next, still);
        }
      });

    it('is moved, parked or done while it is not due', async () => {
      const far = now() + 60_000;
      const [moved, parked, done] = await insert(1, 3, far);
      await reschedule([moved], { dueAt: far + 1 });
      await reschedule([parked], { dueAt: far, state: 'parked' });
      await reschedule([done], null);
      expect(await one.queue.due()).toEqual(new Map([[1, far + 1]]));
      expect([await stateOf(parked!), await stateOf(done!)]).toEqual(['parked', null]);
      await reschedule([parked], { dueAt: far + 2 });
      expect(await stateOf(parked!)).toBe('ready');
    });

    it('is queued where it is not in the queue', async () => {
      const dueAt = now() + 60_000;
      await reschedule([700_000, 700_001], null);
      await reschedule([700_000], { dueAt });
      const found = await one.queue.find(one.site.app.db.pool, [700_000, 700_001]);
      expect([...found.values()]).toEqual([
        { id: 700_000, group: 1, state: 'ready', dueAt, isHeld: false, columns: { note: 'new' } },
      ]);
    });

    it('stays as it is where it is due, held, or was changed since', async () => {
      const far = now() + 60_000;
      const [due] = await insert(1);
      const [held, changed] = await insert(2, 2, far);
      const lease = { owner: 'somebody', leased_until: now() + 5000 };
      await rows().where({ id: held! }).update(lease);
      await rows().where({ id: changed! }).update({ note: 'woken' });
      await reschedule([due, held, changed], null);
      await reschedule([due, held, changed], { dueAt: far + 1 });
      const left = await rows().orderBy('id').pluck('due_at');
      expect(left.map(Number)).toEqual([expect.any(Number), far, far]);
      await rows().where({ id: changed! }).update({ note: null });
      await reschedule([changed], null, null);
      expect(await stateOf(changed!)).toBeNull();
    });
  });
});
