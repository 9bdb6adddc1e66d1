import { Readable } from 'node:stream';
import { readHeader, readRow } from '../../../server/src/crm/import/columns';
import { type CsvRecord, readCsv } from '../../../server/src/imports/read-csv';

const records = async (text: string, chunk = 7): Promise<CsvRecord[]> => {
  const bytes = Buffer.from(text);
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += chunk) chunks.push(bytes.subarray(at, at + chunk));
  const result: CsvRecord[] = [];
  for await (const record of readCsv(Readable.from(chunks))) result.push(record);
  return result;
};

describe('readCsv', () => {
  it('reads quotes, line breaks in cells, a byte order mark, and knows the lines', async () => {
    const text = '\uFEFFemail,note\r\na@x.test,"one\ntwo, ""three"""\r\n\r\nb@x.test,\r\n';
    expect(await records(text)).toEqual([
      { line: 1, cells: ['email', 'note'] },
      { line: 2, cells: ['a@x.test', 'one\ntwo, "three"'] },
      { line: 5, cells: ['b@x.test', ''] },
    ]);
  });

  it.each([';', '\t', ','])('finds out that %j divides the cells', async (mark) => {
    const [, row] = await records(`email${mark}first_name\na@x.test${mark}"A${mark}B"\n`, 1000);
    expect(row).toMatchObject({ cells: ['a@x.test', `A${mark}B`] });
  });

  it('names what is no CSV and keeps what came before', async () => {
    const text = 'email,note\na@x.test,\nb@x.test,"never closed\nc@x.test,\n';
    expect(await records(text)).toEqual([
      { line: 1, cells: ['email', 'note'] },
      { line: 2, cells: ['a@x.test', ''] },
      { line: expect.any(Number), fault: expect.stringMatching(/quote/i) },
    ]);
    expect(await records('')).toEqual([]);
  });

  it('passes the failure of the stream on', async () => {
    const broken = Readable.from(
      (async function* () {
        yield Buffer.from('email\n');
        throw new Error('gone');
      })()
    );
    const read = async () => {
      for await (const _record of readCsv(broken)) continue;
    };
    await expect(read()).rejects.toThrow('gone');
  });
});

describe('columns', () => {
  const columns = (...headings: string[]) => {
    const header = readHeader(headings);
    if (!header.ok) throw new Error(header.message);
    return header.columns;
  };

  it('are read as people spell them', () => {
    const header = columns(
      'E-Mail'.replace('-', ''),
      'First Name',
      'fields.Shoe size',
      'Tags',
      'score'
    );
    const read = readRow(header, ['a@x.test', 'Ada', '41', 'VIP; new|VIP', '7'], 2);
    expect(read).toEqual({
      ok: true,
      row: {
        line: 2,
        email: 'a@x.test',
        input: { email: 'a@x.test', first_name: 'Ada', fields: { 'Shoe size': '41' }, score: 7 },
        tags: ['VIP', 'new'],
      },
    });
  });

  it('that are unknown, double or lack the address are named', () => {
    expect(() => columns('email', 'colour')).toThrow(/unknown columns: colour\. Possible: email/);
    expect(() => columns('email', 'Email')).toThrow(/given twice: Email/);
    expect(() => columns('first_name')).toThrow(/no column "email"/);
    expect(() => columns('email', 'email_key')).toThrow(/unknown/);
  });

  it.each([
    [['nobody'], /email/],
    [[''], /email: is missing/],
    [['a@x.test', 'x'.repeat(256)], /first_name/],
    [['a@x.test', '', 'many'], /score/],
    [['a@x.test', '', '1', 'extra'], /has 4 cells for 3 columns/],
  ])('%j is no contact', (cells, message) => {
    const read = readRow(columns('email', 'first_name', 'score'), cells, 3);
    expect(read.ok).toBe(false);
    expect((read as { message: string }).message).toMatch(message);
  });
});

it('reads a header and a row of 4,000 columns in a time that grows with their number', () => {
  const names = Array.from({ length: 4000 }, (_none, index) => `fields.f${index}`);
  const before = process.cpuUsage();
  const header = readHeader(['email', ...names]);
  const row = header.ok && readRow(header.columns, ['a@x.test', ...names.map(() => 'x')], 2);
  expect(row).toMatchObject({ ok: true });
  const { user, system } = process.cpuUsage(before);
  // Seconds of the processor, when each cell copied those before it.
  expect((user + system) / 1000).toBeLessThan(1000);
});
