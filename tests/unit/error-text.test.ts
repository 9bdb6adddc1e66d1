import { randomBytes } from 'node:crypto';
import {
  dropStatement,
  errorText,
  isDatabaseError,
  redactText,
} from '../../server/src/runtime/text';
import { isInfrastructureFault } from '../../server/src/database/retry';
import { generateSecret as generateTillSecret } from '../../server/src/pos/rules/credentials';
import { generateSecret as generateWebhookSecret } from '../../server/src/webhooks/rules/request-headers';

const CANARY = 'canary-payload';

const driverError = (message: string, facts: Record<string, unknown>): Error =>
  Object.assign(new Error(message), facts);

/** As the drivers and knex really make them. */
const ERRORS: [string, () => Error, string[]][] = [
  [
    'PostgreSQL, a duplicate',
    () =>
      driverError(
        `insert into "w" ("name") values ('${CANARY}') - duplicate key value violates unique constraint "w_name"`,
        {
          ...{ name: 'error', code: '23505', severity: 'ERROR', constraint: 'w_name', table: 'w' },
          detail: `Key (name)=(${CANARY}) already exists.`,
        }
      ),
    ['23505', 'constraint w_name', 'table w'],
  ],
  [
    'PostgreSQL, whose text quotes the value, with a dash in it',
    () =>
      driverError(
        `update "w" set "n" = 'x' - invalid input syntax for type integer: "a - ${CANARY}"`,
        { name: 'error', code: '22P02', severity: 'ERROR' }
      ),
    ['22P02'],
  ],
  [
    'MariaDB, a duplicate',
    () =>
      driverError(
        `insert into w values ('${CANARY}') - Duplicate entry '${CANARY}' for key 'w_n'`,
        {
          ...{ code: 'ER_DUP_ENTRY', errno: 1062, sqlState: '23000' },
          ...{ sql: `insert … ${CANARY}`, sqlMessage: `Duplicate entry '${CANARY}'` },
        }
      ),
    ['ER_DUP_ENTRY', "for key 'w_n'"],
  ],
  [
    'SQLite, a constraint',
    () =>
      driverError(`insert into w values ('${CANARY}') - UNIQUE constraint failed: w.name`, {
        ...{ name: 'SqliteError', code: 'SQLITE_CONSTRAINT_UNIQUE' },
      }),
    ['SQLITE_CONSTRAINT_UNIQUE', 'w.name'],
  ],
  [
    'an error that lost its code',
    () => new Error(`INSERT INTO w VALUES ('${CANARY}') - something`),
    [],
  ],
];

describe('an error in a log', () => {
  test.each(ERRORS)('holds no statement and no value: %s', (_name, make, kept) => {
    const error = make();
    expect(isDatabaseError(error)).toBe(true);
    const text = errorText(error);
    expect(text).not.toContain(CANARY);
    expect(text).not.toMatch(/insert into|values|update "/i);
    for (const part of kept) expect(text).toContain(part);
    expect(errorText(new Error(`wrapped`, { cause: error }))).not.toContain(CANARY);
  });

  test.each(ERRORS)('nor where the error itself is logged: %s', (_name, make, kept) => {
    const error = make();
    const code = (error as { code?: unknown }).code;
    dropStatement(error);
    const everything = [
      error.message,
      error.stack,
      JSON.stringify(error, Object.getOwnPropertyNames(error)),
    ].join();
    expect(everything).not.toContain(CANARY);
    expect((error as { code?: unknown }).code).toBe(code);
    for (const part of kept) expect(everything).toContain(part.replaceAll('"', '\\"'));
  });

  test('still tells a connection that broke from a statement that was refused', () => {
    const broken = new Error(`select '${CANARY}' - Connection terminated unexpectedly`);
    dropStatement(broken);
    expect(broken.message).not.toContain(CANARY);
    expect(isInfrastructureFault(broken)).toBe(true);
    const refused = new Error(`insert into w values ('${CANARY}') - syntax error`);
    dropStatement(refused);
    expect(isInfrastructureFault(refused)).toBe(false);
  });

  test('keeps the words of other errors, on one line, capped, without credentials', () => {
    expect(errorText(new Error('the shop is closed'))).toBe('Error the shop is closed');
    expect(errorText(Object.assign(new TypeError('no'), { code: 'E_NO' }))).toBe(
      'TypeError E_NO no'
    );
    expect(errorText(new Error('a\nb\u2028c\u001b[31m'))).toBe('Error a b c [31m');
    expect(errorText(new Error('x'.repeat(10_000))).length).toBeLessThanOrEqual(200);
    expect(errorText('plain')).toBe('plain');
    expect(errorText(new Error('GET https://a.example/?token=hunter2'))).not.toContain('hunter2');
  });

  test('does not quote what a parser could not read', () => {
    let caught: unknown;
    try {
      JSON.parse(`${CANARY}`);
    } catch (error) {
      caught = error;
    }
    expect(errorText(caught)).not.toContain('canary');
  });
});

describe('credentials in text', () => {
  test.each([
    ['https://a.example/?token=hunter2&x=1', 'https://a.example/?token=***&x=1'],
    ['https://a.example/?x=1&access_token=hunter2#f', 'https://a.example/?x=1&access_token=***#f'],
    ['https://a.example/#id_token=hunter2', 'https://a.example/#id_token=***'],
    ['https://a.example/?api_key=hunter2', 'https://a.example/?api_key=***'],
    ['https://a.example/?apikey=hunter2', 'https://a.example/?apikey=***'],
    ['https://a.example/?X-Amz-Signature=hunter2', 'https://a.example/?X-Amz-Signature=***'],
    ['https://a.example/?sig=hunter2&sv=1', 'https://a.example/?sig=***&sv=1'],
    ['https://user:hunter2@a.example/', 'https://***@a.example/'],
    ['https://user:hunter1@hunter2@a.example/', 'https://***@a.example/'],
    [`${'a'.repeat(40)}://user:hunter2@a`, `${'a'.repeat(40)}://***@a`],
    ['next=https%3A%2F%2Fa%3Ftoken%3Dhunter2%26x', 'next=https%3A%2F%2Fa%3Ftoken%3D***%26x'],
    ['sent Bearer hunter2.abc', 'sent Bearer ***'],
    ['key whsec_aHVudGVyMg==', 'key ***'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.hunter2', '***'],
    ['x-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.hunter2', 'x-***'],
    ['session=hunter2; theme=dark', 'session=***; theme=dark'],
  ])('%s', (text, expected) => {
    expect(redactText(text)).toBe(expected);
  });

  test.each(['application/json', 'sha256=00ff', 'https://a.example/hooks?shop=1', 'a basic one'])(
    'leaves %s alone',
    (text) => expect(redactText(text)).toBe(text)
  );

  // What its expressions begin, go on and end with; whatever two of them make is repeated.
  const PIECES = [
    ...['a', '-', '.', '_', ' ', '&', '=', '%26', '/', '://', 'a://', '@', '?token', '&key-'],
    ...['eyJ', 'eyJabcde', '.abcde', 'bearer ', 'basic', 'whsec_', 'session'],
  ];

  test.each(PIECES)('takes time in proportion to the text: %j and others', (piece) => {
    const slow = PIECES.filter((other) => {
      const before = process.cpuUsage();
      redactText((piece + other).repeat(8_000));
      const { user, system } = process.cpuUsage(before);
      return user + system > 400_000;
    });
    expect(slow).toEqual([]);
  });
});

describe('secrets of our own', () => {
  it.each([
    ['a webhook’s', generateWebhookSecret(randomBytes)],
    ['a till’s', generateTillSecret(randomBytes)],
  ])('are told by their shape: %s', (_name, secret) => {
    expect(redactText(`before ${secret} after`)).toBe('before *** after');
  });
});
