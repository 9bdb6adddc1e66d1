import { Readable } from 'node:stream';
import { emailKey } from '../../../server/src/crm/contact-integrity';
import { readHeader, readRow } from '../../../server/src/crm/import/import-service';
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

  const faultsIn = (read: CsvRecord[]) => read.filter((one) => 'fault' in one);

  it('keeps a quotation mark within a text, and loses no row', async () => {
    const text = 'sku,name\nA,5" screen\nB,"Q" tail\nC,plain\n';
    expect(await records(text)).toEqual([
      { line: 1, cells: ['sku', 'name'] },
      { line: 2, cells: ['A', '5" screen'] },
      { line: 3, cells: ['B', '"Q" tail'] },
      { line: 4, cells: ['C', 'plain'] },
    ]);
  });

  it('names a row whose mark is not closed once, and reads those after it', async () => {
    const text = 'sku,name\r\nA,"open\r\nB,"b"\r\nC,"c, ""c"""\r\nD,"two\r\nlines"\r\n';
    expect(await records(text)).toEqual([
      { line: 1, cells: ['sku', 'name'] },
      { line: 2, fault: 'a quote is not closed' },
      { line: 3, cells: ['B', 'b'] },
      { line: 4, cells: ['C', 'c, "c"'] },
      { line: 5, cells: ['D', 'two\r\nlines'] },
    ]);
  });

  it('names a mark that is never closed once, however much follows', async () => {
    const rows = 'B,1\n'.repeat(600_000);
    const read = await records(`sku,name\nA,ok\nX,"open\n${rows}`, 65_536);
    expect(read).toEqual([
      { line: 1, cells: ['sku', 'name'] },
      { line: 2, cells: ['A', 'ok'] },
      { line: 3, fault: expect.stringMatching(/not closed/) },
    ]);
  });

  it.each(['A,5" screen\n', 'A,"x" y\n', 'A,"open\nB,"b"\n'])(
    'reads 100 kB of %j as quickly as other rows',
    async (row) => {
      const times = Math.ceil(100_000 / row.length);
      const before = process.cpuUsage();
      const read = await records(`sku,name\n${row.repeat(times)}`, 65_536);
      const { user, system } = process.cpuUsage(before);
      const rows = row.split('\n').length - 1;
      expect(read).toHaveLength(1 + times * rows);
      expect(faultsIn(read)).toHaveLength(row.includes('open') ? times : 0);
      // One or two seconds of the processor where it is busy; 14 where the parser makes a fault of each row.
      expect((user + system) / 1000).toBeLessThan(6000);
    }
  );

  it.each([
    ['Windows-1252', Buffer.from('sku,name\nA,Tee\nB,Caf\xe9\n', 'latin1'), 3],
    ['UTF-16', Buffer.from('\ufeffsku,name\nA,Tee\n', 'utf16le'), 1],
    ['half a character at the end', Buffer.from('sku,name\nA,\xe2\x82', 'latin1'), 2],
    ['a byte that begins nothing', Buffer.from('sku,name\nA,\x80\n', 'latin1'), 2],
  ])('refuses %s, and names the first line of it', async (_name, bytes, line) => {
    for (const size of [1, 3, 1000]) {
      const chunks: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
      const read = async () => {
        for await (const _record of readCsv(Readable.from(chunks))) continue;
      };
      await expect(read()).rejects.toThrow(`line ${line} is not UTF-8`);
    }
  });

  it('reads a cell of many empty lines in time linear to it', async () => {
    const lines = '\n'.repeat(30_000);
    const before = process.cpuUsage();
    const [, row] = await records(`email,note\na@x.test,"${lines}x"\n`, 100_000);
    const { user, system } = process.cpuUsage(before);
    expect(row).toMatchObject({ cells: ['a@x.test', `${lines}x`] });
    expect(user + system).toBeLessThan(1_000_000);
  });

  it('takes every character of UTF-8, wherever it is cut', async () => {
    const text = 'sku,name\nA,ä€😀\u00a0x\n';
    for (const size of [1, 2, 3, 5]) {
      expect((await records(text, size))[1]).toMatchObject({ cells: ['A', 'ä€😀\u00a0x'] });
    }
  });

  it('takes back the mark that our own lists put before a formula', async () => {
    expect((await records("sku,name\n'=1+1,'plain\n"))[1]).toMatchObject({
      cells: ['=1+1', "'plain"],
    });
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

  it('leaves the stream to its owner where it is not read to its end', async () => {
    const endless = function* () {
      for (;;) yield Buffer.from('email\n');
    };
    for (const first of ['email\n', 'email\n\xff\n']) {
      const file = Readable.from(
        (function* () {
          yield Buffer.from(first, 'latin1');
          yield* endless();
        })(),
        { objectMode: false }
      );
      const read = async (): Promise<void> => {
        for await (const _record of readCsv(file)) return;
      };
      await read().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(file.destroyed).toBe(false);
      file.destroy();
    }
  });
});

describe('columns', () => {
  const columns = (...headings: string[]) => readHeader(headings);

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
      row: {
        line: 2,
        email: 'a@x.test',
        key: emailKey('a@x.test'),
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
    [['a@x.test', '', '0x10'], /score/],
    [['a@x.test', '', '1e3'], /score/],
    [['a@x.test', '', '1', 'extra'], /has 4 cells for 3 columns/],
  ])('%j is no contact', (cells, message) => {
    const read = readRow(columns('email', 'first_name', 'score'), cells, 3);
    expect(read).toEqual({
      issue: { line: 3, email: cells[0] || null, message: expect.stringMatching(message) },
    });
  });
});

it('takes 200 columns, and no more', () => {
  const names = Array.from({ length: 199 }, (_none, index) => `fields.f${index}`);
  const header = readHeader(['email', ...names]);
  expect(readRow(header, ['a@x.test', ...names.map(() => 'x')], 2)).toHaveProperty('row');
  expect(() => readHeader(['email', ...names, 'score'])).toThrow(
    'header: there are 201 columns, and at most 200 are imported'
  );
});
