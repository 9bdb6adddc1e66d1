import { withTransientRetry } from '../../../server/src/database/retry';

const failing = (code: string, times: number) => {
  let calls = 0;
  const work = async () => {
    calls += 1;
    if (calls <= times) throw Object.assign(new Error(code), { code });
    return calls;
  };
  return { work, calls: () => calls };
};

describe('a transaction that is run again', () => {
  it.each(['40P01', '40001', '25P02', 'ER_LOCK_DEADLOCK', 'SQLITE_BUSY'])(
    'is so after %s',
    async (code) => {
      await expect(withTransientRetry(failing(code, 2).work)).resolves.toBe(3);
    }
  );

  it('is not after what another try cannot mend', async () => {
    const { work, calls } = failing('23505', 1);
    await expect(withTransientRetry(work)).rejects.toThrow('23505');
    expect(calls()).toBe(1);
  });

  it('ends with the error where it goes on failing', async () => {
    const { work, calls } = failing('25P02', Infinity);
    await expect(withTransientRetry(work, 3)).rejects.toThrow('25P02');
    expect(calls()).toBe(3);
  });
});
