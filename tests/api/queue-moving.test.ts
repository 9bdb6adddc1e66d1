import fs from 'node:fs';
import path from 'node:path';
import { ensureTables } from '../../server/src/database/tables/plain-tables';
import { getRecordStore } from '../../server/src/pos/processing/record-store';
import {
  POS_EVENTS_TABLE,
  RECORD_QUEUE_TABLE,
  recordQueueTable,
} from '../../server/src/pos/tables';
import { moveIntoQueue, moveSome } from '../../server/src/database/tables/old-queues';
import { createDatabase, databases, describeEach, dropDatabase } from '../support/databases';
import { loadFixture } from '../support/fixtures';
import { SCRATCH } from '../support/paths';
import { type SmallSite, startSmallSite } from '../support/small-site';

interface OldRow {
  id: number;
  connection_id: number;
  state: string;
  due_at: number | string | null;
  owner: string | null;
  woken_by: string | null;
  body: string;
}

const WAITING = ['held', 'needs_mapping', 'partially_applied'];
const LEASED_AT = 1_700_000_000_000;

/** What version 0.2.0 left in the log of records comes into the queue, once, whatever interrupts it. */
describeEach(databases(), 'the queue of records of version 0.2.0', (kind) => {
  let name: string;
  let one: SmallSite;
  let other: SmallSite;
  let before: OldRow[];

  const start = () => startSmallSite({}, 'http', { kind, name, hasTables: true });
  const events = () => one.connection(POS_EVENTS_TABLE);
  const queue = () => one.connection(RECORD_QUEUE_TABLE);
  const oldOf = ({ app }: SmallSite) => getRecordStore(app).oldQueue();
  const move = async (site: SmallSite) => moveIntoQueue(site.app, await oldOf(site));

  beforeEach(async () => {
    fs.mkdirSync(SCRATCH, { recursive: true });
    name =
      kind === 'sqlite'
        ? path.join(SCRATCH, `queue-moving-${process.pid}.db`)
        : await createDatabase(kind);
    await loadFixture('0.2.0', kind, name);
    one = await start();
    other = await start();
    if (kind === 'sqlite') {
      for (const { connection } of [one, other]) {
        await connection.raw('PRAGMA busy_timeout = 50');
        await connection.raw('PRAGMA journal_mode = WAL');
      }
    }
    // The column came after the fixture was made.
    const attributes = { woken_by: { type: 'string' as const } };
    await ensureTables(one.strapi, [{ tableName: POS_EVENTS_TABLE, attributes }, recordQueueTable]);
    const common = { connection_id: 1, kind: 'sale', mode: 'live', body: '{"a":1}', tries: 0 };
    await one.connection.batchInsert(
      POS_EVENTS_TABLE,
      Array.from({ length: 700 }, (_none, nth): Record<string, unknown> => {
        const due = { state: 'pending', due_at: LEASED_AT + nth, owner: null, woken_by: null };
        const more = [
          due,
          { ...due, owner: `token/${LEASED_AT - nth}` },
          { ...due, state: 'applied', woken_by: 'mapping_undone' },
          { ...due, state: 'applied', due_at: null },
          { ...due, state: 'needs_mapping', due_at: null },
          { ...due, state: 'failed', due_at: null },
          { ...due, state: 'held' },
        ];
        return { ...common, external_digest: `more ${nth}`, ...more[nth % more.length] };
      }),
      50
    );
    before = await events().orderBy('id');
  }, 60_000);
  afterEach(async () => {
    await one?.close();
    await other?.close();
    if (kind === 'sqlite')
      for (const end of ['', '-wal', '-shm']) fs.rmSync(name + end, { force: true });
    else await dropDatabase(kind, name);
  });

  const expected = () =>
    before.flatMap(({ id, connection_id: group, state, due_at: dueAt, owner, ...row }) => {
      const isDue = dueAt !== null;
      if (!isDue && state !== 'failed' && !WAITING.includes(state)) return [];
      const place = isDue ? 0 : state === 'failed' ? 3 : 2;
      return {
        ...{ id: Number(id), group: Number(group), state: place, woken_by: row.woken_by },
        size: row.body.length,
        dueAt: !isDue ? 'any' : owner === null ? Number(dueAt) : Number(owner.split('/')[1]),
      };
    });
  const moved = async () =>
    ((await queue().orderBy('id')) as Record<string, unknown>[]).map((row) => {
      expect([row.owner, row.leased_until]).toEqual([null, null]);
      return {
        ...{ id: Number(row.id), group: Number(row.group_id), state: Number(row.state) },
        ...{ woken_by: row.woken_by, size: Number(row.size) },
        dueAt: Number(row.state) === 0 ? Number(row.due_at) : 'any',
      };
    });
  const oldColumns = async () => {
    const left: string[] = [];
    for (const column of ['due_at', 'owner', 'woken_by', 'connection_id_if_due_at'])
      if (await one.connection.schema.hasColumn(POS_EVENTS_TABLE, column)) left.push(column);
    return left;
  };
  const oldIndexes = async () => {
    const indexes = await one.strapi.db.dialect.schemaInspector.getIndexes(POS_EVENTS_TABLE);
    return indexes
      .map((index) => index.name)
      .filter((index) => /sb_event_(due|waiting)/.test(index));
  };

  it('is moved whole by several nodes that start at once, after one that was killed on its way', async () => {
    expect(await oldIndexes()).toHaveLength(2);
    await one.connection('switchboard_site').insert({ name: 'record_queue', value: '0' });
    // Two batches were committed, and of the third nothing.
    for (const _batch of [1, 2])
      expect(await moveSome(one.app.db, await oldOf(one), 60)).toBe(false);
    const half = await queue();
    expect(half).toHaveLength(120);
    const failing = {
      ...(await oldOf(one)),
      insert: () => Promise.reject(new Error('killed')),
    };
    await expect(moveSome(one.app.db, failing as never, 60)).rejects.toThrow('killed');
    expect(await oldColumns()).toContain('due_at');
    await Promise.all([move(one), move(other)]);
    expect(await moved()).toEqual(expected());
    expect([await oldColumns(), await oldIndexes()]).toEqual([[], []]);
    // The rest of the log is as it was.
    const after: OldRow[] = await events().orderBy('id');
    expect(after).toEqual(
      before.map(({ due_at: _due, owner: _owner, woken_by: _by, ...row }) => {
        const { connection_id_if_due_at: _column, ...rest } = row as Record<string, unknown>;
        return rest;
      })
    );
  }, 60_000);

  it('is not moved again, whatever was worked on meanwhile and wherever the first start ended', async () => {
    await one.connection('switchboard_site').insert({ name: 'record_queue', value: '0' });
    while (!(await moveSome(one.app.db, await oldOf(one)))) continue;
    await queue().delete();
    // Killed between the columns.
    await events().where({ id: 0 }).update({ owner: null });
    await move(other);
    expect([await oldColumns(), await oldIndexes()]).toEqual([[], []]);
    await move(one);
    expect(await queue()).toEqual([]);
    await getRecordStore(one.app).dueTimes();
  }, 60_000);
});
