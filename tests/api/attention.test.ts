import { randomUUID } from 'node:crypto';
import type { Attention } from '../../shared/contracts/overview';
import { createAdminRole, createAdminUser } from '../support/accounts';
import { anyDatabase, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { admin, createTill, isoAgo, settled, type Till } from './pos-till';

describeEach(anyDatabase(), 'what needs attention besides webhooks', (database) => {
  let site: Site;
  let till: Till;
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
    till = await createTill(site, { scopes: ['sale:write', 'refund:write', 'closing:write'] });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const attention = async (): Promise<Attention> => admin(site, 'GET', '/attention');

  it('is nothing on a site where all is well', async () => {
    expect(await attention()).toEqual({
      records: { failed: 0, needs_mapping: 0, held: 0, differs: 0 },
      tills: [],
      refused: 0,
      imports: [],
      steps: { webhook: false, till: true, contact: false },
    });
  });

  it('counts records by what they wait for, also a closing that differs and a refund without its sale', async () => {
    const unmapped = await till.sale([['NOBODY-KNOWS', 1]]);
    await settled(site, unmapped.body.event_id, 'needs_mapping');
    const refund = await till.refund('S-NEVER', { occurred_at: isoAgo(10) });
    await settled(site, refund.body.event_id, 'held');
    const closing = await till.send('closing', {
      external_id: randomUUID(),
      occurred_at: isoAgo(0),
      from: isoAgo(7200),
      to: isoAgo(3600),
      totals: [
        { currency: 'EUR', sales: { count: 3, total: 900 }, refunds: { count: 0, total: 0 } },
      ],
    });
    expect(closing.body.state).toBe('differs');
    expect((await attention()).records).toEqual({
      failed: 0,
      needs_mapping: 1,
      held: 1,
      differs: 1,
    });
  });

  it('counts refused records', async () => {
    expect((await till.send('sale', { external_id: 'X' })).status).toBe(400);
    await admin(site, 'GET', `/connections/${till.id}/refusals`);
    await waitFor(async () => (await attention()).refused === 1);
  });

  it('names the latest import of a kind while it left rows out', async () => {
    const importCsv = async (csv: string): Promise<number> => {
      const { body } = await site.request('POST', '/switchboard/contacts/import', {
        headers: { 'content-type': 'text/csv' },
        body: Buffer.from(csv),
      });
      const { id } = body.data;
      await waitFor(async () => (await admin(site, 'GET', `/imports/${id}`)).state === 'done');
      return id;
    };
    const id = await importCsv('email\nada@example.test\nnobody\n');
    expect((await attention()).imports).toEqual([
      { id, kind: 'contacts', failed: 1, finished_at: expect.any(String) },
    ]);
    await importCsv('email\nada@example.test\n');
    expect((await attention()).imports).toEqual([]);
  });

  it('shows each user what they may see', async () => {
    const role = await createAdminRole(site, [{ action: 'plugin::switchboard.crm.import' }]);
    const { token } = await createAdminUser(site, { role });
    const { body } = await site.request('GET', '/switchboard/attention', { as: { token } });
    expect(body.data).toEqual({
      ...{ records: null, tills: null, refused: null, imports: [] },
      steps: { webhook: null, till: null, contact: true },
    });
  });
});
