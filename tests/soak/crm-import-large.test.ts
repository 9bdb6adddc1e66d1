import { setTimeout as pause } from 'node:timers/promises';
import { databases, type DatabaseKind, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM } from '../api/crm-helpers';

/** `IMPORT_ROWS=100000` for as many on every database; without it the servers get fewer. */
const rowsFor = (database: DatabaseKind): number =>
  Number(process.env.IMPORT_ROWS ?? (database === 'sqlite' ? 100_000 : 6_000));

/** One of a file's twenty kinds of rows comes every twenty lines. */
const KINDS = 20;
const MEGABYTE = 1024 * 1024;

const HEADER = 'email,first_name,phone,lifecycle_stage,score,tags\n';

const freshAt = (at: number): string => `fresh${at}@x.test`;
const knownAt = (at: number): string => `known${at}@x.test`;

const isKnown = (at: number): boolean => at % KINDS >= 10 && at % KINDS < 16;

/** Contacts that are there before the large file comes. */
const seedFile = (count: number): string => {
  const lines: string[] = [];
  for (let at = 0; at < count; at += 1) {
    if (isKnown(at)) lines.push(`${knownAt(at)},Known ${at},100,lead,1,seed\n`);
  }
  return HEADER + lines.join('');
};

const lineAt = (at: number): string => {
  const kind = at % KINDS;
  if (kind < 10) return `${freshAt(at)},Fresh ${at},,,${at % 100},mass\n`;
  // Nothing new, in another case and with cells left empty.
  if (kind < 12) return `${knownAt(at).toUpperCase()},Known ${at},,lead,,SEED\n`;
  if (kind < 14) return `${knownAt(at)},,200${at},,,\n`;
  if (kind === 14) return `${knownAt(at)},,,customer,,\n`;
  if (kind === 15) return `${knownAt(at)},,,,,mass\n`;
  // An address of this file again: to change it, and to say the same.
  if (kind === 16) return `${freshAt(at - 16).toUpperCase()},,300,,,\n`;
  if (kind === 17) return `${freshAt(at - 16)},Fresh ${at - 16},,,,mass\n`;
  return kind === 18 ? `nobody${at},,,,,\n` : `bad${at}@x.test,,,,lots,\n`;
};

const largeFile = (count: number): string =>
  HEADER + Array.from({ length: count }, (_none, at) => lineAt(at)).join('');

describeEach(databases(), 'a large import', (database) => {
  const rows = rowsFor(database);
  const part = rows / KINDS;
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const upload = (csv: string) =>
    site.request('POST', '/switchboard/contacts/import', {
      body: Buffer.from(csv),
      headers: { 'content-type': 'text/csv' },
      timeoutMs: 900_000,
    });
  const countOf = async (where: object): Promise<number> =>
    site.control('query', {
      uid: 'plugin::switchboard.contact',
      method: 'count',
      params: { where },
    });

  /** What the webhook would be sent: how many deliveries, and of how many addresses. */
  const countCreated = (webhookId: number) =>
    site.evaluate(async ({ strapi }, id: number) => {
      const emails = new Set<string>();
      let deliveries = 0;
      for (let last = 0; ;) {
        const page = await strapi.db
          .connection('switchboard_deliveries')
          .select('id', 'event', 'body')
          .where({ webhook_id: id })
          .where('id', '>', last)
          .orderBy('id')
          .limit(2000);
        if (page.length === 0) return { deliveries, addresses: emails.size };
        for (const { event, body } of page) {
          const { data } = JSON.parse(body);
          if (event !== 'contact.created' || data.source !== 'import') throw new Error(body);
          emails.add(data.email);
          deliveries += 1;
        }
        last = page.at(-1).id;
      }
    }, webhookId);

  it(`takes ${rows} rows of all kinds, with the site answering and memory staying flat`, async () => {
    const seeded = await upload(seedFile(rows));
    expect(seeded.body.data).toMatchObject({ created: part * 6, failed: 0 });
    const webhook = await site.request('POST', `${CRM}/webhooks`, {
      body: { name: 'log', url: 'http://127.0.0.1:9/', events: ['contact.created'] },
    });
    const csv = largeFile(rows);
    const live = async (): Promise<number> => {
      const { heapUsed, external } = await site.control('memory');
      return heapUsed + external;
    };
    const before = await live();

    let isDone = false;
    const answers: number[] = [];
    const visitor = (async () => {
      while (!isDone) {
        answers.push((await site.request('GET', '/api/labels')).status);
        await pause(50);
      }
    })();
    let most = 0;
    const watcher = (async () => {
      while (!isDone) {
        most = Math.max(most, await live());
        await pause(3000);
      }
    })();
    const started = performance.now();
    const { status, body } = await upload(csv).finally(() => {
      isDone = true;
    });
    const seconds = (performance.now() - started) / 1000;
    await Promise.all([visitor, watcher]);
    if (process.env.IMPORT_ROWS) {
      const speed = `${Math.round(rows / seconds)} rows/s, ${answers.length} answers meanwhile`;
      process.stderr.write(`${database}: ${rows} rows in ${seconds.toFixed(1)} s, ${speed}, `);
      process.stderr.write(`${((most - before) / MEGABYTE).toFixed(1)} MB more in use\n`);
    }

    expect(status).toBe(200);
    const { issues, ...counts } = body.data;
    expect(counts).toMatchObject({
      total: rows,
      created: part * 10,
      updated: part * 5,
      unchanged: part * 3,
      failed: part * 2,
    });
    expect(issues).toHaveLength(Math.min(part * 2, 1000));
    expect(issues.slice(0, 2)).toEqual([
      { line: 20, email: 'nobody18', message: expect.stringMatching(/^email: /) },
      { line: 21, email: 'bad19@x.test', message: expect.stringMatching(/^score: /) },
    ]);
    expect(await countCreated(webhook.body.id)).toEqual({
      deliveries: part * 10,
      addresses: part * 10,
    });

    expect(await countOf({})).toBe(part * 16);
    expect(await countOf({ source: 'import' })).toBe(part * 16);
    expect(await countOf({ phone: { $startsWith: '200' } })).toBe(part * 2);
    expect(await countOf({ phone: '300' })).toBe(part);
    expect(await countOf({ lifecycle_stage: 'customer' })).toBe(part);
    expect(await countOf({ tags: { slug: 'mass' } })).toBe(part * 11);
    expect(await countOf({ tags: { slug: 'seed' } })).toBe(part * 6);

    expect(answers.length).toBeGreaterThan(0);
    expect(new Set(answers)).toEqual(new Set([200]));
    // What a file in memory, or the events of one, would need is several times that.
    expect(most - before).toBeLessThan(64 * MEGABYTE);
  }, 900_000);
});
