import { anyServer, describeEach, itOnce, serverDatabases } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  insertDeliveries,
  signedWith,
} from './delivery-support';

const COUNT = 1500;
/** Of a process that is killed nobody prolongs it. */
const LEASE_MS = 10_000;

/** Counts the attempts that a process prepares, and those that it makes: one that waits too long is prepared again. */
const countAttempts = (node: Site) =>
  node.evaluate(({ strapi, state }) => {
    state.attempts = 0;
    state.made = 0;
    strapi.hook('service_crm_webhook_delivered').register(() => {
      state.made += 1;
    });
    strapi.hook('service_crm_webhook_request_args').register(async (value: unknown) => {
      state.attempts += 1;
      while (state.areAttemptsHeld) await new Promise((resolve) => setTimeout(resolve, 20));
      return value;
    });
  });
const attempts = (node: Site) => node.control<number>('state', { key: 'attempts' });
const made = (node: Site) => node.control<number>('state', { key: 'made' });

describeEach(serverDatabases(), 'two processes on one database', (database) => {
  let one: Site;
  let other: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    one = await startSite({
      database,
      options: { webhooks: { pollSeconds: 1, timeoutMs: 30_000 } },
    });
    other = await one.sibling();
  }, 120_000);
  afterAll(async () => {
    await other?.stop();
    await one?.stop();
    await receiver?.close();
  }, 60_000);

  it(`send ${COUNT} deliveries, none twice, and both do work`, async () => {
    await countAttempts(one);
    await countAttempts(other);
    const { id } = await createWebhook(one, receiver.url, { events: ['contact.created'] });
    await insertDeliveries(one, id, COUNT);
    await waitFor(
      async () => (await countRows(one, 'webhook_id = ? AND status = ?', [id, 'sent'])) === COUNT,
      60_000,
      'all deliveries to be sent'
    );
    await receiver.settle(300);
    const twice = [...arrivals(receiver).values()].filter((posts) => posts.length > 1);
    expect(twice).toEqual([]);
    expect(receiver.requests).toHaveLength(COUNT);
    expect((await attempts(one)) + (await attempts(other))).toBeGreaterThanOrEqual(COUNT);
    // Handlers hear of it once it is recorded.
    await waitFor(async () => (await made(one)) + (await made(other)) >= COUNT);
    const [byOne, byOther] = [await made(one), await made(other)];
    expect(byOne + byOther).toBe(COUNT);
    expect(Math.min(byOne, byOther)).toBeGreaterThan(COUNT / 20);
    expect(await countRows(one, 'webhook_id = ? AND tries <> 1', [id])).toBe(0);
  }, 90_000);

  it('sign with the secret of the moment at which a slow handler ends', async () => {
    receiver.clear();
    const hold = (areHeld: boolean) =>
      Promise.all(
        [one, other].map((node) =>
          node.evaluate(({ state }, value) => {
            state.areAttemptsHeld = value;
          }, areHeld)
        )
      );
    const before = [await attempts(one), await attempts(other)];
    await hold(true);
    const { id } = await createWebhook(one, receiver.url, { events: ['contact.created'] });
    await insertDeliveries(one, id, 40);
    await waitFor(
      async () => (await attempts(one)) > before[0]! && (await attempts(other)) > before[1]!,
      20_000,
      'both to have begun'
    );
    const rotated = await one.request('POST', `/api/fw-crm/v1/webhooks/${id}/secret`);
    expect(rotated.status).toBe(200);
    await hold(false);
    await receiver.waitFor(40);
    expect(receiver.requests.filter((post) => !signedWith(rotated.body.secret, post))).toEqual([]);
  }, 60_000);

  // Leases have their statements in queue.test.ts.
  itOnce(database, anyServer())(
    'finish each other’s work: what a killed one held is sent after its lease',
    async () => {
      receiver.clear();
      // While they are held here, both processes hold a lease of theirs.
      let release = () => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      receiver.respond(() => held.then(() => ({})));
      const { id } = await createWebhook(one, receiver.url, { events: ['contact.created'] });
      await insertDeliveries(one, id, 200);
      await waitFor(() => receiver.requests.length >= 20);
      const killedAt = Date.now();
      await other.kill();
      release();
      await waitFor(
        async () => (await countRows(one, 'webhook_id = ? AND tries = 0', [id])) === 0,
        LEASE_MS + 60_000,
        'the killed process’s deliveries to be tried'
      );
      expect(Date.now() - killedAt).toBeLessThan(LEASE_MS + 60_000);
      expect(arrivals(receiver).size).toBe(200);
    },
    90_000
  );
});
