import { Action, Filter } from '../../../server/src/hooks';

const createLog = () => {
  const lines: string[] = [];
  return { lines, error: (line: string) => void lines.push(line) };
};

const DEADLINE_MS = 30;
const never = () => new Promise<never>(() => {});

describe('a filter', () => {
  it('hands each handler what the one before returned, in the order of registration', async () => {
    const hook = new Filter<number>('f', createLog());
    hook.register((n) => n + 1).register(async (n) => n * 10);
    expect(await hook.call(1)).toBe(20);
  });

  it('answers with its argument where nobody registered', async () => {
    expect(await new Filter<number>('f', createLog()).call(5)).toBe(5);
  });

  it('goes on with what it had after a handler that returns nothing', async () => {
    const hook = new Filter<{ n: number }>('f', createLog());
    hook.register((value) => {
      value.n += 1;
      return undefined as never;
    });
    hook.register((value) => ({ n: value.n * 2 }));
    expect(await hook.call({ n: 1 })).toEqual({ n: 4 });
  });

  it('ends with null once a handler said null; the rest are not asked', async () => {
    const hook = new Filter<string | null>('f', createLog());
    const after = jest.fn((value: string | null) => value);
    hook.register(() => null).register(after);
    expect(await hook.call('x')).toBeNull();
    expect(after).not.toHaveBeenCalled();
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
      'broken',
    ],
    ['rejects', () => Promise.reject(new Error('broken later')), 'broken later'],
    [
      'throws no error at all',
      () => {
        throw null;
      },
      'null',
    ],
    ['hangs', never, `no answer within ${DEADLINE_MS} ms`],
  ])(
    'leaves out a handler that %s, and the log names it and the hook',
    async (_how, body, reason) => {
      const log = createLog();
      const hook = new Filter<string>('service_crm_webhook_payload', log, undefined, {
        deadlineMs: DEADLINE_MS,
      });
      hook.register((value) => `${value}a`);
      hook.register(function loyaltyPoints() {
        return body() as never;
      });
      hook.register((value) => `${value}b`);
      expect(await hook.call('')).toBe('ab');
      expect(log.lines).toHaveLength(1);
      expect(log.lines[0]).toContain('service_crm_webhook_payload');
      expect(log.lines[0]).toContain('loyaltyPoints');
      expect(log.lines[0]).toContain(reason);
    }
  );

  it('does not ask a handler any more that was deleted, nor one that was registered meanwhile', async () => {
    const hook = new Filter<string>('f', createLog());
    const late = (value: string) => `${value}-late`;
    const early = (value: string) => {
      hook.register(late);
      return `${value}-early`;
    };
    hook.register(early);
    expect(await hook.call('x')).toBe('x-early');
    hook.delete(early);
    expect(hook.getHandlers()).toEqual([late]);
    hook.delete(early);
    expect(await hook.call('x')).toBe('x-late');
  });
});

describe('a filter that is asked inside a write', () => {
  const REST = { firstMs: 100, longestMs: 400 };
  const ask = (log: ReturnType<typeof createLog>) =>
    new Filter<string>('service_crm_webhook_payload', log, undefined, {
      deadlineMs: DEADLINE_MS,
      rest: REST,
    });
  let clock: jest.SpyInstance;
  let now = 0;
  const rests = (milliseconds: number) => {
    now += milliseconds;
  };
  beforeEach(() => {
    clock = jest.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => clock.mockRestore());

  it('leaves out who hung, with one line, however often it is asked meanwhile', async () => {
    const log = createLog();
    const hook = ask(log);
    const hanging = jest.fn(never);
    hook.register(hanging).register((value) => `${value}b`);
    // Four events to three webhooks, and another write beside them.
    const beside = hook.call('x');
    for (let nth = 0; nth < 12; nth += 1) expect(await hook.call('x')).toBe('xb');
    expect(await beside).toBe('xb');
    expect(hanging).toHaveBeenCalledTimes(2);
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toMatch(/no answer within 30 ms; it is left out for 1 seconds?$/);
  });

  it('asks it again after a while, and each time that it hangs after a longer one', async () => {
    const hook = ask(createLog());
    let hangs = true;
    const handler = jest.fn((value: string) => (hangs ? never() : `${value}!`));
    hook.register(handler);
    await hook.call('x');
    rests(110);
    await hook.call('x');
    expect(handler).toHaveBeenCalledTimes(2);
    rests(110);
    await hook.call('x');
    expect(handler).toHaveBeenCalledTimes(2);
    hangs = false;
    rests(110);
    expect(await hook.call('x')).toBe('x!');
    // Well again: it begins anew.
    expect(await hook.call('x')).toBe('x!');
  });

  it('leaves out nobody who throws', async () => {
    const hook = ask(createLog());
    const handler = jest.fn(() => {
      throw new Error('broken');
    });
    hook.register(handler);
    await hook.call('x');
    await hook.call('x');
    expect(handler).toHaveBeenCalledTimes(2);
  });
});

describe('an action', () => {
  it('gives every handler the same value, one after the other, and answers nothing', async () => {
    const hook = new Action<string>('a', createLog());
    const seen: string[] = [];
    hook.register(async (value) => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      seen.push(`slow ${value}`);
    });
    hook.register((value) => {
      seen.push(`quick ${value}`);
    });
    expect(await hook.call('x')).toBeUndefined();
    expect(seen).toEqual(['slow x', 'quick x']);
  });

  it('goes on after a handler that throws or hangs', async () => {
    const log = createLog();
    const hook = new Action<string>('a', log, { deadlineMs: DEADLINE_MS });
    const last = jest.fn();
    hook.register(function first() {
      throw new Error('broken');
    });
    hook.register(never);
    hook.register(last);
    await hook.call('x');
    expect(last).toHaveBeenCalledWith('x');
    expect(log.lines).toHaveLength(2);
  });
});

it('a hook that somebody prints shows nothing of the site', () => {
  const log: Record<string, unknown> = { error: () => {} };
  log.site = log;
  const hook = new Filter<unknown>('f', log as never);
  expect(() => JSON.stringify(hook.register(() => undefined))).not.toThrow();
});
