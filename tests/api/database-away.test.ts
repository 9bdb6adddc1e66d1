import { databases, type DatabaseKind, describeEach } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import { countRows, createWebhook, send, sql } from './delivery-support';
import { createItem, createTill, eventOf, levelOf } from './pos-till';

/**
 * Ends the connection under the next `times` statements that name `pattern`: by the server's own
 * command where there is a server, with the driver's error for a locked file where there is none.
 */
const breakConnections = (site: Site, database: DatabaseKind, pattern: string, times: number) =>
  site.evaluate(
    ({ strapi, state }, kind, text, count) => {
      state.broken = 0;
      const prototype = strapi.db.connection.client.constructor.prototype;
      const original = prototype._query;
      prototype._query = async function query(connection: never, statement: never) {
        const { sql } = statement as { sql: string };
        if (new RegExp(text, 'i').test(sql) && state.broken < count) {
          state.broken += 1;
          const raw = connection as { query(sql: string, done: () => void): void };
          const kill = (words: string) =>
            new Promise<void>((resolve) => raw.query(words, () => resolve()));
          if (kind === 'postgres') await kill('SELECT pg_terminate_backend(pg_backend_pid())');
          else if (kind === 'mysql') await kill('KILL CONNECTION_ID()');
          else throw Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' });
        }
        return original.call(this, connection, statement);
      };
    },
    database,
    pattern,
    times
  );

describeEach(databases(), 'a database whose connections break', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: { webhooks: { pollSeconds: 1 } } });
  }, 120_000);
  afterAll(async () => {
    await site?.stop();
    await receiver?.close();
  }, 60_000);
  // SQLite's driver error is tried five times within each transaction.
  const faults = database === 'sqlite' ? 35 : 7;
  const broken = () => site.control<number>('state', { key: 'broken' });

  it('counts no try of a till’s record, which is applied once it is back', async () => {
    const till = await createTill(site);
    await createItem(site, 'SKU-1', 10);
    await breakConnections(site, database, 'insert into .*switchboard_movements', faults);
    const answer = await till.sale([['SKU-1', 1]]);
    expect(answer.status).toBe(202);
    const applied = await waitFor(
      async () => {
        const event = await eventOf(site, answer.body.event_id);
        expect(['pending', 'applied']).toContain(event.state);
        return event.state === 'applied' && event;
      },
      60_000,
      'the sale to be applied'
    );
    expect(await broken()).toBe(faults);
    expect(applied).toMatchObject({ state: 'applied', error: null });
    const [row] = await sql<{ tries: number }>(site, 'SELECT tries FROM switchboard_pos_events');
    expect(Number(row?.tries)).toBe(0);
    expect(await levelOf(site, 'SKU-1')).toBe(9);
    expect(site.log().match(/POS events: .* could not be recorded/g)).toHaveLength(1);
  }, 120_000);

  it('loses no outcome of a delivery: its receiver is posted to once', async () => {
    await createWebhook(site, receiver.url);
    await breakConnections(
      site,
      database,
      database === 'mysql'
        ? 'update .*switchboard_deliveries.* set .*status'
        : 'with .*update .*switchboard_deliveries',
      faults
    );
    expect(await send(site, 'order.placed', { n: 1 })).toBe(1);
    await receiver.waitFor(1);
    await waitFor(async () => (await countRows(site, "status = 'sent'")) === 1, 60_000);
    expect(await broken()).toBe(faults);
    await sleep(500);
    expect(receiver.requests).toHaveLength(1);
    expect(site.log().match(/deliveries: .* could not be recorded/g)).toHaveLength(1);
  }, 120_000);
});
