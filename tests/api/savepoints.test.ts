import type { Knex } from 'knex';
import { databases, describeEach } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { countRows, createWebhook, useSiteAndReceiver } from './delivery-support';

describeEach(databases(), 'a caller that goes back to a savepoint of its own', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: {} }, (s, r) => {
    [site, receiver] = [s, r];
  });

  it.each(['by a statement', 'by a transaction in its transaction'])(
    'sends nothing of what is undone %s, and at once what is left',
    async (way) => {
      await createWebhook(site, receiver.url);
      await site.evaluate(async ({ strapi }, how) => {
        const create = (last_name: string) =>
          strapi.documents('plugin::switchboard.contact').create({ data: { last_name } });
        await strapi.db.transaction(async ({ trx }: { trx: Knex.Transaction }) => {
          await create('kept');
          if (how === 'by a statement') {
            await trx.raw('SAVEPOINT own');
            await create('undone');
            await trx.raw('rollback to savepoint own');
          } else {
            const undone = trx.transaction(async () => {
              await create('undone');
              throw new Error('undone');
            });
            await undone.catch(() => {});
          }
          await create('later');
        });
      }, way);
      await receiver.waitFor(2, 3000);
      await receiver.settle(1000);
      const names = receiver.requests.map(({ json }) => json.data.last_name as string).sort();
      expect(names).toEqual(['kept', 'later']);
      expect(await countRows(site, "event = 'contact.created'")).toBe(2);
    }
  );
});
