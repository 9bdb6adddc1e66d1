import { GroupTurns } from '../../../../server/src/scheduling/bullmq/scheduler';
import type { Ticket } from '../../../../server/src/scheduling/bullmq/tickets';
import type { Turn } from '../../../../server/src/scheduling/types';

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

type TakeTurn = (group: number, turn: Turn) => Promise<number | null>;

const open = (takeTurn: TakeTurn) => {
  const asked: Ticket[] = [];
  const errors: string[] = [];
  let looks = 0;
  const turns = new GroupTurns({
    name: 'work',
    handler: { now: Date.now, turns: { groups: 4, nodes: 3 } },
    taker: { takeTurn },
    ask: (ticket) => asked.push(ticket),
    look: () => {
      looks += 1;
    },
    logFault: (what, error) => errors.push(`${what}: ${(error as Error).message}`),
  });
  const take = async (ticket: Ticket) => {
    await turns.take(ticket);
    turns.gone(ticket);
  };
  return { turns, take, asked, errors, looks: () => looks };
};

const ticket: Ticket = { group: 7, slot: 0 };

describe('a group', () => {
  test('that has more to do goes to the end of the line once its ticket is gone', async () => {
    const { turns, asked } = open(async () => Date.now());
    await turns.take(ticket);
    expect(asked).toEqual([]);
    turns.gone(ticket);
    expect(asked).toEqual([ticket]);
    turns.gone(ticket);
    expect(asked).toHaveLength(1);
  });

  test('with nothing due is looked for once more, for what came at the end of its turn', async () => {
    const { take, asked, looks } = open(async () => null);
    await take(ticket);
    expect([asked, looks()]).toEqual([[], 1]);
  });

  test('that is announced during its turn has another one, and no ticket before that', async () => {
    const { turns, take, asked } = open(async () => {
      turns.announce(7);
      return null;
    });
    await take(ticket);
    expect(asked).toEqual([ticket]);
  });

  test('that rests is asked for at its time, or at once when it is announced', async () => {
    const { turns, take, asked } = open(async () => Date.now() + 60);
    await take(ticket);
    turns.found(7);
    expect(asked).toEqual([]);
    await sleep(100);
    expect(asked).toEqual([ticket]);
    await take({ group: 7, slot: 2 });
    turns.announce(7);
    expect(asked).toEqual([ticket, { group: 7, slot: 2 }]);
  });

  test('is not worked on twice here: its second ticket ends at once', async () => {
    let begun = 0;
    let end = () => {};
    const { turns, asked } = open(async () => {
      begun += 1;
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return null;
    });
    const first = turns.take(ticket);
    const second = { group: 7, slot: 1 };
    await turns.take(second);
    turns.gone(second);
    expect([begun, asked]).toEqual([1, []]);
    end();
    await first;
  });

  test('is shared with as many nodes as may work on it', async () => {
    const { take, asked } = open(async (_group, turn) => {
      turn.share();
      return null;
    });
    await take(ticket);
    await take({ group: 8, slot: 2 });
    expect(asked).toEqual([{ group: 7, slot: 1 }]);
  });

  test('whose turn found nothing is not asked for again and again by looks', async () => {
    const { turns, take, asked } = open(async () => null);
    await take(ticket);
    turns.found(7);
    turns.found(7);
    expect(asked).toEqual([]);
    await sleep(150);
    expect(asked).toEqual([ticket]);
  });

  test('that looks find again and again is asked for once in a while, or after its turn', async () => {
    const { turns, take, asked, looks } = open(async () => null);
    turns.found(7);
    turns.found(7);
    turns.found(8);
    expect([asked, looks()]).toEqual([[ticket, { group: 8, slot: 0 }], 1]);
    await sleep(550);
    turns.found(7);
    expect(asked).toHaveLength(3);
    await take(ticket);
    await sleep(150);
    turns.found(7);
    expect(asked).toHaveLength(4);
    turns.allGone();
    turns.found(7);
    expect(asked).toHaveLength(5);
  });

  test('asks for another node beside it no more than every quarter of a second', async () => {
    const { take, asked } = open(async (_group, turn) => {
      turn.share();
      turn.share();
      await sleep(300);
      turn.share();
      return null;
    });
    await take(ticket);
    expect(asked).toEqual(Array(2).fill({ group: 7, slot: 1 }));
  });

  test('whose turn fails comes back later', async () => {
    const { turns, take, asked, errors } = open(async () => {
      throw new Error('the database is away');
    });
    await take(ticket);
    expect(errors).toEqual(['work: a turn failed: the database is away']);
    expect(asked).toEqual([]);
    turns.announce(7);
    expect(asked).toEqual([ticket]);
  });
});

test('a Redis that forgot the tickets holds up no group whose turn has ended', async () => {
  const { turns, asked } = open(async () => Date.now());
  await turns.take(ticket);
  turns.allGone();
  expect(asked).toEqual([ticket]);
});

test('a stop ends turns and gives their groups to other nodes', async () => {
  const { turns, asked } = open(async (_group, turn) => {
    while (!turn.isOver()) await sleep(5);
    return Date.now() + 60_000;
  });
  const working = turns.take(ticket);
  await turns.stop();
  await working;
  turns.gone(ticket);
  expect(asked).toEqual([ticket]);
});
