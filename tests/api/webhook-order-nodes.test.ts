import { describeEach, serverDatabases } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { arrivals, countRows, createWebhook } from './delivery-support';
import { allChanges, changeRecords, TRIED_SOON, watchOrder } from './order-support';

const RECORDS = 40;
const UPDATES = 10;

describeEach(serverDatabases(), 'the order by record over three processes', (database) => {
  let nodes: Site[] = [];
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    const first = await startSite({ database, options: { webhooks: TRIED_SOON } });
    nodes = [first, await first.sibling(), await first.sibling()];
  }, 180_000);
  afterAll(async () => {
    for (const node of [...nodes].reverse()) await node.stop();
    await receiver?.close();
  }, 90_000);

  it(`holds for ${RECORDS * UPDATES} updates of ${RECORDS} records, a fifth of which fail`, async () => {
    const order = watchOrder(receiver, 0.2);
    const { id } = await createWebhook(nodes[0]!, receiver.url, { ordering: 'by_record' });
    // Each node changes every record in turn, one change of a record after the other.
    for (const nth of allChanges(UPDATES)) {
      await changeRecords(nodes[nth % nodes.length]!, RECORDS, nth);
    }
    await waitFor(
      async () =>
        (await countRows(nodes[0]!, 'webhook_id = ? AND status = ?', [id, 'sent'])) ===
        RECORDS * UPDATES,
      300_000,
      'all to be sent'
    );
    expect(order.delivered.size).toBe(RECORDS);
    for (const got of order.delivered.values()) expect(got).toEqual(allChanges(UPDATES));
    expect(order.twoAtOnce).toEqual([]);
    expect(order.failed()).toBeGreaterThan(0);
    expect(arrivals(receiver).size).toBe(RECORDS * UPDATES);
  }, 400_000);
});
