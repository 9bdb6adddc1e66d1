import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM } from './crm-helpers';

/** A row that the CRM, the host or the database would refuse costs its neighbours nothing. */

jest.setTimeout(240_000);

const NUL = '\u0000';
const quoted = (cell: string): string => `"${cell.replaceAll('"', '""')}"`;

/** By column: what no contact can have. */
const BAD: Readonly<Record<string, readonly string[]>> = {
  email: ['nobody', `nul${NUL}@x.test`, `${'x'.repeat(300)}@x.test`, 'a@x.test\nb@x.test', ''],
  first_name: [`a${NUL}b`, 'x'.repeat(256)],
  phone: ['1'.repeat(65)],
  status: ['happy', 'constructor', '__proto__', 'SUBSCRIBED'],
  lifecycle_stage: ['x'.repeat(65), `l${NUL}`],
  company_id: ['nowhere', `c${NUL}`, '../1', 'x'.repeat(65)],
  score: [
    'many',
    '1e3',
    '0x10',
    '1e400',
    '2147483648',
    '1.5',
    '-2147483649',
    'NaN',
    'Infinity',
    '0x',
    '٣',
  ],
  lifetime_value: ['1e300', '100000000', 'a'],
  owner_id: ['999999', '0', '-1', '2147483648', '1.5'],
  tags: [
    `bad${NUL}tag`,
    'ß'.repeat(255),
    'x'.repeat(256),
    Array.from({ length: 1001 }, (_none, index) => `t${index}`).join('|'),
  ],
  'fields.size': [`s${NUL}`, 'x'.repeat(70_000)],
  'address.city': [`c${NUL}`],
  fields: ['{"a":"\\ud800"}', '{"a":["\\udc00 b"]}', '{"a":"\\u0000"}'],
};

/** Odd, and yet what a contact may have. */
const ODD: Readonly<Record<string, readonly string[]>> = {
  first_name: ["O'Brien\\", '😀'.repeat(100), '%_', '\u2028', '=1+1', 'x'.repeat(255), '\ufffd'],
  phone: ['+1 (0)'],
  score: ['-2147483648', '2147483647'],
  lifetime_value: ['99999999.99', '-0'],
  tags: ['ß', '日本', 'ß'.repeat(127), 'constructor', '__proto__', "a'b", 'x'.repeat(250)],
  'fields.size': ['{"a":1}', '😀', '\\u0000'],
  fields: ['{"a":"\\ud83d\\ude00"}', '{"a":"\\\\ud800"}'],
};

describeEach(anyDatabase(), 'an import with rows that cannot be', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
  });
  afterAll(() => site?.stop(), 60_000);

  const upload = (csv: string) =>
    site.request('POST', '/switchboard/contacts/import', {
      body: Buffer.from(csv),
      headers: { 'content-type': 'text/csv' },
      timeoutMs: 180_000,
    });

  it('reports each with its line, its column and why, and imports all others', async () => {
    const columns = Object.keys(BAD);
    const lines = [columns.join(',')];
    const wrong: { line: number; column: string }[] = [];
    let good = 0;
    // Some cells have a line break in them: a record begins further down by then.
    let line = 2;
    const add = (cells: Record<string, string>): number => {
      const text = columns.map((column) => quoted(cells[column] ?? '')).join(',');
      lines.push(text);
      const at = line;
      line += text.split('\n').length;
      return at;
    };
    for (const [column, cells] of Object.entries(BAD)) {
      for (const cell of cells) {
        add({ email: `good${good}@x.test`, first_name: 'Good', tags: 'friend' });
        good += 1;
        const at = add({ email: `bad${wrong.length}@x.test`, [column]: cell });
        wrong.push({ line: at, column: column.split('.')[0]! });
      }
    }
    for (const [column, cells] of Object.entries(ODD)) {
      for (const cell of cells) {
        add({ email: `good${good}@x.test`, [column]: cell });
        good += 1;
      }
    }
    const { status, body } = await upload(`${lines.join('\n')}\n`);
    expect(status).toBe(200);
    const issues = body.data.issues as { line: number; message: string }[];
    expect(
      issues
        .map(({ line: at, message }) => ({ line: at, column: message.split(/[:.]/)[0] }))
        .sort((one, other) => one.line - other.line)
    ).toEqual(wrong);
    expect(body.data).toMatchObject({
      total: good + wrong.length,
      created: good,
      failed: wrong.length,
    });
    for (const { message } of issues) expect(message).not.toMatch(/insert into|sql|\$1/i);
    const one = await site.request('GET', `${CRM}/contacts?email=good0@x.test`);
    expect(one.body.data[0]).toMatchObject({ first_name: 'Good' });
    const bad = await site.request('GET', `${CRM}/contacts?email=bad7@x.test`);
    expect(bad.body.data).toEqual([]);
  });

  it('takes a header and rows of 200 columns', async () => {
    const names = Array.from({ length: 199 }, (_none, index) => `fields.f${index}`);
    const row = (email: string) => [email, ...names.map(() => 'x')].join(',');
    const csv = `email,${names.join(',')}\n${row('wide1@x.test')}\n${row('wide2@x.test')},y\n${row('wide3@x.test')}\n`;
    const { status, body } = await upload(csv);
    expect([status, body.data.created, body.data.failed]).toEqual([200, 2, 1]);
    expect(body.data.issues[0]).toMatchObject({
      line: 3,
      message: 'has 201 cells for 200 columns',
    });
    const half = names.slice(0, 90).join(',');
    const twice = await upload(`email,${half},${half}\n`);
    expect(twice.status).toBe(400);
    expect(twice.body.error.message).toMatch(/^header: columns given twice: .* and 70 more$/);
    const many = await upload(`email,${names.join(',')},score\n`);
    expect([many.status, many.body.error.message]).toEqual([
      400,
      'header: there are 201 columns, and at most 200 are imported',
    ]);
  });

  it('refuses a tag of REST whose slug would be too long, with a 400', async () => {
    const body = { name: 'ß'.repeat(255) };
    const answer = await site.request('POST', `${CRM}/tags`, { body });
    expect(answer.status).toBe(400);
    expect(answer.body.error.details.errors[0].path).toEqual(['name']);
  });
});
