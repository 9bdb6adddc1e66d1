import { describeEach, anyDatabase } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { createWebhook, removeWebhook, useSiteAndReceiver } from './delivery-support';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the host's query builder
type Trx = (table: string) => any;

describeEach(
  anyDatabase(),
  'a webhook that is removed while its deliveries are sent',
  (database) => {
    let site: Site;
    let receiver: Receiver;
    useSiteAndReceiver({ database, webhooks: {} }, (started, listening) => {
      site = started;
      receiver = listening;
    });

    it('goes at once, with its whole log', async () => {
      for (let round = 0; round < 8; round += 1) {
        receiver.clear();
        const { id } = await createWebhook(site, receiver.url, { events: ['contact.created'] });
        await site.evaluate(async ({ strapi }, tag: number) => {
          const data = Array.from({ length: 600 }, (_none, at) => ({
            email: `removal-${tag}-${at}@example.test`,
          }));
          await strapi.db.query('plugin::switchboard.contact').createMany({ data });
        }, round);
        await receiver.waitFor(60);
        const answer = await removeWebhook(site, id);
        expect([answer.status, answer.text]).toEqual([204, '']);
        for (const rows of ['switchboard_deliveries', 'switchboard_attempts']) {
          const [left] = (await site.control('sql', {
            statement: `select count(*) as number from ${rows} where webhook_id = ${id}`,
          })) as { number: number | string }[];
          expect([rows, Number(left?.number)]).toEqual([rows, 0]);
        }
      }
    }, 120_000);

    // SQLite has one writer at a time.
    if (database === 'sqlite') return;

    it('goes although somebody holds rows of its log crosswise', async () => {
      const { id } = await createWebhook(site, receiver.url, { events: ['contact.created'] });
      await site.evaluate(async ({ strapi }) => {
        const data = Array.from({ length: 10 }, (_none, at) => ({
          email: `held-${at}@example.test`,
        }));
        await strapi.db.query('plugin::switchboard.contact').createMany({ data });
      });
      await receiver.waitFor(10);
      const holding = site.evaluate(async ({ strapi, state }, webhook: number) => {
        const lock = (trx: Trx, order: string) =>
          trx('switchboard_deliveries')
            .select('id')
            .where({ webhook_id: webhook })
            .orderBy('id', order)
            .limit(1)
            .forUpdate();
        // Whom of the two the database takes for the victim is its own affair.
        await strapi.db.connection
          .transaction(async (trx: Trx) => {
            await lock(trx, 'desc');
            state.isHeld = true;
            await new Promise((resolve) => {
              setTimeout(resolve, 400);
            });
            await lock(trx, 'asc');
          })
          .catch(() => {});
      }, id);
      while (!(await site.control('state', { key: 'isHeld' }))) continue;
      const answer = await removeWebhook(site, id);
      await holding;
      expect([answer.status, answer.text]).toEqual([204, '']);
    }, 30_000);
  }
);
