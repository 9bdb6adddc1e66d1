import { skuDigest } from '../../server/src/stock/items';
import { databases, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  admin,
  createItem,
  createTill,
  eventOf,
  isoAgo,
  levelOf,
  rebuild,
  settled,
  type Till,
} from './pos-till';

const ROUNDS = 80;

describeEach(databases(), 'what a record waits for', (database) => {
  let site: Site;
  const tills: Till[] = [];

  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { ratePerMinute: 1_000_000 } } });
    for (let count = 0; count < 8; count += 1) tills.push(await createTill(site, { group: 'one' }));
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  it('wakes a refund whose item and whose sale become known within milliseconds', async () => {
    const rounds = Array.from({ length: ROUNDS }, (_none, round) => ({
      sku: `TWO-${round}`,
      sale: `two-${round}`,
      till: tills[round % tills.length] as Till,
      other: tills[(round + 1) % tills.length] as Till,
    }));
    const refunds = await Promise.all(
      rounds.map(async ({ sku, sale, till }) => {
        const line_items = [{ sku, quantity: 1 }];
        const { body } = await till.refund(sale, { occurred_at: isoAgo(10), line_items });
        return body.event_id as number;
      })
    );
    for (const id of refunds) await settled(site, id, 'held');
    await Promise.all(
      rounds.flatMap(({ sku, sale, other }) => [
        other.sale([[sku, 3]], { external_id: sale, occurred_at: isoAgo(60) }),
        createItem(site, sku, 10),
      ])
    );
    const isDone = async (): Promise<boolean> => {
      const [row] = await site.control('sql', {
        statement: `SELECT COUNT(*) AS n FROM switchboard_pos_events WHERE state <> 'applied'`,
      });
      return Number(row.n) === 0;
    };
    await waitFor(isDone, 20_000, 'every refund to be applied').catch(() => undefined);
    const states = await Promise.all(refunds.map(async (id) => (await eventOf(site, id)).state));
    expect(states).toEqual(refunds.map(() => 'applied'));
    for (const { sku } of rounds) expect(await levelOf(site, sku)).toBe(8);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('wakes what waits at the start of a node, where whoever made it known was killed before it told', async () => {
    const till = tills[0] as Till;
    const { body } = await till.sale([
      ['Killed', 2],
      ['KILLED', 1],
    ]);
    await settled(site, body.event_id, 'needs_mapping');
    // As a node leaves it that is killed between its commit and its wake.
    const at = Date.now();
    for (const sku of ['Killed', 'KILLED']) {
      await site.evaluate(
        ({ strapi }, row) => strapi.db.connection('switchboard_items').insert(row),
        { sku, sku_digest: skuDigest(sku), low_at: 0, created_at: at, updated_at: at }
      );
    }
    await site.restart();
    await settled(site, body.event_id, 'applied');
    expect([await levelOf(site, 'Killed'), await levelOf(site, 'KILLED')]).toEqual([-2, -1]);
    const [value] = await admin(site, 'GET', '/mapping-inbox?search=killed');
    expect(value).toBeUndefined();
  });
});
