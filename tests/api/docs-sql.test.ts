import { databases, describeEach, runSql } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { codeBlocks, readDocument } from '../unit/docs/support/markdown';
import { countRows, createWebhook, send, sql } from './delivery-support';

const sqlOf = (document: string): string[] =>
  codeBlocks(readDocument(document))
    .filter(({ language }) => language === 'sql')
    .map(({ code }) => code.trim());

/** The statements that these pages give to those who keep a site. */
const statements = ['docs/backup.md', 'docs/monitoring.md']
  .flatMap(sqlOf)
  .map((code) => code.replace(/;$/, ''));

describeEach(databases(), 'the SQL of docs/backup.md and docs/monitoring.md', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  it('is there', () => expect(statements.length).toBeGreaterThanOrEqual(4));

  it.each(statements)('runs: %s', async (statement) => {
    const given = statement.replaceAll(':now', String(Date.now()));
    const answer: unknown = await site.control('sql', { statement: given });
    // A driver answers a change in a way of its own; that it was taken is what counts.
    if (/^SELECT/i.test(given)) expect(answer).toEqual(expect.any(Array));
  });
});

const postgres = databases().filter((kind) => kind === 'postgres');

describeEach(postgres, 'the SQL of docs/scaling.md', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it('has attempts in a table for each day, which the site goes on with', async () => {
    const { id } = await createWebhook(site, receiver.url);
    const sendOne = async (sent: number): Promise<void> => {
      await send(site, 'order.placed', {});
      await waitFor(async () => (await countRows(site, "status = 'sent'")) === sent);
    };
    await sendOne(1);
    const blocks = sqlOf('docs/scaling.md');
    expect(blocks.length).toBeGreaterThanOrEqual(4);
    for (const block of blocks) await runSql('postgres', site.databaseName, block);
    await site.restart();
    await sendOne(2);
    const parts = await sql<{ part: string; n: string }>(
      site,
      'SELECT tableoid::regclass::text AS part, COUNT(*) AS n FROM switchboard_attempts GROUP BY 1'
    );
    expect(parts).toEqual([{ part: 'switchboard_attempts_first', n: '2' }]);
    const { data } = (await site.request('GET', `/api/fw-crm/v1/webhooks/${id}/deliveries`)).body;
    expect(data).toHaveLength(2);
    // What is not expected to fall on any day is not lost.
    await sql(site, 'UPDATE switchboard_attempts SET at = 253402300799999');
    expect(await sql(site, 'SELECT id FROM switchboard_attempts_rest')).toHaveLength(2);
    expect((await site.request('DELETE', `/api/fw-crm/v1/webhooks/${id}`)).status).toBeLessThan(
      300
    );
    expect(await sql(site, 'SELECT id FROM switchboard_attempts')).toEqual([]);
  }, 120_000);
});
