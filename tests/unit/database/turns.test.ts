import { Turn } from '../../../server/src/database/transactions';

/** Turns of a transaction that is committed once its work has ended. */
const committed = () => {
  let commit = (_isCommitted: boolean): void => {};
  const ended = new Promise<boolean>((resolve) => {
    commit = resolve;
  });
  const transaction = { ended, lost: null } as unknown as Turn['transaction'];
  return { turn: new Turn(transaction), commit: () => commit(true) };
};

const microtasks = async (many: number): Promise<void> => {
  for (let one = 0; one < many; one += 1) await null;
};

/** How many turns of the queue of microtasks pass before a part begins: one of these is the moment of the end. */
const MOMENTS = Array.from({ length: 30 }, (_, many) => many);

describe('a transaction that ends', () => {
  test.each(MOMENTS)('fails no part that begins just then (%i)', async (many) => {
    const { turn, commit } = committed();
    let late: Promise<string> | undefined;
    const begin = async (): Promise<string> => {
      await microtasks(many);
      return turn.part(async () => 'done');
    };
    await turn.whole(() => {
      late = begin();
    });
    commit();
    expect(await late).toBe('done');
  });

  test.each(MOMENTS)('fails no part of a part that begins just then (%i)', async (many) => {
    const { turn, commit } = committed();
    let late: Promise<string> | undefined;
    await turn.whole(() =>
      turn.part(async (inner) => {
        const begin = async (): Promise<string> => {
          await microtasks(many);
          return inner.part(async () => 'done');
        };
        late = begin();
      })
    );
    commit();
    expect(await late).toBe('done');
  });

  test('begins no part that waits where its work fails', async () => {
    const { turn } = committed();
    const begun: string[] = [];
    const parts: Promise<unknown>[] = [];
    const whole = turn.whole(async () => {
      const slow = () => new Promise((resolve) => setTimeout(resolve, 20));
      parts.push(turn.part(slow));
      parts.push(turn.part(async () => begun.push('late')).catch((error) => error));
      throw new Error('refused');
    });
    await expect(whole).rejects.toThrow('refused');
    expect(await parts[1]).toMatchObject({ name: 'LostTransactionError' });
    expect(begun).toEqual([]);
  });
});
