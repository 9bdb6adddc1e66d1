import { Tickets, readTicketId, ticketId } from '../../../../server/src/scheduling/bullmq/tickets';

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** A queue that keeps what it is given. */
const createQueue = (failures: Error[] = []) => {
  const batches: { opts?: { jobId?: string }; data: unknown }[][] = [];
  return {
    batches,
    async addBulk(jobs: (typeof batches)[number]) {
      const failure = failures.shift();
      if (failure) throw failure;
      batches.push(jobs);
      return [];
    },
  };
};

const open = (
  queue: ReturnType<typeof createQueue>,
  refused: (error: unknown) => void = () => {}
) => new Tickets('switchboard POS events', queue as never, refused);

describe('the id of a ticket', () => {
  test('is kind, group and slot, without a colon in any', () => {
    const id = ticketId('switchboard: POS events', { group: 7, slot: 3 });
    expect(id).toBe('switchboard-pos-events:7:3');
    expect(readTicketId(id)).toEqual({ group: 7, slot: 3 });
  });

  test.each([undefined, '', '7', 'work:7', 'work:7:x', 'a:b:7:3'])('is not %p', (id) => {
    expect(readTicketId(id)).toBeNull();
  });
});

describe('tickets', () => {
  test('that are asked for at one moment are written together, each once and without data', async () => {
    const queue = createQueue();
    const tickets = open(queue);
    for (const group of [1, 2, 1]) tickets.ask({ group, slot: 0 });
    await nextTurn();
    expect(queue.batches).toHaveLength(1);
    expect(queue.batches[0]?.map(({ opts }) => opts?.jobId)).toEqual([
      'switchboard-pos-events:1:0',
      'switchboard-pos-events:2:0',
    ]);
    expect(queue.batches[0]?.map(({ data }) => data)).toEqual([{}, {}]);
  });

  test('that Redis refuses throw nothing, and the next ones are written', async () => {
    const queue = createQueue([new Error('OOM')]);
    const refused: unknown[] = [];
    const tickets = open(queue, (error) => refused.push(error));
    tickets.ask({ group: 1, slot: 0 });
    await nextTurn();
    expect(refused).toEqual([new Error('OOM')]);
    tickets.ask({ group: 1, slot: 0 });
    await nextTurn();
    expect(queue.batches).toHaveLength(1);
  });

  test('are written in parts where there are many', async () => {
    const queue = createQueue();
    const tickets = open(queue);
    for (let group = 1; group <= 1200; group += 1) tickets.ask({ group, slot: 0 });
    await tickets.flush();
    expect(queue.batches.map(({ length }) => length)).toEqual([500, 500, 200]);
  });
});
