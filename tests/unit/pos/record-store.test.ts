import { applyBatch } from '../../../server/src/pos/processing/process';
import {
  getRecordStore,
  LostLease,
  type RecordSettlement,
} from '../../../server/src/pos/processing/record-store';
import type { EventState } from '../../../server/src/pos/rules/records';
import type { PosEventRow, WokenBy } from '../../../server/src/pos/tables';
import { type SmallSite, startSmallSite } from '../../support/small-site';

/** Where records stand in the queue, beside their rows in the log. */
let site: SmallSite;
const store = () => getRecordStore(site.app);
const log = () => site.connection('switchboard_pos_events');
const queue = () => site.connection('switchboard_record_queue');

beforeAll(async () => {
  site = await startSmallSite({}, 'http');
  await site.connection('switchboard_connections').insert({ id: 1, name: 'till', mode: 'live' });
});
beforeEach(async () => {
  await log().delete();
  await queue().delete();
});
afterAll(() => site.close());

const accept = (id: number): Promise<void> =>
  site.app.db.transaction(async (tx) => {
    const common = { connection_id: 1, kind: 'sale', state: 'pending', body: '{}', tries: 0 };
    await tx.insert('switchboard_pos_events', [{ id, external_digest: `${id}`, ...common }]);
    await store().enqueue(tx, [{ id, connection_id: 1, size: 2 }], store().now());
  });

const settle = async (
  state: EventState,
  dueAt: number | null = null,
  more: Partial<RecordSettlement> = {}
): Promise<void> => {
  const [lease] = await store().claim([{ group: 1, limit: 1 }]);
  await site.app.db.transaction((tx) =>
    store().settle(tx, [{ lease: lease!, dueAt, outcome: { state }, ...more }])
  );
};

const wake = (ids: number[], by: WokenBy = 'item'): Promise<number[]> =>
  site.app.db.transaction((tx) => store().bringForward(tx, ids, by));

const reschedule = (id: number, state: EventState, dueAt: number | null): Promise<void> =>
  site.app.db.transaction((tx) =>
    store().reschedule(tx, [{ row: { id, connection_id: 1, body: '{}' }, state, dueAt }])
  );

const place = async (id: number): Promise<string> => {
  const row = (await queue().where({ id }).first()) as
    { state: number; due_at: number; woken_by: string | null } | undefined;
  if (!row) return 'absent';
  const state = ['ready', 'blocked', 'parked', 'ended'][row.state];
  const later = row.state === 0 && row.due_at > store().now() ? ' later' : '';
  return `${state}${later}${row.woken_by === null ? '' : `, woken by ${row.woken_by}`}`;
};

it('one that is done is not in the queue, one that waits for somebody is parked, one that failed has ended', async () => {
  const states: EventState[] = ['applied', 'simulated', 'held', 'needs_mapping', 'failed'];
  for (const [at, state] of states.entries()) {
    await accept(at + 1);
    await settle(state);
  }
  expect(await Promise.all(states.map((_state, at) => place(at + 1)))).toEqual([
    ...['absent', 'absent', 'parked', 'parked', 'ended'],
  ]);
  expect((await log().orderBy('id').pluck('state')) as string[]).toEqual(states);
});

it('one that is held for a while, or is to be tried again, is due later', async () => {
  const later = store().now() + 60_000;
  await accept(1);
  await settle('held', later);
  await accept(2);
  await settle('pending', later, { wokenBy: 'retry' });
  expect([await place(1), await place(2)]).toEqual(['ready later', 'ready later, woken by retry']);
});

it('whatever is in the log is brought forward, but for what failed', async () => {
  for (const [id, state] of [
    [1, 'applied'],
    [2, 'held'],
    [3, 'failed'],
  ] as const) {
    await accept(id);
    await settle(state);
  }
  await accept(4);
  expect((await wake([1, 2, 3, 4, 5])).sort()).toEqual([1, 2, 4]);
  expect(await Promise.all([1, 2, 3, 4, 5].map(place))).toEqual([
    ...['ready, woken by item', 'ready, woken by item', 'ended'],
    ...['ready, woken by item', 'absent'],
  ]);
  const claimed = await store().claim([{ group: 1, limit: 9 }]);
  expect(claimed.map(({ id, size }) => [id, size])).toEqual([
    [1, 2],
    [2, 2],
    [4, 2],
  ]);
});

it('one that failed starts again where its owner says so', async () => {
  await accept(1);
  await settle('failed');
  const row = (await log().first()) as PosEventRow;
  await site.app.db.transaction((tx) =>
    store().startAgain(tx, row, { state: 'pending', tries: 0, error: null })
  );
  expect(await place(1)).toBe('ready, woken by owner');
  expect(await log().first()).toMatchObject({ state: 'pending', tries: 0, error: null });
});

it('settles all of a batch or none', async () => {
  await accept(1);
  await accept(2);
  const leases = await store().claim([{ group: 1, limit: 2 }]);
  await wake([2]);
  const settling = site.app.db.transaction((tx) =>
    store().settle(
      tx,
      leases.map((lease) => ({ lease, dueAt: null, outcome: { state: 'applied' as const } }))
    )
  );
  await expect(settling).rejects.toThrow(LostLease);
  await expect(settling).rejects.toMatchObject({ ids: new Set([2]) });
  expect(await log().pluck('state')).toEqual(['pending', 'pending']);
  expect(await queue().whereNotNull('owner').pluck('id')).toEqual([1]);
});

describe('what a relative finds out', () => {
  const later = () => store().now() + 60_000;

  it('parks, ends the wait of, or sets a time for one that nobody works on', async () => {
    await accept(1);
    await settle('held', later());
    await reschedule(1, 'held', null);
    expect(await place(1)).toBe('parked');
    await reschedule(1, 'held', later());
    expect(await place(1)).toBe('ready later');
    await reschedule(1, 'applied', null);
    expect(await place(1)).toBe('absent');
    await reschedule(1, 'held', later());
    expect(await place(1)).toBe('ready later');
  });

  it('leaves alone what is due, what was woken, what is to be tried again, and what failed', async () => {
    await accept(1);
    await reschedule(1, 'applied', null);
    expect(await place(1)).toBe('ready');
    const [lease] = await store().claim([{ group: 1, limit: 1 }]);
    await reschedule(1, 'held', later());
    await site.app.db.transaction((tx) =>
      store().settle(tx, [
        { lease: lease!, dueAt: later(), outcome: { state: 'pending' }, wokenBy: 'retry' },
      ])
    );
    await reschedule(1, 'applied', null);
    expect(await place(1)).toBe('ready later, woken by retry');
    await accept(2);
    await settle('failed');
    await reschedule(2, 'failed', null);
    expect(await place(2)).toBe('ended');
  });
});

it('one that somebody has deleted from the log leaves the queue', async () => {
  await accept(1);
  await log().delete();
  await applyBatch(site.app, await store().claim([{ group: 1, limit: 9 }]));
  expect(await place(1)).toBe('absent');
});
