import { LeftOverTickets, LEFT_OVER_MS } from '../../../../server/src/scheduling/bullmq/tickets';

/** Redis with one key for each ticket, and what BullMQ says of it. */
const redisWith = (states: Record<number, string>, locked: readonly number[] = []) => {
  const asked: number[] = [];
  const removed: string[] = [];
  const groupOf = (id: string) => Number(id.split(':')[1]);
  const answers: [null, unknown][] = [];
  const pipeline = {
    exists(key: string) {
      asked.push(groupOf(key.slice('queue:'.length)));
      answers.push([null, states[asked.at(-1)!] ? 1 : 0]);
      return pipeline;
    },
    hmget() {
      answers.push([null, ['1', null]]);
      return pipeline;
    },
    pttl() {
      answers.push([null, locked.includes(asked.at(-1)!) ? 20_000 : -2]);
      return pipeline;
    },
    exec: async () => answers.splice(0),
  };
  const queue = {
    toKey: (id: string) => `queue:${id}`,
    getJobState: async (id: string) => states[groupOf(id)] ?? 'unknown',
    remove: async () => 0,
  };
  const redis = {
    pipeline: () => pipeline,
    del: async (...keys: string[]) => removed.push(...keys),
  };
  const tickets = new LeftOverTickets('a kind', queue as never, redis as never);
  return { tickets, removed };
};

describe('tickets of due groups', () => {
  let now = 0;
  beforeEach(() => {
    now = 1000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => jest.restoreAllMocks());

  it('are left over where nobody is given them, and not while they wait in their queue', async () => {
    const states = { 1: 'unknown', 2: 'waiting', 3: 'prioritized', 4: 'delayed', 5: 'active' };
    const { tickets } = redisWith(states, [5]);
    const due = [1, 2, 3, 4, 5, 6];
    expect(await tickets.among(due)).toEqual([]);
    now += LEFT_OVER_MS - 1;
    expect(await tickets.among(due)).toEqual([]);
    now += 1001;
    expect(await tickets.among(due)).toEqual([1, 4]);
  });

  it('are looked at once a second', async () => {
    const { tickets } = redisWith({ 1: 'unknown' });
    await tickets.among([1]);
    now += LEFT_OVER_MS;
    expect(await tickets.among([1])).toEqual([1]);
    now += 999;
    expect(await tickets.among([1])).toEqual([]);
  });

  it('go with their locks, and begin anew', async () => {
    const { tickets, removed } = redisWith({ 1: 'failed' });
    await tickets.among([1]);
    now += LEFT_OVER_MS;
    expect(await tickets.among([1])).toEqual([1]);
    const key = await tickets.remove(1);
    expect(removed).toEqual([key, `${key}:lock`]);
    now += 1001;
    expect(await tickets.among([1])).toEqual([]);
    expect(tickets.isWatching()).toBe(true);
  });
});
