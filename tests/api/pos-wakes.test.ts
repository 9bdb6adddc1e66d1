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

const ROUNDS = 30;

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

  it('wakes once more after the commit, and again where that was the victim of a deadlock', async () => {
    const { body } = await (tills[0] as Till).sale([['VICTIM', 2]]);
    await settled(site, body.event_id, 'needs_mapping');
    // It begins to wait, for all that the first wake sees, after that wake.
    await site.evaluate(async ({ strapi }, id) => {
      const waits = () => strapi.db.connection('switchboard_pos_waits').where({ event_id: id });
      const [{ digest }] = await waits();
      await waits().update({ digest: 'not yet' });
      const begin = strapi.db.transaction;
      // The second wake is what begins outside of any request once a request has begun to write.
      let hasBegun = false;
      strapi.db.transaction = async (...args: unknown[]) => {
        const isOfRequest = strapi.requestContext.get() !== undefined;
        const isSecond = hasBegun && !isOfRequest && !strapi.db.inTransaction();
        hasBegun ||= isOfRequest;
        if (!isSecond) return begin.apply(strapi.db, args);
        strapi.db.transaction = begin;
        await waits().update({ digest });
        throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
      };
    }, body.event_id);
    await createItem(site, 'VICTIM', 10);
    await settled(site, body.event_id, 'applied');
    expect(await levelOf(site, 'VICTIM')).toBe(8);
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
