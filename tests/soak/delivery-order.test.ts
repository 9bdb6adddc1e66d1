import { arrivals, countRows, createWebhook } from '../api/delivery-support';
import { allChanges, TRIED_SOON, watchOrder } from '../api/order-support';
import { databases, describeEach } from '../support/databases';
import { seededChance } from '../support/seeded-chance';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';

/** `SOAK=full` is the whole of it: 10,000 updates. */
const UPDATES = process.env.SOAK === 'full' ? 100 : 10;
const CONTACTS = 100;
const NODES = 3;
const REFUSED = 0.2;
const SEED = 20_261_123;
const MINUTE_MS = 60_000;

/** Makes contacts; resolves with their ids. */
const makeContacts = (node: Site): Promise<string[]> =>
  node.evaluate(async ({ strapi }, count) => {
    const contacts = strapi.documents('plugin::switchboard.contact');
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const { documentId } = await contacts.create({ data: { email: `c${n}@example.test` } });
      ids.push(documentId);
    }
    return ids;
  }, CONTACTS);

/** Updates each of these contacts once: its first name becomes the number of the update. */
const updateOnce = (node: Site, ids: readonly string[], nth: number): Promise<void> =>
  node.evaluate(
    async ({ strapi }, those, name) => {
      const contacts = strapi.documents('plugin::switchboard.contact');
      for (const documentId of those) {
        await contacts.update({ documentId, data: { first_name: name } });
      }
    },
    ids,
    String(nth)
  );

const postgres = databases().filter((kind) => kind === 'postgres');

describeEach(
  postgres,
  'the order by record of contacts that three processes update',
  (database) => {
    let nodes: Site[] = [];
    let receiver: Receiver;

    beforeAll(async () => {
      receiver = await startReceiver();
      const first = await startSite({ database, options: { webhooks: TRIED_SOON } });
      nodes = [first];
      while (nodes.length < NODES) nodes.push(await first.sibling());
    }, 5 * MINUTE_MS);
    afterAll(async () => {
      for (const node of [...nodes].reverse()) await node.stop();
      await receiver?.close();
    }, 2 * MINUTE_MS);

    it(
      `holds for ${CONTACTS * UPDATES} updates of ${CONTACTS} contacts, a fifth of whose posts is refused`,
      async () => {
        const ids = await makeContacts(nodes[0]!);
        const order = watchOrder(
          receiver,
          REFUSED,
          ({ json }) => ({
            record: json.data.contact.id,
            nth: Number(json.data.contact.first_name),
          }),
          seededChance(SEED)
        );
        const { id } = await createWebhook(nodes[0]!, receiver.url, {
          events: ['contact.updated'],
          ordering: 'by_record',
        });
        // All nodes write at once, each to its share of the contacts, which the next one has next time:
        // the updates of one contact follow one another, each committed by another process.
        for (const nth of allChanges(UPDATES)) {
          await Promise.all(
            nodes.map((node, at) =>
              updateOnce(
                node,
                ids.filter((_id, index) => (index + nth) % NODES === at),
                nth
              )
            )
          );
        }
        await waitFor(
          async () =>
            (await countRows(nodes[0]!, 'webhook_id = ? AND status = ?', [id, 'sent'])) ===
            CONTACTS * UPDATES,
          30 * MINUTE_MS,
          'all to be sent'
        );
        expect([...order.delivered.keys()].sort()).toEqual([...ids].sort());
        // At least once: what came again after its first success says nothing of the order.
        const firsts = [...order.delivered.values()].map((came) => [...new Set(came)]);
        for (const came of firsts) expect(came).toEqual(allChanges(UPDATES));
        expect(arrivals(receiver).size).toBe(CONTACTS * UPDATES);
        const share = order.failed() / receiver.requests.length;
        expect(share).toBeGreaterThan(REFUSED / 2);
        expect(share).toBeLessThan(REFUSED * 1.5);
      },
      45 * MINUTE_MS
    );
  }
);
