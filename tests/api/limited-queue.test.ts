import fs from 'node:fs';
import path from 'node:path';
import { ensureTables } from '../../server/src/database/tables/plain-tables';
import {
  LimitedQueue,
  orderTable,
  slotsTable,
  groupLocksTable,
} from '../../server/src/queue/limited-queue';
import { type LeasedRow, type NextPlace, queueTable } from '../../server/src/queue/queue';
import { createDatabase, databases, describeEach, dropDatabase } from '../support/databases';
import { SCRATCH } from '../support/paths';
import { catchUp, type SmallSite, startSmallSite } from '../support/small-site';

/** What a queue keeps of the order and the caps of its groups, on every database, over two nodes. */
const TABLE = 'switchboard_limited';
const GROUPS = 'switchboard_limited_groups';
const ORDER = 'switchboard_limited_order';
const SLOTS = 'switchboard_limited_slots';
const LEASE_MS = 8000;

interface Node {
  site: SmallSite;
  queue: LimitedQueue;
}

describeEach(databases(), 'a queue with order and caps', (kind) => {
  let name: string;
  let one: Node;
  let other: Node;
  let serial = 0;
  let keys = new Map<number, string>();
  const freed: number[] = [];

  const startNode = async (): Promise<Node> => {
    const site = await startSmallSite({}, 'http', { kind, name, hasTables: true });
    if (kind === 'sqlite') {
      await site.connection.raw('PRAGMA busy_timeout = 50');
      await site.connection.raw('PRAGMA journal_mode = WAL');
    }
    const queue = new LimitedQueue(site.app.db, {
      ...{ tableName: TABLE, groups: { tableName: GROUPS }, leaseMs: LEASE_MS },
      ...{ order: ORDER, slots: SLOTS, locks: 'switchboard_limited_turns' },
      keysOf: async () => keys,
      freed: (groups) => freed.push(...groups),
    });
    return { site, queue };
  };

  beforeAll(async () => {
    fs.mkdirSync(SCRATCH, { recursive: true });
    name =
      kind === 'sqlite'
        ? path.join(SCRATCH, `limited-queue-${process.pid}.db`)
        : await createDatabase(kind);
    one = await startNode();
    await ensureTables(one.site.strapi, [
      queueTable(TABLE, 'sb_limited', {}),
      orderTable(ORDER, 'sb_limited_order'),
      slotsTable(SLOTS, 'sb_limited_slots'),
      groupLocksTable('switchboard_limited_turns'),
      { tableName: GROUPS, attributes: { id: { type: 'increments' } } },
    ]);
    other = await startNode();
    for (const id of [1, 2, 3]) await one.site.connection(GROUPS).insert({ id });
  }, 60_000);
  beforeEach(async () => {
    keys = new Map();
    for (const table of [TABLE, ORDER, SLOTS]) await one.site.connection(table).delete();
    await one.queue.due();
    await other.queue.due();
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

  /** @returns the ids, one for each key */
  const insert = async (
    group: number,
    keys: readonly (string | null)[],
    dueAt = now()
  ): Promise<number[]> => {
    const made = keys.map((orderingKey) => {
      serial += 1;
      return { id: serial, group, dueAt, columns: {}, orderingKey };
    });
    await one.site.app.db.retrying((tx) => one.queue.insert(tx, made));
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
  const claimWithin = async (
    node: Node,
    group: number,
    limit: number,
    rules: Partial<Parameters<LimitedQueue['claimLocked']>[3]>
  ) => {
    await catchUp(node.queue, [one.queue, other.queue]);
    return node.queue.withGroupLock(group, (tx) =>
      node.queue.claimLocked(tx, group, limit, { isOrdered: false, cap: null, ...rules })
    );
  };
  const claim = async (group: number, limit: number, node: Node = one): Promise<LeasedRow[]> =>
    (await claimWithin(node, group, limit, { isOrdered: true })).leases;
  const idsOf = (leases: readonly { id: number }[]): number[] => leases.map(({ id }) => id);
  const blocked = async (): Promise<number[]> =>
    ((await rows().where({ state: 1 }).orderBy('id').pluck('id')) as number[]).map(Number);

  describe('by key', () => {
    it('claims the first row of each key, and blocks what is behind it', async () => {
      const [a1, b1, a2, free, a3, b2] = await insert(1, ['a', 'b', 'a', null, 'a', 'b']);
      const claimed = await claim(1, 9);
      expect(idsOf(claimed)).toEqual([a1, b1, free]);
      expect(await blocked()).toEqual([a2, a3, b2]);
      expect(await claim(1, 9, other)).toEqual([]);
      await settle(one, claimed.slice(0, 1));
      expect(await blocked()).toEqual([a3, b2]);
      expect(idsOf(await claim(1, 9, other))).toEqual([a2]);
    });

    it('has nothing due but what goes first', async () => {
      const at = now() - 5000;
      await insert(1, ['a', 'a'], at);
      const [lease] = await claim(1, 9);
      const later = now() + 60_000;
      await settle(one, [lease!], { dueAt: later });
      expect(await other.queue.due()).toEqual(new Map([[1, later]]));
      expect(await claim(1, 9)).toEqual([]);
    });

    it.each([
      ['ends', null],
      ['has failed', { dueAt: 1, state: 'ended' as const }],
      ['is parked', { dueAt: 1, state: 'parked' as const }],
    ])('lets the next one go in its place where the first %s', async (_how, next) => {
      const at = now() - 5000;
      const [, second] = await insert(1, ['a', 'a', 'a'], at);
      await settle(one, await claim(1, 9), next);
      expect(await other.queue.due()).toEqual(new Map([[1, at]]));
      expect((await claim(1, 9, other)).map(({ id, dueAt }) => [id, dueAt])).toEqual([
        [second, at],
      ]);
    });

    it('lets the next one go where somebody says so, while the first goes on', async () => {
      const [first, second] = await insert(1, ['a', 'a']);
      const held = await claim(1, 9);
      await other.site.app.db.retrying((tx) => other.queue.letPass(tx, [first!]));
      expect(idsOf(await claim(1, 9, other))).toEqual([second]);
      expect(await settle(one, held)).toEqual(new Set([first]));
    });

    it('keeps the order where a holder was killed', async () => {
      const [first, second] = await insert(1, ['a', 'a']);
      const lost = await claim(1, 9);
      await rows()
        .whereIn('id', idsOf(lost))
        .update({ leased_until: now() - 1 });
      const again = await claim(1, 9, other);
      expect(idsOf(again)).toEqual([first]);
      expect(await settle(one, lost)).toEqual(new Set());
      expect(await blocked()).toEqual([second]);
      await settle(other, again);
      expect(idsOf(await claim(1, 9))).toEqual([second]);
    });

    it('wakes nothing where the transaction of the end rolls back', async () => {
      await insert(1, ['a', 'a']);
      const [lease] = await claim(1, 9);
      const rolledBack = one.site.app.db.transaction(async (tx) => {
        await one.queue.settle(tx, [{ lease: lease!, next: null }]);
        throw new Error('the rest fails');
      });
      await expect(rolledBack).rejects.toThrow('the rest fails');
      expect(await claim(1, 9, other)).toEqual([]);
      expect(await settle(one, [lease!])).toHaveProperty('size', 1);
      expect(await claim(1, 9, other)).toHaveLength(1);
    });

    it('gets by more that is behind than one look judges', async () => {
      const ids = await insert(1, Array<string>(650).fill('a'), now() - 10);
      const [last] = await insert(1, ['b']);
      expect(idsOf(await claim(1, 9))).toEqual([ids[0], last]);
    });

    it('is kept by two nodes that claim and settle at once, and loses no wake-up', async () => {
      const keys = Array.from({ length: 240 }, (_none, at) => `key ${at % 12}`);
      for (const group of [1, 2]) await insert(group, keys);
      const ended = new Map<string, number[]>();
      const keyOf = new Map<number, string>(
        (
          (await one.site.connection(ORDER)) as {
            id: number;
            group_id: number;
            ordering_key: string;
          }[]
        ).map(({ id, group_id: group, ordering_key: key }) => [Number(id), `${group}/${key}`])
      );
      const running = new Set<string>();
      const work = async (node: Node) => {
        for (let idle = 0; idle < 8;) {
          const leases = [...(await claim(1, 5, node)), ...(await claim(2, 5, node))];
          if (leases.length === 0) {
            idle += 1;
            await new Promise((resolve) => setTimeout(resolve, 15));
            continue;
          }
          idle = 0;
          for (const { id } of leases) {
            const key = keyOf.get(id)!;
            expect(running.has(key)).toBe(false);
            running.add(key);
            ended.set(key, [...(ended.get(key) ?? []), id]);
          }
          await new Promise((resolve) => setTimeout(resolve, 3));
          // What is settled may go on at once: it is over for the test before it is for the queue.
          for (const { id } of leases) running.delete(keyOf.get(id)!);
          await settle(node, leases);
        }
      };
      await Promise.all([work(one), work(other), work(one), work(other)]);
      expect([...ended.values()].flat()).toHaveLength(480);
      for (const ids of ended.values()) expect(ids).toEqual([...ids].sort((a, b) => a - b));
      expect(await rows()).toEqual([]);
      expect(await one.site.connection(ORDER)).toEqual([]);
    }, 60_000);

    it('begins and ends while rows wait', async () => {
      const ids = await insert(1, [null, null, null]);
      const give = (node: Node) =>
        node.site.app.db.retrying(async (tx) => {
          await node.queue.lockGroup(tx, 1);
          const keys = tx
            .table(TABLE)
            .select('id', tx.raw("'a' AS ordering_key"))
            .whereIn('id', [...ids, 900_000]);
          return node.queue.order(tx, 1, keys);
        });
      const [lease] = await one.queue.claim([{ group: 1, limit: 1 }]);
      await give(one);
      await give(other);
      expect(await claim(1, 9)).toEqual([]);
      await settle(other, [lease!]);
      expect(idsOf(await claim(1, 9))).toEqual([ids[1]]);
      await one.site.app.db.retrying(async (tx) => {
        await one.queue.lockGroup(tx, 1);
        await one.queue.dissolve(tx, 1);
      });
      expect(idsOf(await one.queue.claim([{ group: 1, limit: 9 }]))).toEqual([ids[2]]);
      expect(await one.site.connection(ORDER)).toEqual([]);
    });

    it('is given to rows that were queued without their keys, once a claim comes upon them', async () => {
      const [first, second, free] = await insert(1, [null, null, null]);
      keys = new Map([
        [first!, 'a'],
        [second!, 'a'],
      ]);
      expect(idsOf(await claim(1, 9))).toEqual([first, free]);
      expect(await blocked()).toEqual([second]);
    });

    it('says after the commit which groups have something let go', async () => {
      await insert(1, ['a', 'a']);
      const [lease] = await claim(1, 9);
      freed.length = 0;
      await settle(one, [lease!]);
      expect(freed).toEqual([1]);
    });
  });

  describe('with a cap', () => {
    const within = (limit: number, atOnce: number, node: Node = one, except: number[] = []) =>
      claimWithin(node, 1, limit, { cap: { atOnce, except } });

    beforeEach(async () => {
      await insert(1, Array<null>(40).fill(null));
    });

    it('never has more under a lease, however many nodes ask at once', async () => {
      const claims = await Promise.all(
        Array.from({ length: 12 }, (_none, index) => within(3, 7, index % 2 ? one : other))
      );
      expect(new Set(claims.flatMap(({ leases }) => idsOf(leases))).size).toBe(7);
      expect(claims.filter(({ isFull }) => !isFull).length).toBeLessThan(3);
      expect(await within(3, 7)).toMatchObject({ leases: [], isFull: true });
    });

    it('gives what was settled, released, and as good as settled, to the next one', async () => {
      const { leases } = await within(5, 5);
      await settle(one, leases.slice(0, 2));
      expect((await within(9, 5, other)).leases).toHaveLength(2);
      await one.queue.release(leases.slice(2, 3));
      expect((await within(9, 5, other)).leases).toHaveLength(1);
      const done = idsOf(leases.slice(3));
      expect((await within(9, 5, one, done)).leases).toHaveLength(2);
      expect(await within(9, 5, other)).toMatchObject({ leases: [], isFull: true });
    });

    it('is exceeded in advance by a node that alone holds any, and by nobody beside it', async () => {
      const ahead = (own: readonly LeasedRow[], limit: number) => ({
        ...{ atOnce: 5, except: [] },
        ahead: { own: idsOf(own), limit },
      });
      const first = await claimWithin(one, 1, 5, { cap: ahead([], 9) });
      expect(first).toMatchObject({ isFull: true, isSole: true });
      expect(first.leases).toHaveLength(9);
      const second = await claimWithin(one, 1, 0, { cap: ahead(first.leases, 4) });
      expect(second.leases).toHaveLength(4);
      expect(await claimWithin(other, 1, 5, { cap: ahead([], 9) })).toEqual({
        ...{ leases: [], isFull: true, isSole: false, isMore: false },
      });
      const all = [...first.leases, ...second.leases];
      await settle(one, all.slice(0, 10));
      expect((await claimWithin(other, 1, 5, { cap: ahead([], 9) })).leases).toHaveLength(2);
    });

    it('counts no lease that has ended, and one for as long as it is renewed', async () => {
      const { leases } = await within(5, 5);
      const over = { leased_until: now() - 1 };
      const [gone, renewed] = leases;
      for (const table of [TABLE, SLOTS])
        await one.site.connection(table).whereIn('id', [gone!.id, renewed!.id]).update(over);
      await one.queue.renew([renewed!]);
      const next = await within(9, 5, other);
      expect(idsOf(next.leases)).toEqual([gone!.id]);
      expect(next.isFull).toBe(true);
    });

    it('counts what its holder still does with a row that was brought forward', async () => {
      const { leases } = await within(2, 2);
      await other.site.app.db.retrying((tx) => other.queue.bringForward(tx, idsOf(leases)));
      expect(await within(9, 2, other)).toMatchObject({ leases: [], isFull: true });
      expect(await settle(one, leases)).toEqual(new Set());
      expect((await within(9, 2, other)).leases).toHaveLength(2);
    });
  });
});
