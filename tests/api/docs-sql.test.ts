import { databases, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { codeBlocks, readDocument } from '../unit/docs/support/markdown';

/** The statements that docs/operations.md gives to those who keep a site. */
const statements = codeBlocks(readDocument('docs/operations.md'))
  .filter(({ language }) => language === 'sql')
  .map(({ code }) => code.trim().replace(/;$/, ''));

describeEach(databases(), 'the SQL of docs/operations.md', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, accounts: false });
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
