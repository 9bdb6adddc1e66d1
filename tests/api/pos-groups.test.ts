import { databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  admin,
  allProcessed,
  createItem,
  createTill,
  eventOf,
  isoAgo,
  levelOf,
  rebuild,
  settled,
  type Till,
} from './pos-till';

describeEach(databases(), 'a connection that leaves or joins a group', (database) => {
  let site: Site;

  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { ratePerMinute: 100_000 } } });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const scopes = ['sale:write', 'refund:write', 'inventory:write', 'closing:write'];
  const tillIn = (group: string | null): Promise<Till> => createTill(site, { group, scopes });
  const move = (till: Till, group: string | null) =>
    admin(site, 'PUT', `/connections/${till.id}`, { group });
  const sell = async (till: Till, sku: string, quantity: number, id: string): Promise<void> => {
    const { body } = await till.sale([[sku, quantity]], {
      external_id: id,
      total: 300,
      occurred_at: isoAgo(600),
    });
    await settled(site, body.event_id, 'applied');
  };
  const refund = async (
    till: Till,
    sale: string,
    sku: string,
    quantity: number,
    seconds = 300
  ): Promise<number> => {
    const line_items = [{ sku, quantity }];
    const { body } = await till.refund(sale, { occurred_at: isoAgo(seconds), line_items });
    return body.event_id;
  };
  const level = (sku: string, quantity: number) =>
    waitFor(async () => (await levelOf(site, sku)) === quantity, 30_000, `${sku}: ${quantity}`);

  it('has the refunds of its sales settled again, and what they cost, and their closings', async () => {
    await createItem(site, 'LEAVES', 10);
    const [seller, other] = [await tillIn('leaving'), await tillIn('leaving')];
    await sell(seller, 'LEAVES', 3, 'leaves');
    const id = await refund(other, 'leaves', 'LEAVES', 2);
    await settled(site, id, 'applied');
    await level('LEAVES', 9);
    const closed = await other.send('closing', {
      external_id: 'shift',
      occurred_at: isoAgo(0),
      from: isoAgo(3600),
      to: isoAgo(0),
      totals: [
        { currency: 'GBP', sales: { count: 0, total: 0 }, refunds: { count: 1, total: 200 } },
      ],
    });
    expect(closed.body).toMatchObject({ state: 'matched' });

    await move(seller, null);
    await settled(site, id, 'held');
    await level('LEAVES', 7);
    await settled(site, closed.body.event_id, 'differs');

    await move(seller, 'leaving');
    await settled(site, id, 'applied');
    await level('LEAVES', 9);
    await settled(site, closed.body.event_id, 'matched');
    expect((await rebuild(site)).differences).toEqual([]);
  });

  itOnce(database)('leaves more of its sale to the refunds that stay', async () => {
    await createItem(site, 'SHARED', 10);
    const [seller, other] = [await tillIn('sharing'), await tillIn('sharing')];
    await sell(seller, 'SHARED', 3, 'shared');
    const first = await refund(other, 'shared', 'SHARED', 2, 400);
    const second = await refund(seller, 'shared', 'SHARED', 2, 300);
    for (const id of [first, second]) await settled(site, id, 'applied');
    await level('SHARED', 10);
    await waitFor(async () => (await eventOf(site, second)).flags.includes('over_refund'));

    await move(other, 'elsewhere');
    await settled(site, first, 'held');
    await level('SHARED', 9);
    await waitFor(async () => !(await eventOf(site, second)).flags.includes('over_refund'));

    await move(other, 'sharing');
    await settled(site, first, 'applied');
    await level('SHARED', 10);
    await waitFor(async () => (await eventOf(site, second)).flags.includes('over_refund'));
    expect((await rebuild(site)).differences).toEqual([]);
  });

  itOnce(database)(
    'makes one sale of two, or two of one, to a refund of a third member',
    async () => {
      await createItem(site, 'TWICE', 10);
      const [one, two, third] = [
        await tillIn('three'),
        await tillIn('three'),
        await tillIn('three'),
      ];
      await sell(one, 'TWICE', 2, 'twice');
      await sell(two, 'TWICE', 3, 'twice');
      const id = await refund(third, 'twice', 'TWICE', 3);
      await settled(site, id, 'needs_mapping');
      await level('TWICE', 5);

      await move(one, null);
      await settled(site, id, 'applied');
      await level('TWICE', 8);

      await move(one, 'three');
      await settled(site, id, 'needs_mapping');
      await level('TWICE', 5);
      await allProcessed(site);
      expect((await rebuild(site)).differences).toEqual([]);
    }
  );
});
