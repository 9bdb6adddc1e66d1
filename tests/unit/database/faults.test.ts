import { createFaultLog, isInfrastructureFault } from '../../../server/src/database/retry';

const coded = (code: string, message = 'x'): Error => Object.assign(new Error(message), { code });

describe('an error of the infrastructure', () => {
  it.each([
    'SQLITE_BUSY',
    'SQLITE_LOCKED',
    'SQLITE_FULL',
    'SQLITE_IOERR_WRITE',
    'SQLITE_CANTOPEN',
    '08006',
    '53300',
    '57P01',
    '57P03',
    '40001',
    '40P01',
    '25006',
    'ER_LOCK_DEADLOCK',
    'ER_LOCK_WAIT_TIMEOUT',
    'ER_CON_COUNT_ERROR',
    'ER_SERVER_SHUTDOWN',
    'ER_DISK_FULL',
    'PROTOCOL_CONNECTION_LOST',
    'ECONNREFUSED',
    'ECONNRESET',
    'ETIMEDOUT',
  ])('is %s', (code) => {
    expect(isInfrastructureFault(coded(code))).toBe(true);
  });

  it('is a pool without a free connection, a connection that ended, and whatever was caused by one', () => {
    const pool = Object.assign(new Error('Knex: Timeout'), { name: 'KnexTimeoutError' });
    expect(isInfrastructureFault(pool)).toBe(true);
    expect(isInfrastructureFault(new Error('Connection terminated unexpectedly'))).toBe(true);
    expect(isInfrastructureFault(new Error('wrapped', { cause: coded('57P01') }))).toBe(true);
    const both = new AggregateError([coded('ECONNREFUSED'), coded('ECONNREFUSED')], '');
    expect(isInfrastructureFault(both)).toBe(true);
  });

  it.each(['22021', '23505', 'SQLITE_CONSTRAINT', 'SQLITE_TOOBIG', 'ER_DATA_TOO_LONG', 'P0001'])(
    'is not %s, which is about the row',
    (code) => {
      expect(isInfrastructureFault(coded(code))).toBe(false);
    }
  );

  it('is not a bug', () => {
    expect(isInfrastructureFault(new TypeError('undefined is not a function'))).toBe(false);
    expect(isInfrastructureFault('a string')).toBe(false);
    expect(isInfrastructureFault(undefined)).toBe(false);
  });
});

describe('the log of a loop', () => {
  it('has one line a minute for a database that is away, and every line of anything else', () => {
    let time = 0;
    const lines: string[] = [];
    const say = createFaultLog({ error: (line) => void lines.push(line) }, () => time);
    for (let n = 0; n < 100; n += 1) say('looking', coded('ECONNREFUSED', 'no'));
    expect(lines).toHaveLength(1);
    say('looking', new TypeError('a bug'));
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain('a bug (and 99 times more');
    time = 60_000;
    say('looking', coded('ECONNREFUSED', 'no'));
    expect(lines).toHaveLength(3);
    expect(lines[2]).not.toContain('times more');
  });
});
